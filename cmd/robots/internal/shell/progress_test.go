package shell

import (
	"testing"
	"time"
)

func TestProgressFitsTheTerminal(t *testing.T) {
	const all = "origins: 1994 done, 6 pending: 12s for slow.example; 450123 lines"
	for width, want := range map[int]string{
		200: all, len(all) + 1: all, len(all): all[:len(all)-2] + "…", 20: "origins: 1994 done…", 2: "…",
	} {
		if got := progress(width, 450_123, 1994, 6, "slow.example", 12*time.Second+time.Millisecond); got != want {
			t.Errorf("%d columns: got %q, want %q", width, got, want)
		}
	}
	if got, want := progress(200, 0, 0, 0, "", 0), "origins: 0 done, 0 pending; 0 lines"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
