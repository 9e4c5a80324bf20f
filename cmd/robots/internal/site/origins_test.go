package site

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// found is a Waiter.
type found func(*fetch.Result)

func (f found) Found(r *fetch.Result) { f(r) }

func originNamed(t testing.TB, host string) fetch.Origin {
	t.Helper()
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: host})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Site answers for all origins, after a second, and counts.
type Site struct {
	mu          sync.Mutex
	asked       map[fetch.Origin]int
	now, atMost int
	slow        fetch.Origin // takes an hour
	result      fetch.Result
}

func newSite() *Site {
	return &Site{asked: map[fetch.Origin]int{}, result: fetch.Result{Policy: policy.Unavailable(), StatusCode: 404}}
}

func (s *Site) find(ctx context.Context, o fetch.Origin) (*fetch.Result, time.Time, error) {
	s.count(o, 1)
	defer s.count(o, -1)
	d := time.Second
	if o == s.slow {
		d = time.Hour
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return nil, time.Time{}, ctx.Err()
	}
	r := s.result
	r.Time = time.Now()
	return &r, time.Time{}, nil
}

func (s *Site) count(o fetch.Origin, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now += n; n > 0 {
		s.asked[o]++
	}
	s.atMost = max(s.atMost, s.now)
}

func ignore(*fetch.Result) {}

// result starts a lookup and waits for it.
func result(t *testing.T, s *Origins, o fetch.Origin) *fetch.Result {
	t.Helper()
	var got *fetch.Result
	k, err := s.Start(t.Context(), o, found(func(r *fetch.Result) { got = r }))
	if err != nil {
		t.Fatal(err)
	}
	if k != nil {
		<-k.Done
	}
	return got
}

func TestEachOriginIsAskedOnceAndFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSite()
		s := NewOrigins(l.find, policy.RFC9309, 10)
		start := time.Now()
		for range 20 {
			for i := range 100 {
				if _, err := s.Start(t.Context(), originNamed(t, fmt.Sprintf("site%d.example", i)), found(ignore)); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.End(time.Minute)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("100 origins by tens took %v, want 10s", took)
		}
		if len(l.asked) != 100 || l.atMost != 10 {
			t.Errorf("%d origins were asked, %d at a time, want 100 and 10", len(l.asked), l.atMost)
		}
		for o, n := range l.asked {
			if n != 1 {
				t.Errorf("%v was asked %d times, want once", o, n)
			}
		}
		if done, pending, _, _ := s.Progress(); done != 100 || pending != 0 {
			t.Errorf("%d origins are done and %d pending, want 100 and none", done, pending)
		}
	})
}

// One origin that does not answer holds a slot, and nothing else up. It is the one that is
// reported to be waited for.
func TestASlowOriginDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSite()
		l.slow = originNamed(t, "site0.example")
		s := NewOrigins(l.find, policy.RFC9309, 2)
		start := time.Now()
		slow, err := s.Start(t.Context(), l.slow, found(ignore))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			result(t, s, originNamed(t, fmt.Sprintf("site%d.example", i+1)))
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("10 origins took %v beside the slow one, want 10s", took)
		}
		done, pending, host, waits := s.Progress()
		if done != 10 || pending != 1 || host != "site0.example" || waits != 10*time.Second {
			t.Errorf("%d done, %d pending, %v for %q, want 10, 1, 10s for site0.example", done, pending, waits, host)
		}
		select {
		case <-slow.Done:
			t.Error("the slow origin has answered")
		default:
		}
		s.End(time.Second)
		if took := time.Since(start); took != 11*time.Second {
			t.Errorf("the end came after %v, want 11s", took)
		}
		<-slow.Done // the Cache has a deadline
	})
}

// Whatever an origin answers, and however briefly it says that holds, it is asked once.
func TestAResultHoldsToTheEndOfTheRun(t *testing.T) {
	file := policy.Parse([]byte("User-agent: *\nDisallow: /x\n"))
	down := errors.New("refused")
	stale := http.Header{"Cache-Control": {"no-store, max-age=0"}}
	for _, c := range []struct {
		name   string
		result fetch.Result
	}{
		{"a file that is stale at once", fetch.Result{Policy: file, StatusCode: 200, Header: stale}},
		{"no file", fetch.Result{Policy: policy.Unavailable(), StatusCode: 404}},
		{"too many requests", fetch.Result{Policy: policy.Unavailable(), StatusCode: 429, RetryAfter: time.Second}},
		{"an error of the server", fetch.Result{Policy: policy.Unreachable(), StatusCode: 503, Err: down}},
		{"no connection", fetch.Result{Policy: policy.Unreachable(), Err: down}},
		{"a proxy that wants a password", fetch.Result{Policy: policy.Unreachable(), StatusCode: 407, Err: down}},
		{"a scheme that is not read", fetch.Result{Policy: policy.Unreachable(), Err: &fetch.Failure{Text: "ftp", Cause: "proxy_configuration_error"}}},
	} {
		for _, d := range []policy.Dialect{policy.RFC9309, policy.Yandex} {
			t.Run(c.name+", "+d.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newSite()
					l.result = c.result
					l.result.Dialect = d
					s := NewOrigins(l.find, d, 2)
					o := originNamed(t, "www.example")
					for range 3 {
						r := result(t, s, o)
						got, want := r.Policy.Reason(), c.result.Policy.Reason()
						if got != want || (r.Err == nil) != (c.result.Err == nil) {
							t.Errorf("got %v and error %v, want %v and %v", got, r.Err, want, c.result.Err)
						}
						if s.Known(o) == nil {
							t.Error("the result is not known")
						}
						time.Sleep(40 * 24 * time.Hour)
					}
					if n := l.asked[o]; n != 1 {
						t.Errorf("it was asked %d times, want once", n)
					}
				})
			})
		}
	}
}

// A caller that gives up while all slots are taken is told so by its context, and the
// lookups go on.
func TestStartEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSite()
		s := NewOrigins(l.find, policy.RFC9309, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var got *fetch.Result
		first, err := s.Start(ctx, originNamed(t, "a.example"), found(func(r *fetch.Result) { got = r }))
		if err != nil {
			t.Fatal(err)
		}
		returned := make(chan error)
		go func() {
			_, err := s.Start(ctx, originNamed(t, "b.example"), found(ignore))
			returned <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-returned; err != context.Canceled {
			t.Errorf("got error %v, want %v", err, context.Canceled)
		}
		if <-first.Done; got.Err != nil {
			t.Errorf("the lookup under way ended with %v", got.Err)
		}
		if got := l.asked[originNamed(t, "b.example")]; got != 0 {
			t.Errorf("b.example was asked %d times, want none", got)
		}
	})
}

// A failure is remembered until the run ends, however many files come after it: a silent site may take 30 seconds.
func TestAFailureIsNotAskedForAgain(t *testing.T) {
	file := policy.Parse([]byte("User-agent: *\n" + strings.Repeat("Disallow: /a/long/path/of/many/more\n", 10_000)))
	asked := map[string]int{}
	var mu sync.Mutex
	s := NewOrigins(func(_ context.Context, o fetch.Origin) (*fetch.Result, time.Time, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[o.String()]++
		if o == originNamed(t, "silent.example") {
			return &fetch.Result{Policy: policy.Unreachable(), Err: errors.New("no answer"), Time: time.Now()}, time.Time{}, nil
		}
		return &fetch.Result{Policy: file, StatusCode: 200, Time: time.Now()}, time.Time{}, nil
	}, policy.RFC9309, 1)
	look := func(host string) {
		k, err := s.Start(t.Context(), originNamed(t, host), found(ignore))
		if err != nil {
			t.Fatal(err)
		}
		if k != nil {
			k.Within(t.Context())
		}
	}
	look("silent.example")
	for i := range 500 {
		look(fmt.Sprintf("h%d.example", i))
	}
	look("silent.example")
	look("h0.example")
	if n, m := asked["https://silent.example"], asked["https://h0.example"]; n != 1 || m != 2 {
		t.Errorf("asked the silent site %d times and the first of the others %d times, want 1 and 2", n, m)
	}
}
