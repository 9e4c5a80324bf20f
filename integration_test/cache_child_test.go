package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// childMeets asks for the robots.txt of all origins in one moment, and prints which answers were wrong, how many calls
// of the Store failed, and when the last caller had his answer.
func childMeets(redisURL, site string) {
	store, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	f := &fetch.Fetcher{UserAgent: userAgent, Transport: &http.Transport{DialContext: dialTo(site)}}
	c := &cache.Cache{Store: store, Logger: slog.New(slog.DiscardHandler)}
	begin := time.UnixMilli(int64(proc.Number("ROBOTSGATE_BEGIN")))
	time.Sleep(time.Until(begin))
	var callers sync.WaitGroup
	for i := range proc.Number("ROBOTSGATE_ORIGINS") {
		callers.Go(func() {
			o, err := fetch.OriginOf(siteURL(i))
			if err != nil {
				proc.Fail(err)
			}
			r, _, err := c.Get(context.Background(), o, &cache.Source{Load: f.Fetch, Reader: f.Reader()})
			if err != nil || r.Err != nil || r.Policy.Decide("examplebot", fmt.Sprint("/private", i)).Allowed {
				fmt.Println("wrong:", i, err, r)
			}
		})
	}
	callers.Wait()
	fmt.Println(c.Stats().StoreErrors, time.Since(begin).Milliseconds())
	if err := c.Shutdown(context.Background()); err != nil {
		proc.Fail(err)
	}
}

// Four processes that meet the same origins in one moment fetch each file once. The promise is for a Redis that answers
// in time: to wait longer would be worse than to fetch twice. Where the machine is too busy for that, it is tried again.
func TestCacheProcessesFetchOnceForAll(t *testing.T) {
	tier.Gate(t)
	for name, far := range map[string]time.Duration{"near": 0, "Redis 50 ms away": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			aside(t)
			origins := 300
			if *full {
				origins = 10_000
			}
			s := startRedis(t)
			url := (&strand{latency: far}).lay(t, s)
			for range 3 {
				s.do(t, "FLUSHALL")
				fetches, inTime := meet(t, url, 4, origins)
				switch {
				case fetches == origins:
					return
				case inTime:
					t.Fatalf("%d fetches of %d files by four processes, want one of each", fetches, origins)
				}
			}
			t.Skip("three times the Store or the site was too late on this busy machine")
		})
	}
}

// meet lets processes meet origins that Redis does not know. It returns how many files were fetched, and whether the
// Store and the site were in time.
func meet(t *testing.T, redisURL string, processes, origins int) (int, bool) {
	t.Helper()
	var fetches atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		time.Sleep(100 * time.Millisecond) // long enough for all to ask meanwhile
		fmt.Fprintf(w, "User-agent: *\nDisallow: /private%d\n", numberOf(r.Host))
	}))
	defer site.Close()
	var lines []*bufio.Scanner
	for range processes {
		cmd := proc.Child(t, "meeter", "ROBOTSGATE_REDIS="+redisURL, "ROBOTSGATE_SITE="+site.Listener.Addr().String(),
			fmt.Sprint("ROBOTSGATE_ORIGINS=", origins), fmt.Sprint("ROBOTSGATE_BEGIN=", time.Now().Add(time.Second).UnixMilli()))
		lines = append(lines, proc.Lines(t, cmd))
	}
	inTime := true
	for _, out := range lines {
		said := false
		for out.Scan() {
			var failed, last int
			if strings.HasPrefix(out.Text(), "wrong") {
				t.Error(out.Text())
			} else if _, err := fmt.Sscan(out.Text(), &failed, &last); err == nil {
				said, inTime = true, inTime && failed == 0 && last < 15_000
				t.Logf("%d calls of the Store failed, the last answer after %d ms", failed, last)
			}
		}
		if !said {
			t.Error("a process ended before it was done")
		}
	}
	return int(fetches.Load()), inTime
}
