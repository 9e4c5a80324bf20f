package main

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// On a terminal a line says whom check and fetch wait for, and is gone when they have it.
// Elsewhere there is none.
func TestWaitingIsShownOnATerminal(t *testing.T) {
	tier.Gate(t)
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Second): // two ticks of the line
		case <-r.Context().Done():
		}
	})
	for _, name := range []string{"check", "fetch"} {
		for _, c := range []struct {
			term  string
			shown bool
		}{{"xterm", true}, {"dumb", false}} {
			cmd := exec.Command("robots", name, "http://slow.example/", to)
			cmd.Env = append(cmd.Environ(), "TERM="+c.term)
			got := onTerminal(t, cmd)
			const line = "\r\x1b[K1s: waiting for http://slow.example\r\x1b[K"
			if strings.Contains(got, line) != c.shown || strings.Contains(got, "waiting") != c.shown {
				t.Errorf("%s with TERM=%s: got %q; line shown: want %v", name, c.term, got, c.shown)
			}
		}
	}
}
