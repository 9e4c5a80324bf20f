package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// web is many sites at one address. It remembers when each page was asked for.
type web struct {
	mu   sync.Mutex
	last map[string]time.Time // by site
	seen map[string]int       // by URL
	gaps int                  // that were too short
}

const (
	sites = 40
	delay = 300 * time.Millisecond
)

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	now := time.Now()
	if now.Sub(w.last[r.Host]) < delay-20*time.Millisecond {
		w.gaps++
	}
	w.last[r.Host] = now
	w.seen[r.Host+r.URL.Path]++
	w.mu.Unlock()
	switch r.URL.Path {
	case "/robots.txt":
		fmt.Fprintln(rw, "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.3")
	case "/":
		for i := range 8 {
			fmt.Fprintf(rw, `<a href="/%d">`, i)
		}
		fmt.Fprint(rw, `<a href="/private/x">`)
	case "/3": // to the next site
		var n int
		fmt.Sscanf(r.Host, "site%d.", &n)
		http.Redirect(rw, r, fmt.Sprintf("http://site%d.example/moved", (n+1)%sites), http.StatusFound)
	}
}

// Two workers visit each page once, none that is forbidden, and none too early.
func TestTheCrawlVisitsEachPageOnce(t *testing.T) {
	tier.Nightly(t)
	w := &web{last: map[string]time.Time{}, seen: map[string]int{}}
	server := httptest.NewServer(w)
	defer server.Close()
	dir := t.TempDir()
	var seeds strings.Builder
	for i := range sites {
		fmt.Fprintf(&seeds, "http://site%d.example/\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "seeds"), []byte(seeds.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := serve(settings{host: "127.0.0.1", port: -1, dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer own.WaitForShutdown()
	defer own.Shutdown()
	var out, others strings.Builder
	s := settings{
		userAgent: "ExampleBot/1.0", nats: own.ClientURL(), dir: filepath.Join(dir, "a"), replicas: 1,
		connectTo: server.Listener.Addr().String(), seeds: filepath.Join(dir, "seeds"), worker: 1, workers: 2,
	}
	more := s
	more.seeds, more.dir, more.worker = "", filepath.Join(dir, "b"), 2
	for _, folder := range []string{s.dir, more.dir} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		if err := run(t.Context(), &others, more); err != nil {
			t.Error(err)
		}
	})
	if err := run(t.Context(), &out, s); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for i := range sites {
		for _, path := range []string{"/", "/0", "/7", "/moved"} {
			if n := w.seen[fmt.Sprintf("site%d.example%s", i, path)]; n != 1 {
				t.Errorf("site %d: %s was asked for %d times, want 1", i, path, n)
			}
		}
		if n := w.seen[fmt.Sprintf("site%d.example/private/x", i)]; n != 0 {
			t.Errorf("site %d: what is forbidden was asked for", i)
		}
	}
	told := out.String() + others.String()
	sent, late := strings.Count(told, "sent "), strings.Count(told, "late ")
	t.Logf("%d sent, %d put back, %d gaps too short", sent, late, w.gaps)
	if want := sites * 10; sent != want || w.gaps > 0 || late > want*12/10 {
		t.Errorf("%d sent, want %d; %d put back; %d gaps too short", sent, want, late, w.gaps)
	}
}
