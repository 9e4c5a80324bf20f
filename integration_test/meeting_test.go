package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// childMeets asks for the robots.txt of all origins in one moment, and prints how late the last
// caller had its answer.
func childMeets(redisURL, site string) {
	store, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	f := &fetch.Fetcher{UserAgent: userAgent, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", site)
		},
	}}
	c := &cache.Cache{Store: store, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	origins := make([]fetch.Origin, proc.Number("ROBOTSGATE_ORIGINS"))
	for i := range origins {
		if origins[i], err = fetch.OriginOf(siteURL(i)); err != nil {
			proc.Fail(err)
		}
	}
	begin := time.UnixMilli(int64(proc.Number("ROBOTSGATE_BEGIN")))
	time.Sleep(time.Until(begin))
	var callers sync.WaitGroup
	var late atomic.Int64
	for i, o := range origins {
		callers.Go(func() {
			r, _, err := c.Get(context.Background(), o, &cache.Source{Load: f.Fetch, Reader: f.Reader()})
			if err != nil || r.Err != nil || r.Policy.Decide("examplebot", fmt.Sprint("/private", i)).Allowed {
				fmt.Println("wrong:", i, err, r)
			}
			for took := int64(time.Since(begin)); ; {
				if before := late.Load(); took <= before || late.CompareAndSwap(before, took) {
					return
				}
			}
		})
	}
	callers.Wait()
	fmt.Println("late:", late.Load()/1e6)
	fmt.Println("errors:", c.Stats().StoreErrors)
	if err := c.Shutdown(context.Background()); err != nil {
		proc.Fail(err)
	}
}

// meeting is what came of a number of processes that met the same origins in one moment.
type meeting struct {
	fetches int
	late    time.Duration // the last caller's wait, of all processes
	errors  int           // calls of the Store that failed
	wrong   []string      // answers, and processes that failed
}

// busy reports whether the Store or the site was too late for what is promised of those that answer in time.
func (m meeting) busy() bool { return m.errors > 0 || m.late >= 15*time.Second }

// meet lets processes meet origins, over a Redis that knows none of them.
func meet(t *testing.T, redisURL string, processes, origins int) meeting {
	t.Helper()
	var fetches atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		time.Sleep(100 * time.Millisecond)
		fmt.Fprintf(w, "User-agent: *\nDisallow: /private%s\n", strings.TrimSuffix(strings.TrimPrefix(r.Host, "a"), ".example"))
	}))
	defer site.Close()
	begin := time.Now().Add(time.Second)
	var got meeting
	var children []*exec.Cmd
	var lines []*bufio.Scanner
	for range processes {
		cmd, out := child(t, "meeter", "ROBOTSGATE_REDIS="+redisURL, "ROBOTSGATE_SITE="+site.Listener.Addr().String(),
			fmt.Sprint("ROBOTSGATE_ORIGINS=", origins), fmt.Sprint("ROBOTSGATE_BEGIN=", begin.UnixMilli()))
		children, lines = append(children, cmd), append(lines, out)
	}
	for i, out := range lines {
		for out.Scan() {
			what, n, _ := strings.Cut(out.Text(), ": ")
			count, err := strconv.Atoi(n)
			switch {
			case err == nil && what == "late":
				got.late = max(got.late, time.Duration(count)*time.Millisecond)
			case err == nil && what == "errors":
				got.errors += count
			default:
				got.wrong = append(got.wrong, out.Text())
			}
		}
		if err := children[i].Wait(); err != nil {
			got.wrong = append(got.wrong, err.Error())
		}
	}
	got.fetches = int(fetches.Load())
	return got
}

// Four processes that meet the same origins in one moment fetch each file once, and none of
// their callers waits for longer than it takes one process twice.
func TestCacheAFleetFetchesOnceForAll(t *testing.T) {
	origins, most := 1000/proc.Slowdown(), 1.05
	if *sizes.Full {
		origins, most = 10_000, 1.01
	}
	for _, tt := range []struct {
		name    string
		busy    int // loops beside it
		far     time.Duration
		origins int
		most    float64
	}{
		{"alone", 0, 0, origins, most},
		{"beside two busy loops", 2, 0, origins, 1.05},
		{"beside twenty", 20, 0, 300, 1.05},
		{"Redis 50 ms away", 0, 50 * time.Millisecond, 300, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.busy > 0 {
				tier.Nightly(t)
			}
			if tt.busy > 2 && !*sizes.Full {
				t.Skip("with -full: the tests beside it would wait")
			}
			aside(t)
			defer busyLoops(t, tt.busy)()
			s, origins := startRedis(t), tt.origins
			if tt.far > 0 {
				s.url = proxyTo(t, s, tt.far, 0)
			}
			for try := 1; ; try++ {
				s.do(t, "FLUSHALL")
				one := meet(t, s.url, 1, origins)
				s.do(t, "FLUSHALL")
				commands := s.commands(t)
				four := meet(t, s.url, 4, origins)
				t.Logf("%d origins: one process %d fetches, %v; four processes %d fetches (%.4f an origin), %v; %d and %d errors; %.1f commands an origin",
					origins, one.fetches, one.late, four.fetches, float64(four.fetches)/float64(origins), four.late, one.errors, four.errors,
					(s.commands(t)-commands)/float64(origins))
				wrong, busy := append(one.wrong, four.wrong...), one.busy() || four.busy()
				switch good := float64(four.fetches) <= tt.most*float64(origins) && len(wrong) == 0; {
				case !good && busy && try < 3:
					continue
				case !good && busy && !*sizes.Full:
					t.Skip("three times the Store or the site was too late on this busy machine")
				case !good:
					t.Errorf("%d fetches of %d files, want %.2f times as many at most; wrong: %q", four.fetches, origins, tt.most, wrong)
				}
				if *sizes.Full && tt.busy <= 2 && four.late > 2*one.late {
					t.Errorf("the last caller of four processes waited %v, of one process %v", four.late, one.late)
				}
				return
			}
		})
	}
}

// busyLoops starts processes that do nothing but take time, and returns what ends them.
func busyLoops(t *testing.T, n int) (end func()) {
	t.Helper()
	var loops []*exec.Cmd
	for range n {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		proc.Own(t, cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		loops = append(loops, cmd)
	}
	return func() {
		for _, cmd := range loops {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
}
