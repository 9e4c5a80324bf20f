package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// No site answers before all of them have been asked: one after the other would never end.
// The answers come in the order of the URLs all the same.
func TestCheckAsksSitesAtTheSameTime(t *testing.T) {
	var arrived sync.WaitGroup
	arrived.Add(3)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
	}))
	defer server.Close()
	args := []string{"check", "--connect-to=::" + server.Listener.Addr().String(), "--timeout=10s",
		"http://c.example/1", "http://a.example/2", "http://b.example/3", "http://a.example/4"}
	var out bytes.Buffer
	if status := run(t.Context(), args, streams{nil, &out, t.Output()}); status != exitOK {
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

func TestWhatIsWaitedForIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := newAsked(originNamed(t, "slow.example")), newAsked(originNamed(t, "quick.example"))
		close(quick.done)
		time.Sleep(3 * time.Second)
		for _, c := range []struct {
			all   []*asked
			width int
			want  string
		}{
			{nil, 80, "3s: waiting for https://slow.example"},
			{[]*asked{slow}, 80, "3s: waiting for https://slow.example"},
			{[]*asked{quick, slow}, 80, "1 of 2 sites answered, 3s: waiting for https://slow.example"},
			{[]*asked{quick, slow}, 40, "1 of 2 sites answered, 3s: waiting for "},
		} {
			if got := waiting(slow, c.all, c.width); got != c.want {
				t.Errorf("%d columns: got %q, want %q", c.width, got, c.want)
			}
		}
	})
}
