package cache_test

import (
	"context"
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
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
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
	r := ask(t, c, src, "https://a.example")
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
			return &fetch.Fetcher{UserAgent: agent, Retries: -1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
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

// told is a Source whose answers are given.
func told(agent string, r *fetch.Result) *cache.Source {
	return &cache.Source{UserAgent: agent, Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		n := *r
		n.Time = time.Now()
		if n.Header.Get("Vary") != "" && n.Err == nil {
			n.UserAgent = agent
		}
		return &n, nil
	}}
}

// What a firewall tells one crawler opens nothing to another that has a file of its own: fresh or in
// an outage, in memory or in a Store, after a restart, and in whatever order they ask.
func TestWhatOneCrawlerIsToldOpensNothingToAnother(t *testing.T) {
	own := rules("/secret", "Vary", "User-Agent", "Cache-Control", "max-age=86400")
	for name, store := range map[string]cache.Store{"memory": nil, "store": new(memStore), "locks": new(lockStore)} {
		for _, wall := range []*fetch.Result{
			unavailable(401), unavailable(403), unavailable(404), unavailable(410, "Vary", "User-Agent"), rules("/other"),
		} {
			for _, met := range []bool{false, true} { // whether a has been told its own before
				t.Run(fmt.Sprintf("%s, %d, %v", name, wall.StatusCode, met), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						if store != nil { // an empty one for each case
							store = map[bool]cache.Store{true: new(lockStore), false: new(memStore)}[name == "locks"]
						}
						c := &cache.Cache{Store: store, Logger: quiet}
						closed := func(c *cache.Cache, when string, src *cache.Source) {
							t.Helper()
							r, err := c.Get(t.Context(), origin(t, "https://a.example"), src)
							if err != nil || r.Policy.Decide("x", "/secret").Allowed {
								t.Errorf("%s, b may fetch /secret: %s, %v", when, brief(r), err)
							}
						}
						ask := func(c *cache.Cache, src *cache.Source) {
							if _, err := c.Get(t.Context(), origin(t, "https://a.example"), src); err != nil {
								t.Error(err)
							}
						}
						if met {
							ask(c, told("a", rules("/secret", "Vary", "User-Agent", "Cache-Control", "max-age=60")))
						}
						closed(c, "at first", told("b", own))
						time.Sleep(2 * time.Minute)
						ask(c, told("a", wall))
						closed(c, "after a was walled off", told("b", wall))
						if store == nil {
							closeCache(t, c)
							return
						}
						closeCache(t, c)
						slow := on("Get", func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil })
						if locks, ok := store.(*lockStore); ok {
							locks.misbehave(slow)
						} else {
							store.(*memStore).misbehave(slow)
						}
						c = &cache.Cache{Store: store, Logger: quiet}
						var both sync.WaitGroup // a leads the fetch, and b joins it
						both.Go(func() { ask(c, told("a", wall)) })
						both.Go(func() { time.Sleep(time.Millisecond); closed(c, "at a restart", told("b", wall)) })
						both.Wait()
						closed(c, "after a restart", told("b", wall))
						closeCache(t, c)
						time.Sleep(25 * time.Hour)
						c = &cache.Cache{Store: store, Logger: quiet}
						ask(c, told("a", wall))
						r, err := c.Get(t.Context(), origin(t, "https://a.example"), told("b", down()))
						if err != nil || r.Err != nil || r.Policy.Decide("x", "/secret").Allowed || !r.Policy.Decide("x", "/public").Allowed {
							t.Errorf("in an outage b gets %s, %v, want its own copy", brief(r), err)
						}
						closeCache(t, c)
					})
				})
			}
		}
	}
}

// In an outage each crawler finds its own last good copy, whatever became of the others' answers.
func TestEachUserAgentsOwnCopyOutlivesTheOthers(t *testing.T) {
	own := rules("/secret", "Vary", "User-Agent", "Cache-Control", "max-age=60")
	synctest.Test(t, func(t *testing.T) { // in memory, where a's entry gives way
		c := &cache.Cache{Size: 10}
		ask := func(src *cache.Source, url string) *fetch.Result {
			return ask(t, c, src, url)
		}
		ask(told("a", own), "https://a.example")
		ask(told("b", own), "https://a.example")
		time.Sleep(time.Hour)
		for i := range 40 {
			ask(told("b", unavailable(404)), fmt.Sprintf("https://s%d.example", i%20))
			if r := ask(told("b", down()), "https://a.example"); r.Err != nil {
				t.Fatalf("round %d: %v, want b's copy", i, r.Err)
			}
		}
		closeCache(t, c)
	})
	synctest.Test(t, func(t *testing.T) { // in a Store without locks that both reach at once
		store := new(memStore)
		agents := []string{"a", "b"}
		for _, r := range []*fetch.Result{own, down()} {
			var bots sync.WaitGroup
			for _, agent := range agents {
				bots.Go(func() {
					c := &cache.Cache{Store: store, Logger: quiet}
					got, err := c.Get(t.Context(), origin(t, "https://a.example"), told(agent, r))
					if err != nil || got.Err != nil {
						t.Errorf("%s: %s, %v", agent, brief(got), err)
					}
					closeCache(t, c)
				})
			}
			bots.Wait()
			time.Sleep(time.Hour)
		}
	})
	for name, store := range map[string]interface { // as boltstore, and as redisstore
		cache.Store
		lose(key string)
	}{"without locks": new(memStore), "with locks": new(lockStore)} {
		synctest.Test(t, func(t *testing.T) { // in a Store that has lost the place for all
			for _, r := range []*fetch.Result{own, down()} {
				for _, agent := range []string{"a", "b"} {
					c := &cache.Cache{Store: store, Logger: quiet}
					got, err := c.Get(t.Context(), origin(t, "https://a.example"), told(agent, r))
					if err != nil || got.Err != nil {
						t.Errorf("%s, %s: %s, %v", name, agent, brief(got), err)
					}
					closeCache(t, c)
				}
				store.lose("RGC4 https://a.example")
				time.Sleep(40 * time.Hour)
			}
		})
	}
}

// What is asked, or understood, in another way may be answered differently: it shares nothing.
func TestKindsOfSourcesShareNothing(t *testing.T) {
	signs := []func(*http.Request) error{nil, func(*http.Request) error { return nil }}
	for _, store := range []cache.Store{nil, new(lockStore)} {
		synctest.Test(t, func(t *testing.T) {
			for round := range 2 { // the second is a restart
				c := &cache.Cache{Store: store, Logger: quiet}
				var all sync.WaitGroup
				for i := range 32 {
					all.Go(func() {
						path := fmt.Sprintf("/%d", i%16)
						src := told("a", rules(path))
						if store != nil && round == 1 {
							src = told("a", down())
						}
						src.Kind = (&fetch.Fetcher{Sign: signs[i&1], PublicOnly: i&2 != 0, ObeyWalls: i&4 != 0, SameHost: i&8 != 0}).Kind()
						r, err := c.Get(t.Context(), origin(t, "https://a.example"), src)
						if err != nil || r.Err != nil || r.Policy.Decide("x", path).Allowed || !r.Policy.Decide("x", "/"+fmt.Sprint((i+1)%16)).Allowed {
							t.Errorf("round %d, source %d got %s, %v", round, i, brief(r), err)
						}
						if until := c.Until(origin(t, "https://a.example"), src); until.IsZero() {
							t.Errorf("source %d: no Until", i)
						}
					})
				}
				all.Wait()
				closeCache(t, c)
			}
		})
	}
}

// That memory has an answer for a User-Agent in one kind says nothing about another kind: who asks there has an end.
func TestAVariantOfAnotherKindHoldsUpNoOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		reads := 0
		c := &cache.Cache{Store: &memStore{before: func(_ context.Context, call string) error {
			if reads++; reads > 100 {
				cancel() // a loop would have no end
			}
			return nil
		}}}
		defer closeCache(t, c)
		for _, kind := range []fetch.Kind{1, 0, 1} {
			r := rules("/all")
			if kind == 1 {
				r = rules("/a", "Vary", "User-Agent")
			}
			src := told("a", r)
			src.Kind = kind
			if got, err := c.Get(ctx, origin(t, "https://a.example"), src); err != nil || got.Policy.String() != r.Policy.String() {
				t.Errorf("kind %v: %s, %v", kind, brief(got), err)
			}
		}
	})
}

// The places of one origin share the bound of one origin.
func TestVariantsOfOneOriginShareItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cache.Cache)
		get(t, c, &site{serve: always(rules("/p"))}, "https://other.example")
		big := rules("/"+strings.Repeat("x", 100<<10), "Vary", "User-Agent")
		for i := range 100 {
			for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
				src := told(fmt.Sprint("bot", i), big)
				src.Dialect = d
				ask(t, c, src, "https://a.example")
				if n := c.Stats().Bytes; n > 2<<20+4096 {
					t.Fatalf("%d bytes after %d variants, want 2 MiB at most", n, i)
				}
			}
		}
		if c.Until(origin(t, "https://other.example"), &cache.Source{}).IsZero() {
			t.Error("another origin had to go")
		}
		if c.Until(origin(t, "https://a.example"), told("bot99", big)).IsZero() {
			t.Error("the newest variant had to go")
		}
		closeCache(t, c)
	})
}

// User-Agents have keys of their own in a Store, even if their hashes begin alike.
func TestUserAgentsHaveKeysOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		c := &cache.Cache{Store: store, Logger: quiet}
		for i := range 300 {
			src := told(fmt.Sprint("bot", i), rules("/p", "Vary", "User-Agent"))
			ask(t, c, src, "https://a.example")
		}
		closeCache(t, c)
		if n := len(store.keys()); n != 300 {
			t.Errorf("%d keys for 300 User-Agents", n)
		}
	})
}

// A 429 that is for one User-Agent opens the site to no other.
func TestAStatusOfTheMomentIsForWhomItVariesBy(t *testing.T) {
	for _, first := range []*fetch.Result{rules("/secret", "Cache-Control", "max-age=60"), nil} {
		synctest.Test(t, func(t *testing.T) {
			c := (&cache.Cache{Outage: cache.Strict, NoRefresh: true}).WithoutSpread()
			if first != nil {
				ask(t, c, told("a", first), "http://a.example")
				time.Sleep(61 * time.Second)
			}
			ask(t, c, told("a", unavailable(429, "Vary", "User-Agent")), "http://a.example")
			if r := ask(t, c, told("b", rules("/secret")), "http://a.example"); r.Policy.Decide("x", "/secret").Allowed {
				t.Errorf("b may fetch /secret by what a was told: %d for %q", r.StatusCode, r.UserAgent)
			}
			closeCache(t, c)
		})
	}
}
