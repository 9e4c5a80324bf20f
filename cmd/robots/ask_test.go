package main

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// No site answers before all of them have been asked: one after the other would never end.
// The answers come in the order of the URLs all the same.
func TestCheckAsksSitesAtTheSameTime(t *testing.T) {
	var arrived sync.WaitGroup
	arrived.Add(3)
	to := siteServer(t, func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait()
	})
	args := []string{"check", to, "--timeout=10s",
		"http://c.example/1", "http://a.example/2", "http://b.example/3", "http://a.example/4"}
	var out bytes.Buffer
	if status := run(t.Context(), args, shell.Streams{Out: &out, Err: t.Output()}); status != shell.ExitOK {
		t.Error("status ", status)
	}
	var got []string
	for l := range strings.Lines(out.String()) {
		if url, is := strings.CutPrefix(l, "allowed  "); is {
			got = append(got, strings.TrimSpace(url))
		}
	}
	if want := strings.Join(args[3:], " "); strings.Join(got, " ") != want {
		t.Errorf("answers about %v, want %s", got, want)
	}
}
