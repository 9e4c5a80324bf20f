package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// onTerminal runs a command with its output on a terminal and returns what came there.
func onTerminal(t *testing.T, cmd *exec.Cmd) string { return onTerminalOf(t, cmd, 0, "") }

// onTerminalOf is onTerminal for one of so many columns, where something is typed if that is
// not empty.
func onTerminalOf(t *testing.T, cmd *exec.Cmd, columns uint16, typed string) string {
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
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	if typed != "" {
		cmd.Stdin = slave
		if _, err := master.WriteString(typed); err != nil {
			t.Fatal(err)
		}
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
	io.Copy(&out, master) // ends with an error once the other side is closed
	cmd.Wait()
	return out.String()
}

func TestColoursOnATerminal(t *testing.T) {
	file := written(t, "User-agent: *\nDisallow: /x\nDisallow /y\n")
	for _, c := range []struct{ env, match, lint string }{
		{"TERM=xterm", "\x1b[31mrefused\x1b[0m\t/x\tline 2: ", "\x1b[1;31merror\x1b[0m: "},
		{"NO_COLOR=1", "refused\t/x\tline 2: ", "file.txt:3:9: error: "},
		{"TERM=dumb", "refused\t/x\tline 2: ", "file.txt:3:9: error: "},
	} {
		for want, args := range map[string][]string{c.match: {"match", "--robots", file, "/x"}, c.lint: {"lint", file}} {
			cmd := exec.Command("robots", args...)
			cmd.Env = append(os.Environ(), "NO_COLOR=", "TERM=xterm", c.env)
			if got := onTerminal(t, cmd); !strings.Contains(got, want) || strings.Contains(got, "\x1b") != (c.env == "TERM=xterm") {
				t.Errorf("%s, %s: got %q, want %q in it", args[0], c.env, got, want)
			}
		}
	}
}

// On a terminal a run shows how far it is, how many origins are done, and which one it waits for; and ends with a
// summary. The list goes elsewhere. No line is longer than the terminal is wide.
func TestFilterShowsProgressOnATerminal(t *testing.T) {
	m := serveMany(t, 50*time.Millisecond)
	m.dead = map[string]bool{"site150.example": true}
	for _, c := range []struct {
		columns uint16
		term    string
		want    []string
	}{
		{100, "xterm", []string{" lines\r", "origins: 199 done, 1 pending: 2s for site150.example; "}},
		{60, "xterm", []string{"origins: 199 done, 1 pending: 2s for site150.example; "}},
		{30, "xterm", []string{"origins: 199 done, 1 pending…"}},
		{31, "dumb", nil}, // which cannot rewrite a line
	} {
		t.Run(fmt.Sprint(c.columns), func(t *testing.T) {
			t.Parallel()
			cmd := m.command(t, crowd{urls: 20_000, origins: 200, sorted: true}, "--parallel", "8", "--timeout", "3s")
			cmd.Args = append(cmd.Args[:2], cmd.Args[3:]...) // without --summary
			out, err := os.Create(filepath.Join(t.TempDir(), "allowed"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout = out
			cmd.Env = append(cmd.Environ(), "TERM="+c.term)
			got := onTerminalOf(t, cmd, c.columns, "")
			for _, want := range append(c.want, "20000 lines: ") {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
			if strings.Contains(got, "\x1b") != (c.want != nil) {
				t.Errorf("TERM=%s: got %q, want escapes: %v", c.term, got, c.want != nil)
			}
			drawn := strings.Split(got, shell.EraseLine)
			for _, line := range drawn[:len(drawn)-1] {
				if utf8.RuneCountInString(line) >= int(c.columns) {
					t.Errorf("%q is no less than %d columns wide", line, c.columns)
				}
			}
			if info, err := out.Stat(); err != nil || info.Size() == 0 {
				t.Errorf("the list: %v, error %v", info, err)
			}
		})
	}
}

// Nothing is drawn over what is typed, for as long as it takes.
func TestFilterReadsTheKeyboard(t *testing.T) {
	tier.Gate(t)
	m := serveMany(t, time.Second)
	cmd := m.command(t, crowd{})
	got := onTerminalOf(t, cmd, 80, "http://site1.example/public\n\x04")
	if want := "\nhttp://site1.example/public\r\n1 line: 1 allowed"; !strings.Contains(got, want) || strings.Contains(got, shell.EraseLine) {
		t.Errorf("got %q, want %q in it, and no progress", got, want)
	}
}

// On a terminal check and fetch say whom they wait for, once.
func TestWaitingIsToldOnATerminal(t *testing.T) {
	tier.Gate(t)
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-r.Context().Done():
		}
	})
	for _, name := range []string{"check", "fetch"} {
		got := onTerminal(t, exec.Command("robots", name, "http://slow.example/", to))
		if strings.Count(got, "robots: waiting for http://slow.example\r\n") != 1 {
			t.Errorf("%s: got %q, want it told once", name, got)
		}
	}
}
