package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLintUsesColoursOnATerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nDisallow /x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, env, want string }{
		{"colour", "TERM=xterm", "\x1b[1;31merror\x1b[0m: "},
		{"NO_COLOR", "NO_COLOR=1", "robots.txt:2:9: error: "},
		{"a dumb terminal", "TERM=dumb", "robots.txt:2:9: error: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("robots", "lint", file)
			cmd.Env = append(os.Environ(), "NO_COLOR=", "TERM=xterm", c.env)
			got := onTerminal(t, cmd)
			if !strings.Contains(got, c.want) || strings.Contains(got, "\x1b") != (c.name == "colour") {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}
