package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func origin(t testing.TB, raw string) fetch.Origin {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// site answers robots.txt fetches with whatever serve returns, and counts them.
type site struct {
	serve func(n int, prev *fetch.Result) *fetch.Result // n: how many fetches there were before
	delay time.Duration

	dialect policy.Dialect // that it is read in

	mu      sync.Mutex
	fetches int
}

func (s *site) load(ctx context.Context, _ fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
	s.mu.Lock()
	n := s.fetches
	s.fetches++
	s.mu.Unlock()
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := *s.serve(n, prev)
	r.Dialect = s.dialect
	r.Time = time.Now()
	return &r, nil
}

// brief is what a failing test prints of a result.
func brief(r *fetch.Result) string {
	if r == nil {
		return "no result"
	}
	reason := "no policy"
	if r.Policy != nil {
		reason = fmt.Sprintf("policy %.80q", r.Policy)
	}
	return fmt.Sprintf("%d %.200v at %v in %v, %s, %v", r.StatusCode, r.Header, r.Time, r.Dialect, reason, r.Err)
}

// sourceOf is what a Fetcher brings.
func sourceOf(f *fetch.Fetcher) *cache.Source {
	return &cache.Source{Load: f.Fetch, Reader: f.Reader(), Dialect: f.Dialect}
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// rules is an answer with rules that disallow a path; fields come in pairs.
func rules(path string, fields ...string) *fetch.Result {
	body := []byte("User-agent: *\nDisallow: " + path + "\n")
	return &fetch.Result{StatusCode: 200, Header: header(fields...), Body: body, Policy: policy.Parse(body)}
}

func unavailable(code int, fields ...string) *fetch.Result {
	return &fetch.Result{StatusCode: code, Header: header(fields...), Policy: policy.Unavailable()}
}

var errDown = errors.New("connection refused")

func down() *fetch.Result { return &fetch.Result{Err: errDown, Policy: policy.Unreachable()} }

func header(fields ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return h
}

// causeOf is the cause that a failure states.
func causeOf(err error) string {
	if f, ok := errors.AsType[*fetch.Failure](err); ok {
		return f.Cause
	}
	return ""
}

func always(r *fetch.Result) func(int, *fetch.Result) *fetch.Result {
	return func(int, *fetch.Result) *fetch.Result { return r }
}

// inTurn serves one answer after the other, the last one for ever.
func inTurn(answers ...*fetch.Result) func(int, *fetch.Result) *fetch.Result {
	return func(n int, _ *fetch.Result) *fetch.Result { return answers[min(n, len(answers)-1)] }
}

func TestZeroValueCachesForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache).WithoutSpread(), &site{serve: always(rules("/private"))}
		for _, step := range []struct {
			wait    time.Duration
			fetches int
		}{{0, 1}, {19*time.Hour + 11*time.Minute, 1}, {2 * time.Minute, 2}, {19 * time.Hour, 2}, {24 * time.Hour, 3}} {
			time.Sleep(step.wait) // past 80 % of a day it is refreshed behind the caller
			if allowed(t, c, s, "/private/x") || !allowed(t, c, s, "/public") {
				t.Errorf("after another %v: not the rules of the file", step.wait)
			}
			if synctest.Wait(); s.count() != step.fetches {
				t.Errorf("after another %v: %d fetches, want %d", step.wait, s.count(), step.fetches)
			}
		}
	})
}

// allowed asks the cache and then its answer.
func allowed(t *testing.T, c *cache.Cache, s *site, target string) bool {
	t.Helper()
	r := ask(t, c, &cache.Source{Load: s.load}, "https://a.example")
	return r.Policy.Decide("examplebot", target).Allowed
}

func TestACallerWhoLeavesFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache), &site{serve: always(rules("/private")), delay: 2 * time.Second}
		o := origin(t, "https://a.example")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var left sync.WaitGroup
		left.Go(func() {
			if r, _, err := c.Get(ctx, o, &cache.Source{Load: s.load}); err != context.DeadlineExceeded || r != nil {
				t.Errorf("the leader got %v, %v, want the error of its context", r, err)
			}
		})
		synctest.Wait()
		r, _, err := c.Get(t.Context(), o, &cache.Source{Load: s.load})
		if err != nil || r.Err != nil {
			t.Errorf("the follower got %v, %v", r, err)
		}
		left.Wait()
		if _, _, err := c.Get(t.Context(), o, &cache.Source{Load: s.load}); err != nil || s.count() != 1 {
			t.Errorf("afterwards: %v and %d fetches, want 1", err, s.count())
		}
	})
}

// A stranger's bytes may make a fetch panic: a failure with a pause. What does not heed its deadline is not ours.
func TestAPanicOfAFetchIsAFailureWithAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, loads := new(cache.Cache).WithoutSpread(), 0
		src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			loads++
			panic("boom")
		}}
		for range 2 {
			r := ask(t, c, src, "https://a.example")
			if r.Policy.Decide("examplebot", "/").Reason != policy.ReasonUnreachable || !strings.Contains(r.Err.Error(), "boom") {
				t.Errorf("got %s, want an unreachable result", brief(r))
			}
			time.Sleep(29 * time.Second)
		}
		if ask(t, c, src, "https://a.example"); loads != 2 {
			t.Errorf("%d loads in 58 seconds, want 2", loads)
		}
		closeCache(t, c)

		store := new(memStore)
		c = &cache.Cache{Store: store, Logger: quiet}
		get(t, c, &site{serve: always(rules("/private"))}, "https://a.example")
		closeCache(t, c)
		time.Sleep(25 * time.Hour)
		c = &cache.Cache{Store: store, Logger: quiet}
		if got := verdictOf(ask(t, c, src, "https://a.example")); got != "rules" {
			t.Errorf("with a copy in the Store: %s, want rules", got)
		}
		closeCache(t, c)
	})
}

// An error of Load goes to all who wait, as it is, and nothing is kept of it. A copy that would serve in an outage does.
func TestAnErrorOfLoadGoesToAllWhoWait(t *testing.T) {
	turn := errors.New("no turn before noon")
	for _, tt := range []struct {
		name   string
		outage cache.Outage
		first  *fetch.Result
		copied bool
	}{
		{"nothing known", cache.LastGood, nil, false},
		{"a copy", cache.LastGood, rules("/private", "Cache-Control", "max-age=60"), true},
		{"a copy, strictly", cache.Strict, rules("/private", "Cache-Control", "max-age=60"), false},
		{"no file", cache.LastGood, unavailable(404, "Cache-Control", "max-age=60"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			c := (&cache.Cache{Outage: tt.outage, NoRefresh: true, Store: store}).WithoutSpread()
			if tt.first != nil {
				get(t, c, &site{serve: always(tt.first)}, "https://a.example")
				time.Sleep(time.Hour)
			}
			before, puts, loads := c.Stats(), store.count("Put"), 0
			src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				loads++
				time.Sleep(time.Second)
				return nil, turn
			}}
			for round := range 2 {
				var asking sync.WaitGroup
				for range 3 {
					asking.Go(func() {
						r, _, err := c.Get(t.Context(), origin(t, "https://a.example"), src)
						if (r != nil) != tt.copied || !tt.copied && err != turn {
							t.Errorf("%s: got %s, %v", tt.name, brief(r), err)
						}
					})
				}
				asking.Wait()
				if loads != round+1 || c.Stats() != before || store.count("Put") != puts {
					t.Errorf("%s: %d loads in round %d; %+v became %+v", tt.name, loads, round, before, c.Stats())
				}
				time.Sleep(5 * time.Second)
			}
			if get(t, c, &site{serve: always(rules("/new"))}, "https://a.example").Policy.Decide("x", "/new").Allowed {
				t.Errorf("%s: then the site is not asked", tt.name)
			}
			closeCache(t, c)
		})
	}
}

// With a context that has ended, Get says what holds at present; if there is nothing, it starts the fetch.
func TestGetWithAnEndedContextStartsTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache).WithoutSpread(), &site{serve: always(rules("/private", "Cache-Control", "max-age=60")), delay: time.Second}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for i, step := range []struct {
			after   time.Duration
			holds   bool
			fetches int
		}{{0, false, 1}, {time.Second / 2, false, 1}, {time.Second, true, 1}, {time.Minute, false, 2}, {2 * time.Second, true, 2}} {
			time.Sleep(step.after)
			r, until, err := c.Get(ended, origin(t, "https://a.example"), &cache.Source{Load: s.load})
			synctest.Wait()
			if step.holds != (r != nil) || step.holds == errors.Is(err, context.Canceled) || s.count() != step.fetches {
				t.Errorf("step %d: got %s, %v after %d fetches, want one: %v", i, brief(r), err, s.count(), step.holds)
			}
			if step.holds && (until.Before(time.Now()) || until.After(r.Time.Add(time.Minute))) {
				t.Errorf("step %d: it holds until %v", i, until)
			}
		}
		closeCache(t, c)
	})
}

// What a crawler was told is for another one, or for the same with a signature, never used.
func TestReadersShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		for round := range 2 { // the second time from the Store
			c := &cache.Cache{Store: store, Logger: quiet}
			for i, reader := range []string{"a", "a signed", "b", ""} {
				s := &site{serve: always(rules(fmt.Sprint("/", i)))}
				r := ask(t, c, &cache.Source{Load: s.load, Reader: reader}, "https://a.example")
				if r.Policy.Decide("x", fmt.Sprint("/", i)).Allowed || s.count() != 1-round {
					t.Errorf("round %d, %q: got %s after %d fetches", round, reader, brief(r), s.count())
				}
			}
			if n := c.Stats().Origins; n != 4 {
				t.Errorf("%d entries", n)
			}
			closeCache(t, c)
		}
	})
}

func TestRetryAfterIsHonouredUpToADay(t *testing.T) {
	for _, tt := range []struct{ stated, want time.Duration }{
		{0, 30 * time.Second}, {time.Second, 30 * time.Second}, {-time.Hour, 30 * time.Second},
		{2 * time.Hour, 2 * time.Hour}, {24 * 365 * time.Hour, 24 * time.Hour}, {1<<63 - 1, 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			answer := down()
			answer.RetryAfter = tt.stated
			c, s := new(cache.Cache).WithoutSpread(), &site{serve: always(answer)}
			allowed(t, c, s, "/x")
			time.Sleep(tt.want - time.Second)
			allowed(t, c, s, "/x")
			early := s.count()
			time.Sleep(time.Second)
			allowed(t, c, s, "/x")
			if early != 1 || s.count() != 2 {
				t.Errorf("Retry-After %v: %d fetches before %v and %d at it, want 1 and 2", tt.stated, early, tt.want, s.count())
			}
		})
	}
}

func TestGetAfterCloseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache), &site{serve: always(rules("/private"))}
		allowed(t, c, s, "/x")
		waiting := make(chan error)
		go func() {
			_, _, err := c.Get(t.Context(), origin(t, "https://b.example"), &cache.Source{Load: (&site{delay: time.Minute}).load})
			waiting <- err
		}()
		synctest.Wait()
		if err := c.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-waiting; err != cache.ErrClosed {
			t.Errorf("a waiting caller got %v, want %v", err, cache.ErrClosed)
		}
		if _, _, err := c.Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: s.load}); err != cache.ErrClosed {
			t.Errorf("a later caller got %v", err)
		}
		if err := c.Shutdown(t.Context()); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	})
}

func TestAHostileAnswerIsCutDownBeforeItIsKept(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	r := rules("/private", "Set-Cookie", long, "ETag", `"`+long+`"`, "Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT", "Cache-Control", "max-age=3600, x="+long)
	r.Redirects = []string{"https://b.example/" + long}
	s := &site{serve: always(r)}
	got, _, err := new(cache.Cache).Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: s.load})
	if err != nil {
		t.Fatal(err)
	}
	if got.Body != nil || got.Redirects != nil || len(got.Header) != 1 || got.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("kept %d bytes of body, redirects %.40q, header %.40q: want that it is stale, and no validator for a URL that is not known", len(got.Body), got.Redirects, got.Header)
	}
}

func TestCloseWaitsForTheLoadItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Bool
		c := new(cache.Cache)
		o := origin(t, "http://a.example")
		go c.Get(context.Background(), o, &cache.Source{Load: func(ctx context.Context, _ fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
			running.Store(true)
			defer running.Store(false)
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // closing connections takes its time
			return nil, ctx.Err()
		}})
		synctest.Wait()
		if err := c.Shutdown(t.Context()); err != nil || running.Load() {
			t.Errorf("Close returned %v while load still runs (%t)", err, running.Load())
		}
	})
}
