package load_test

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// file is an answer with a file.
func file(body []byte) *fetch.Result {
	return &fetch.Result{StatusCode: 200, Policy: policy.Parse(body), Body: body, Time: time.Now()}
}

// A crawl through a million origins, one in a hundred of them hostile, stays within a
// bound. With fewer origins the bound is lower, so that it is reached.
func TestCacheMillionOriginsStayWithinTheBound(t *testing.T) {
	tier.Gate(t)
	origins, bound := sizes.Of(1_000_000), int64(64<<20)
	if !*sizes.Full {
		bound = 4 << 20
	}
	var hostile strings.Builder
	hostile.WriteString("User-agent: *\n")
	for n := 0; hostile.Len() < 499<<10; n++ {
		fmt.Fprintf(&hostile, "Disallow:/%x\n", n)
	}
	end := "000" // of the names of hostile origins: to parse them takes most of the time
	if *sizes.Full {
		end = "00"
	}
	load := func(_ context.Context, o fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
		if strings.HasSuffix(o.String(), end) {
			return file([]byte(hostile.String())), nil
		}
		return file([]byte("User-agent: *\nDisallow: /private\nSitemap: " + o.String() + "/sitemap.xml\n")), nil
	}

	goroutines := runtime.NumGoroutine()
	c := &cache.Cache{MaxOrigins: math.MaxInt32, MaxBytes: bound}
	var next atomic.Int64
	var worst atomic.Int64
	var crawlers sync.WaitGroup
	start := time.Now()
	for range 20 {
		crawlers.Go(func() {
			for i := next.Add(1); i <= int64(origins); i = next.Add(1) {
				o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: fmt.Sprintf("www.example%d", i)})
				if err != nil {
					t.Error(err)
					return
				}
				if r, _, err := c.Get(context.Background(), o, &cache.Source{Load: load}); err != nil || r.Err != nil {
					t.Error(err, r)
					return
				}
				raise(&worst, c.Stats().Bytes)
			}
		})
	}
	crawlers.Wait()
	took := time.Since(start)
	if worst.Load() > bound {
		t.Errorf("%d bytes counted, want %d at most", worst.Load(), bound)
	}
	got, alive := c.Stats(), proc.Heap()
	runtime.KeepAlive(c)
	c = nil
	alive -= proc.Heap() // what other tests have left may go at any time before
	if alive > 2*bound {
		t.Errorf("%d MiB of heap after a collection, want %d at most", alive>>20, 2*bound>>20)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
	if ratio := float64(got.Bytes) / float64(alive); ratio < 0.8 || ratio > 1.2 {
		t.Errorf("%d bytes counted, %d in the heap: ratio %.2f", got.Bytes, alive, ratio)
	}
	t.Logf("%d origins in %v: at most %.1f MiB counted, %.1f MiB of heap, %d origins kept", origins, took.Round(time.Millisecond), float64(worst.Load())/(1<<20), float64(alive)/(1<<20), got.Origins)
}

// A restart finds what the directory has: it is open at once, and no origin is fetched again.
func TestCacheWarmStart(t *testing.T) {
	tier.Gate(t)
	path, origins := t.TempDir(), sizes.Of(100_000)
	body := []byte("User-agent: *\n" + strings.Repeat("Disallow: /a/typical/path\n", 20) + "Sitemap: https://www.example.com/sitemap.xml\n")
	store := openDir(t, path)
	start := time.Now()
	const chunk = 1000 // what the queue of writes holds
	for from := 0; from < origins; from += chunk {
		c := &cache.Cache{Store: store, StoreTimeout: time.Minute} // of a busy machine
		for i := from; i < from+chunk; i++ {
			mustGet(t, c, i, func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return file(body), nil })
		}
		if err := c.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	filled := time.Since(start)

	start = time.Now()
	store = openDir(t, path)
	opened := time.Since(start)
	c := &cache.Cache{Store: store, StoreTimeout: time.Minute, MaxOrigins: origins, MaxBytes: 1 << 30}
	for i := range origins {
		mustGet(t, c, i, func(_ context.Context, o fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
			return nil, fmt.Errorf("%v is fetched although the directory has it", o)
		})
	}
	t.Logf("%d origins: put in %v, opened in %v, looked up one after the other in %v; %+v",
		origins, filled.Round(time.Millisecond), opened.Round(time.Microsecond), time.Since(start).Round(time.Millisecond), c.Stats())
}

func openDir(t *testing.T, path string) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustGet(t *testing.T, c *cache.Cache, i int, load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)) {
	t.Helper()
	o, err := fetch.OriginOf(&url.URL{Scheme: "http", Host: fmt.Sprintf("a%d.example", i)})
	if err != nil {
		t.Fatal(err)
	}
	if r, _, err := c.Get(context.Background(), o, &cache.Source{Load: load}); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
}
