package cache_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// cloaked is an origin that has a file for each crawler, which forbids the path of its name.
type cloaked struct {
	fields http.Header
	delay  time.Duration
	down   atomic.Bool

	mu    sync.Mutex
	asked map[string]int // by User-Agent
}

func (o *cloaked) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(o.delay)
	agent := req.Header.Get("User-Agent")
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked == nil {
		o.asked = map[string]int{}
	}
	o.asked[agent]++
	res := &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: o.fields.Clone(), Request: req, Body: http.NoBody}
	switch {
	case o.down.Load():
		res.StatusCode = 503
	case req.Header.Get("If-Modified-Since") != "":
		res.StatusCode = 304
	default:
		res.Body = io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /" + agent + "\n"))
	}
	return res, nil
}

func (o *cloaked) count(agent string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[agent]
}

func (o *cloaked) fetcher(agent string) *fetch.Fetcher {
	return &fetch.Fetcher{Transport: o, UserAgent: agent, Retries: -1}
}

// whose asks for the robots.txt and says whose it is, as the paths show that it forbids.
func whose(t *testing.T, c *cache.Cache, src *cache.Source, agents ...string) string {
	t.Helper()
	r, err := c.Get(t.Context(), origin(t, "https://a.example"), src)
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range agents {
		if !r.Policy.Decide("x", "/"+agent).Allowed && r.Err == nil {
			return agent
		}
	}
	return fmt.Sprint(r.Err)
}

// An answer that varies by User-Agent is for requests with the same one (RFC 9111 §4.1).
func TestAnAnswerIsForTheUserAgentItVariesBy(t *testing.T) {
	for vary, apart := range map[string]bool{
		"User-Agent": true, "Accept-Encoding, user-agent": true,
		"": false, "Accept-Encoding": false, "Accept, Cookie": false, "X-User-Agent": false,
	} {
		t.Run(vary, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &cloaked{fields: header("Vary", vary, "Cache-Control", "max-age=3600", "Last-Modified", "Thu, 01 Jan 1998 00:00:00 GMT")}
				c := new(cache.Cache).WithoutSpread()
				a, b := o.fetcher("a"), o.fetcher("b")
				want := map[string]string{"a": "a", "b": "a"}
				if apart {
					want["b"] = "b"
				}
				for range 3 {
					for range 3 {
						for _, f := range []*fetch.Fetcher{a, b} {
							if got := whose(t, c, sourceOf(f), "a", "b"); got != want[f.UserAgent] {
								t.Errorf("%s has the file of %s, want the one of %s", f.UserAgent, got, want[f.UserAgent])
							}
						}
					}
					time.Sleep(3601 * time.Second)
				}
				if n := o.count("b"); (n == 3) != apart || !apart && n != 0 {
					t.Errorf("asked %d times by b", n)
				}
				if n := o.count("a"); n != 3 {
					t.Errorf("asked %d times by a, want 3", n)
				}
				if n := c.Stats().Origins; n > 2 || n > 1 && !apart {
					t.Errorf("%d entries", n)
				}
				closeCache(t, c)
			})
		})
	}
}

// Those who wait for one flight need not be those whom its answer is for.
func TestAFlightsAnswerIsNotForAllWhoJoinedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &cloaked{fields: header("Vary", "User-Agent"), delay: time.Second}
		c := new(cache.Cache)
		agents := []string{"a", "b", "c"}
		var callers sync.WaitGroup
		for i := range 30 {
			agent := agents[i%3]
			callers.Go(func() {
				if got := whose(t, c, sourceOf(o.fetcher(agent)), agents...); got != agent {
					t.Errorf("%s has the file of %s", agent, got)
				}
			})
		}
		callers.Wait()
		for _, agent := range agents {
			if n := o.count(agent); n != 1 {
				t.Errorf("asked %d times by %s, want once", n, agent)
			}
		}
		closeCache(t, c)
	})
}

// Caches that share a Store take what was stored for their own User-Agent only, and leave
// the one of others there, fresh or not, in an outage too.
func TestCachesOfTwoUserAgentsShareAStore(t *testing.T) {
	for _, store := range []cache.Store{new(memStore), new(lockStore)} {
		t.Run(fmt.Sprintf("%T", store), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &cloaked{fields: header("Vary", "User-Agent", "Cache-Control", "max-age=3600")}
				ask := func(agent, want string) {
					t.Helper()
					c := &cache.Cache{Store: store, Logger: quiet}
					for range 2 {
						if got := whose(t, c, sourceOf(o.fetcher(agent)), "a", "b"); got != want {
							t.Errorf("%s has the file of %s, want the one of %s", agent, got, want)
						}
					}
					closeCache(t, c)
				}
				ask("a", "a")
				ask("b", "b")
				ask("a", "a")
				ask("b", "b")
				if o.count("a") != 1 || o.count("b") != 1 {
					t.Errorf("asked %d times by a and %d times by b, want once each", o.count("a"), o.count("b"))
				}
				time.Sleep(2 * time.Hour)
				ask("b", "b") // who finds a's file stale
				ask("a", "a")
				if o.count("a") != 2 || o.count("b") != 2 {
					t.Errorf("asked %d times by a and %d times by b, want twice each", o.count("a"), o.count("b"))
				}
				time.Sleep(2 * time.Hour)
				o.down.Store(true)
				ask("b", "b")
				ask("a", "a")
				if got := whose(t, &cache.Cache{Store: store, Logger: quiet}, sourceOf(o.fetcher("c")), "a", "b"); !strings.Contains(got, "503") {
					t.Errorf("c has the file of %s in an outage, want none", got)
				}
			})
		})
	}
}

// A redirect that names User-Agent leads others elsewhere, perhaps.
func TestARedirectsVaryCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &cloaked{fields: http.Header{}}
		f := func(agent string) *fetch.Fetcher {
			return &fetch.Fetcher{UserAgent: agent, Retries: -1, Transport: roundTripFunc(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path != "/robots.txt" {
					return o.RoundTrip(req)
				}
				return &http.Response{StatusCode: 302, Body: http.NoBody, Header: header("Vary", "User-Agent", "Location", "/"+agent)}, nil
			})}
		}
		c := new(cache.Cache)
		for _, agent := range []string{"a", "b", "a"} {
			if got := whose(t, c, sourceOf(f(agent)), "a", "b"); got != agent {
				t.Errorf("%s has the file of %s", agent, got)
			}
		}
		closeCache(t, c)
	})
}

// A Source that names another User-Agent than its Load sends gets the answers of its own
// Load, and no caller of another Source gets them.
func TestASourceThatNamesAnotherAgentGetsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &cloaked{fields: header("Vary", "User-Agent")}
		c := new(cache.Cache)
		a, b := sourceOf(o.fetcher("a")), sourceOf(o.fetcher("b"))
		b.UserAgent = "c"
		for range 2 {
			for want, src := range map[string]*cache.Source{"a": a, "b": b} {
				if got := whose(t, c, src, "a", "b"); got != want {
					t.Errorf("%s has the file of %s", want, got)
				}
			}
		}
		closeCache(t, c)
	})
}

// Crawlers that send what net/http sends by itself are one crawler.
func TestAnEmptyUserAgentIsThatOfNetHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &cloaked{fields: header("Vary", "User-Agent")}
		c := new(cache.Cache)
		for range 2 {
			for _, agent := range []string{"", "Go-http-client/1.1"} {
				if got := whose(t, c, sourceOf(o.fetcher(agent)), "Go-http-client/1.1"); got != "Go-http-client/1.1" {
					t.Errorf("%q has the file of %s", agent, got)
				}
			}
		}
		if n := o.count("") + o.count("Go-http-client/1.1"); n != 1 || c.Stats().Origins != 1 {
			t.Errorf("asked %d times for %d entries, want one of each", n, c.Stats().Origins)
		}
		closeCache(t, c)
	})
}

// Any number of variants stays within the byte bound.
func TestVariantsStayWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &cloaked{fields: header("Vary", "User-Agent")}
		c := &cache.Cache{MaxBytes: 64 << 10}
		for i := range 1000 {
			agent := fmt.Sprintf("bot%d-%s", i, strings.Repeat("x", 100))
			if got := whose(t, c, sourceOf(o.fetcher(agent)), agent); got != agent {
				t.Fatalf("%s has the file of %s", agent, got)
			}
			if s := c.Stats(); s.Bytes > 64<<10 || s.Bytes < 200*int64(s.Origins) {
				t.Fatalf("%d entries of %d bytes in all", s.Origins, s.Bytes)
			}
		}
		closeCache(t, c)
	})
}

// A hit costs no allocation where an answer varies, either.
func TestAHitOnAVariantAllocatesNothing(t *testing.T) {
	o := &cloaked{fields: header("Vary", "User-Agent")}
	c, at := new(cache.Cache), origin(t, "https://a.example")
	for _, agent := range []string{"a", "b"} {
		src := sourceOf(o.fetcher(agent))
		if n := testing.AllocsPerRun(100, func() { c.Get(t.Context(), at, src) }); n != 0 {
			t.Errorf("%s: %v allocations", agent, n)
		}
	}
	closeCache(t, c)
}
