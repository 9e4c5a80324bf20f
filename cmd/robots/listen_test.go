package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
)

// certified writes a certificate for 127.0.0.1 and its key over what is there, and returns the pool that trusts it.
func certified(t *testing.T, cert, key string) *x509.CertPool {
	t.Helper()
	certificate, secret, err := proxy.MakeAuthority("test", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	a, err := proxy.NewAuthority(certificate, secret)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.Leaf("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}

// daemons are the subcommands that listen.
var daemons = []string{"serve", "proxy"}

// startDaemon runs one in this process, and returns where it says that it is reached.
func startDaemon(t *testing.T, name string, args ...string) (at string, log *locked) {
	t.Helper()
	log = new(locked)
	a := &app{streams: streams{err: log}}
	cmd := (&server{app: a, limits: usualLimits}).command()
	if name == "proxy" {
		cmd = (&proxying{server: server{app: a}, bounds: proxy.UsualLimits}).command()
	}
	said, _, _ := startCommand(t, cmd, a, append([]string{"--listen=127.0.0.1:0", "--cache=none"}, args...))
	at, ok := strings.CutPrefix(said, "robots "+name+": ")
	if !ok {
		t.Fatalf("%s %q: it says %q", name, args, said)
	}
	return strings.TrimSpace(at), log
}

func TestIPv4IsIPv4Alone(t *testing.T) {
	for _, name := range daemons {
		at, _ := startDaemon(t, name, "--listen=0.0.0.0:0", "--open")
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(at, "http://"))
		if !strings.HasPrefix(at, "http://0.0.0.0:") {
			t.Errorf("%s: it says %s", name, at)
		}
		for host, there := range map[string]bool{"127.0.0.1": true, "::1": false} {
			c, err := net.Dial("tcp", net.JoinHostPort(host, port))
			if (err == nil) != there {
				t.Errorf("%s: %s: %v", name, host, err)
			}
			if err == nil {
				c.Close()
			}
		}
	}
}

// A certificate may be changed under a program that runs; half of a change is not taken.
func TestTLSFollowsItsFiles(t *testing.T) {
	for _, name := range daemons {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		first := certified(t, cert, key)
		at, log := startDaemon(t, name, "--tls-cert="+cert, "--tls-key="+key)
		host, ok := strings.CutPrefix(at, "https://")
		if !ok {
			t.Fatalf("%s: it says %s", name, at)
		}
		shakes := func(pool *x509.CertPool) error {
			c, err := tls.Dial("tcp", host, &tls.Config{RootCAs: pool, NextProtos: []string{"h2", "http/1.1"}})
			if err == nil {
				defer c.Close()
				if got, want := c.ConnectionState().NegotiatedProtocol, map[string]string{"serve": "h2", "proxy": "http/1.1"}[name]; got != want {
					t.Errorf("%s speaks %q, want %q", name, got, want)
				}
			}
			return err
		}
		if err := shakes(first); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		other := filepath.Join(dir, "other")
		second := certified(t, cert, other)
		for range 2 {
			if err := shakes(first); err != nil {
				t.Errorf("%s, half changed: %v", name, err)
			}
		}
		if n := strings.Count(log.String(), "not read again"); n != 1 {
			t.Errorf("%s: told %d times: %s", name, n, log)
		}
		if err := os.Rename(other, key); err != nil {
			t.Fatal(err)
		}
		if err := shakes(second); err != nil {
			t.Errorf("%s, changed: %v", name, err)
		}
		if shakes(first) == nil {
			t.Errorf("%s: the old certificate is still there", name)
		}
		os.Remove(cert)
		if err := shakes(second); err != nil {
			t.Errorf("%s, removed: %v", name, err)
		}
		if strings.Contains(log.String(), "may use") {
			t.Errorf("%s: %s", name, log)
		}
	}
}

func TestSecretsThatAreNoneAreToldOf(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte("0123456789abcdef\n"), mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certified(t, cert, key)
	bot := filepath.Join(dir, "bot.pem")
	stdoutOf(t, "", "sign", "keygen", bot)
	const shared, clear = "may use", "in clear"
	for _, c := range []struct {
		mode os.FileMode // of all keys
		args []string
		says map[string]int
	}{
		{0o600, []string{"--token-file=" + write("own", 0o600)}, nil},
		{0o600, []string{"--token-file=" + write("group", 0o640)}, map[string]int{shared: 1}},
		{0o600, []string{"--token-file=" + write("all", 0o604)}, map[string]int{shared: 1}},
		{0o644, []string{"--tls-cert=" + cert, "--tls-key=" + key}, map[string]int{shared: 1}},
		{0o644, []string{"--sign-key=" + bot, "--sign-agent=https://bot.example"}, map[string]int{shared: 1}},
		{0o600, []string{"--listen=0.0.0.0:0", "--token-file=" + write("own", 0o600)}, map[string]int{clear: 1}},
		{0o600, []string{"--listen=0.0.0.0:0", "--tls-cert=" + cert, "--tls-key=" + key, "--token-file=" + write("own", 0o600)}, nil},
		{0o600, []string{"--listen=0.0.0.0:0", "--open"}, nil},
	} {
		for _, name := range []string{key, bot} {
			if err := os.Chmod(name, c.mode); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range daemons {
			_, log := startDaemon(t, name, c.args...)
			for _, text := range []string{shared, clear} {
				if n := strings.Count(log.String(), text); n != c.says[text] {
					t.Errorf("%s %q: told %d times %q: %s", name, c.args, n, text, log)
				}
			}
		}
	}
	flags, _ := testCA(t)
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o644: 1} {
		if err := os.Chmod(strings.TrimPrefix(flags[1], "--ca-key="), mode); err != nil {
			t.Fatal(err)
		}
		if v := startProxy(t, flags...); strings.Count(v.log.String(), shared) != want {
			t.Errorf("the key of a CA with mode %o: %s", mode, v.log)
		}
	}
}

// systemd hands over a socket, and is told when it is served and when that ends.
func TestSystemdIsServedAndTold(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, filepath.Join(dir, "robots"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range daemons {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		file, _ := l.(*net.TCPListener).File()
		defer file.Close()
		told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, name+".sock"), Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer told.Close()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`,
			filepath.Join(dir, "robots"), name, "--cache=none", "--listen=127.0.0.1:1")
		cmd.ExtraFiles = []*os.File{file}
		cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=robots.socket",
			"NOTIFY_SOCKET="+told.LocalAddr().String())
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		next := func() string {
			told.SetReadDeadline(time.Now().Add(20 * time.Second))
			buf := make([]byte, 100)
			n, err := told.Read(buf)
			return fmt.Sprint(string(buf[:n]), err)
		}
		if got := next(); got != "READY=1<nil>" {
			t.Errorf("%s: told %q", name, got)
		}
		if res, err := http.Get("http://" + l.Addr().String() + "/"); err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			res.Body.Close()
		}
		cmd.Process.Signal(os.Interrupt)
		if got := next(); got != "STOPPING=1<nil>" {
			t.Errorf("%s: told %q", name, got)
		}
		said, _ := io.ReadAll(out)
		if want := "robots " + name + ": http://" + l.Addr().String() + "\n"; string(said) != want {
			t.Errorf("%s: it says %q, want %q", name, said, want)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListeningIsCheckedFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	for _, name := range daemons {
		for args, want := range map[string]int{
			"--tls-cert=" + dir + "/x":                          exitUsage,
			"--tls-key=" + dir + "/x":                           exitUsage,
			"--tls-key=" + dir + "/x --tls-cert=" + dir + "/x":  exitUnknown,
			"--listen=[::]:0":                                   exitUsage,
			"--listen=0.0.0.0:0 --token-file=" + dir + "/token": exitUnknown,
		} {
			var errs strings.Builder
			args := append([]string{name, "--cache=none"}, strings.Fields(args)...)
			if status := run(ctx, args, streams{nil, io.Discard, &errs}); status != want {
				t.Errorf("%q: status %d, want %d: %s", args, status, want, &errs)
			}
		}
	}
}
