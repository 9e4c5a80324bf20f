package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
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
	return &cache.Source{Load: f.Fetch, UserAgent: f.UserAgent, Dialect: f.Dialect, Kind: f.Kind()}
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
			if r, err := c.Get(ctx, o, &cache.Source{Load: s.load}); err != context.DeadlineExceeded || r != nil {
				t.Errorf("the leader got %v, %v, want the error of its context", r, err)
			}
		})
		synctest.Wait()
		r, err := c.Get(t.Context(), o, &cache.Source{Load: s.load})
		if err != nil || r.Err != nil {
			t.Errorf("the follower got %v, %v", r, err)
		}
		left.Wait()
		if _, err := c.Get(t.Context(), o, &cache.Source{Load: s.load}); err != nil || s.count() != 1 {
			t.Errorf("afterwards: %v and %d fetches, want 1", err, s.count())
		}
		if _, err := c.Get(ctx, origin(t, "https://b.example"), &cache.Source{Load: s.load}); err != context.DeadlineExceeded || s.count() != 1 {
			t.Errorf("a caller who is gone already: %v and %d fetches, want none for it", err, s.count())
		}
	})
}

func TestALoadThatMisbehavesIsUnreachable(t *testing.T) {
	for name, load := range map[string]func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error){
		"is nil":          nil,
		"panics":          func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { panic("boom") },
		"panics with nil": func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { panic(error(nil)) },
		"exits": func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			runtime.Goexit()
			return nil, nil
		},
		"returns nothing":   func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return nil, nil },
		"returns no policy": func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return &fetch.Result{}, nil },
		"returns an error":  func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return nil, errDown },
		"heeds its deadline": func(ctx context.Context, _ fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"ignores its deadline": func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			time.Sleep(time.Hour)
			return rules("/"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, start := new(cache.Cache), time.Now()
				r, err := c.Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: load})
				if err != nil || r.Err == nil || r.Policy.Decide("examplebot", "/").Reason != policy.ReasonUnreachable {
					t.Errorf("got %s, %v, want an unreachable result", brief(r), err)
				} else if says := "Source.Load is nil"; (load == nil) != strings.Contains(r.Err.Error(), says) {
					t.Errorf("got Err %v, want one that says %q if there is no Load", r.Err, says)
				}
				if d := time.Since(start); d > 2*time.Minute {
					t.Errorf("took %v", d)
				}
				time.Sleep(time.Hour) // let the last one end
			})
		})
	}
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
			_, err := c.Get(t.Context(), origin(t, "https://b.example"), &cache.Source{Load: (&site{delay: time.Minute}).load})
			waiting <- err
		}()
		synctest.Wait()
		if err := c.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-waiting; err != cache.ErrClosed {
			t.Errorf("a waiting caller got %v, want %v", err, cache.ErrClosed)
		}
		if _, err := c.Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: s.load}); err != cache.ErrClosed {
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
	got, err := new(cache.Cache).Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: s.load})
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
