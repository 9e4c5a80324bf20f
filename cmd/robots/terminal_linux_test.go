package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal runs a command with its output on a terminal and returns what came there.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Stdout == nil {
		cmd.Stdout = slave
	}
	cmd.Stderr = slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var out bytes.Buffer
	io.Copy(&out, master) // ends with an error once nobody has the other side open
	cmd.Wait()
	return out.String()
}

func TestColoursOnATerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nDisallow: /x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, env string
		want      string
	}{
		{"colour", "TERM=xterm", "\x1b[31mrefused\x1b[0m\t/x\tline 2: Disallow: /x\r\n"},
		{"NO_COLOR", "NO_COLOR=1", "refused\t/x\tline 2: Disallow: /x\r\n"},
		{"a dumb terminal", "TERM=dumb", "refused\t/x\tline 2: Disallow: /x\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("robots", "match", "--robots", file, "/x")
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "NO_COLOR=", "TERM=xterm", c.env)
			if got := onTerminal(t, cmd); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// On a terminal a run shows how far it is, with the rate and the time that is left, and
// ends with a summary; the list goes elsewhere.
func TestFilterShowsProgressOnATerminal(t *testing.T) {
	m := serveMany(t, 50*time.Millisecond)
	cmd := m.command(t, crowd{20_000, 200}, "--parallel", "8")
	cmd.Args = append(cmd.Args[:2], cmd.Args[3:]...) // without --summary
	out, err := os.Create(filepath.Join(t.TempDir(), "allowed"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	got := onTerminal(t, cmd)
	for _, want := range []string{"robots filter", "lines/s", "%", "s]", "20000 lines: 18045 allowed, 1955 refused"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if info, err := out.Stat(); err != nil || info.Size() == 0 {
		t.Errorf("the list: %v, error %v", info, err)
	}
}
