package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// web is many sites at one address. It remembers when each page was asked for.
type web struct {
	mu   sync.Mutex
	last map[string]time.Time // by site
	seen map[string]int       // by URL
	gaps int                  // that were too short

	once  sync.Once
	begun chan struct{} // closed when a page is asked for
}

const (
	sites = 40
	delay = 300 * time.Millisecond
)

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.once.Do(func() { close(w.begun) })
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
	w := &web{last: map[string]time.Time{}, seen: map[string]int{}, begun: make(chan struct{})}
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
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port.Close()
	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	_, number, _ := net.SplitHostPort(port.Addr().String())
	common := []string{"-user-agent", "ExampleBot/1.0", "-workers", "2"}
	var all sync.WaitGroup
	all.Go(func() {
		<-w.begun
		there := "nats://" + port.Addr().String()
		args := append(slices.Clip(common), "-worker", "2", "-dir", filepath.Join(dir, "b"), "-nats", there)
		if err := run(t.Context(), base, args...); err != nil {
			t.Error(err)
		}
	})
	args := append(common, "-seeds", filepath.Join(dir, "seeds"), "-dir", filepath.Join(dir, "a"), "-port", number)
	if err := run(t.Context(), base, args...); err != nil {
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
	count := func(what string) int { n, _ := strconv.Atoi(counts.Get(what).String()); return n }
	sent, late := count("sent"), count("late")
	t.Logf("%d sent, %d put back, %d gaps too short", sent, late, w.gaps)
	if want := sites * 10; sent != want || w.gaps > 0 || late > want*12/10 {
		t.Errorf("%d sent, want %d; %d put back; %d gaps too short", sent, want, late, w.gaps)
	}
}

// queueIn starts a NATS server with the folder dir, and a worker on it, which has not begun to work.
func queueIn(t *testing.T, dir string) (*server.Server, *worker, jetstream.Stream) {
	own, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	own.Start()
	t.Cleanup(own.Shutdown)
	conn, err := nats.Connect("", nats.InProcessServer(own))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{js: js}
	queue, err := w.begin(t.Context(), os.DevNull, 1)
	if err != nil {
		t.Fatal(err)
	}
	return own, w, queue
}

// What is given up is in the stream DEAD, and a URL that is done stays known when NATS starts again.
func TestTheQueueRemembers(t *testing.T) {
	tier.Gate(t)
	dir := t.TempDir()
	own, w, queue := queueIn(t, dir)
	page := &url.URL{Scheme: "http", Host: "site.example", Path: "/"}
	if err := w.put(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	c, err := queue.CreateOrUpdateConsumer(t.Context(), jetstream.ConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for try := range maxTries + 1 {
		m, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if try < maxTries {
			m.Nak()
		} else if what, err := again(m, errors.New("too bad"), 0); what != "dead" || err != nil {
			t.Fatalf("got %q, %v; want dead", what, err)
		}
	}
	dead, err := w.js.OrderedConsumer(t.Context(), "DEAD", jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := dead.Next()
	if want := `"http://site.example/ too bad"`; err != nil || !strings.Contains(string(m.Data()), want) {
		t.Errorf("got %v, %v; want %s", m, err, want)
	}

	own.Shutdown()
	own.WaitForShutdown()
	_, w, queue = queueIn(t, dir)
	if err := w.put(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	info, err := queue.Info(t.Context())
	if err != nil || info.State.LastSeq != 1 {
		t.Errorf("got %v, %v; want that the page is not put in again", info, err)
	}
}
