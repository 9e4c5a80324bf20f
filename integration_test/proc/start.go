package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// FirstLine starts cmd, which it owns, and returns what that says first: where it listens.
func FirstLine(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	Own(t, cmd)
	line, err := bufio.NewReader(started(t, cmd)).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// started starts cmd and returns what it writes.
func started(t testing.TB, cmd *exec.Cmd) io.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return out
}

// FreePort is one for a server that is told its port, and no other test's of any process until this one ends. It is
// none of those that systems give to connections: one of these could take it before the server does.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := fmt.Sprint(10_000 + rand.IntN(20_000))
		// The port of UDP, which no server here uses, stays taken.
		mark, err := net.ListenPacket("udp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			t.Cleanup(func() { mark.Close() })
			return port
		}
		mark.Close()
	}
	t.Fatal("no port is free")
	return ""
}

// Socket is a path for a server that listens on a Unix socket.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket") // that of the test may be too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "socket")
}

// Server is a program that listens.
type Server struct {
	Cmd   *exec.Cmd
	ended chan struct{}
}

// Kill returns when it is gone.
func (s *Server) Kill() {
	s.Cmd.Process.Kill()
	<-s.ended
}

// Serve starts cmd, which it owns, and waits until it listens at addr.
func Serve(t testing.TB, cmd *exec.Cmd, addr string) *Server {
	t.Helper()
	var out bytes.Buffer
	s := &Server{cmd, make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &out, &out
	own(t, cmd, func() {
		<-s.ended
		if t.Failed() {
			t.Logf("%s, which ended by %v, said:\n%s", cmd.Path, cmd.ProcessState, &out)
		}
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		cmd.Wait()
	}()
	for end := time.Now().Add(time.Minute); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return s
		}
		select {
		case <-s.ended:
			t.Fatalf("%s did not start", cmd.Path)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen: %v", cmd.Path, err)
		}
	}
}

// Redis starts a server that keeps nothing on disk, and returns where it listens. It skips the test where
// redis-server is not installed (Debian, Ubuntu: apt-get install redis-server).
func Redis(t testing.TB, args ...string) (s *Server, addr string) {
	t.Helper()
	tier.Gate(t)
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; the tests with a real Redis do not run")
	}
	port := FreePort(t)
	args = append(args, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	addr = "127.0.0.1:" + port
	return Serve(t, exec.Command(program, args...), addr), addr
}
