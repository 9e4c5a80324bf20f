package shell

import (
	"testing"
	"time"
	"unicode/utf8"
)

func TestProgressFitsTheTerminal(t *testing.T) {
	p := progress{
		lines: 450_123, bytes: 6 << 20, size: 10 << 20, took: 90 * time.Second,
		done: 1994, pending: 6, host: "slow.example", waits: 12*time.Second + time.Millisecond,
	}
	for _, c := range []struct {
		width int
		want  string
	}{
		{200, "origins: 1994 done, 6 pending: 12s for slow.example; 450123 lines, 60%, 5001/s"},
		{81, "origins: 1994 done, 6 pending: 12s for slow.example; 450123 lines, 60%, 5001/s"},
		{72, "origins: 1994 done, 6 pending: 12s for slow.example; 450123 lines, 60%…"},
		{20, "origins: 1994 done…"},
		{2, "…"},
	} {
		if got := p.line(c.width); got != c.want {
			t.Errorf("%d columns: got %q (%d), want %q", c.width, got, utf8.RuneCountInString(got), c.want)
		}
	}
}

func TestProgressIsRightFromTheFirstSecond(t *testing.T) {
	for _, c := range []struct {
		name string
		p    progress
		want string
	}{
		{"nothing yet", progress{size: 1 << 20}, "origins: 0 done, 0 pending; 0 lines, 0%"},
		{"nothing after a while",
			progress{size: 1 << 20, took: time.Minute, pending: 8, waits: time.Minute, host: "a.example"},
			"origins: 0 done, 8 pending: 1m0s for a.example; 0 lines, 0%, 0/s"},
		{"no file", progress{lines: 128, took: 2 * time.Second, done: 2}, "origins: 2 done, 0 pending; 128 lines, 64/s"},
		{"a file that grows", progress{lines: 10, bytes: 600, size: 300, took: time.Second},
			"origins: 0 done, 0 pending; 10 lines, 100%, 10/s"},
	} {
		if got := c.p.line(200); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
