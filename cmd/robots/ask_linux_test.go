package main

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

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
			t.Errorf("%s: got %q", name, got)
		}
	}
}
