package cache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
)

// queue is a Fetcher with one turn at a time, for a web in which all but fine.example are
// silent.
func queue() *fetch.Fetcher {
	return &fetch.Fetcher{MaxFetches: 1, Retries: -1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host != "fine.example" {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		header := http.Header{"Cache-Control": {"max-age=300"}}
		return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /private\n"))}, nil
	})}
}

// silence has as many silent origins ask for their turn, 15 s each.
func silence(t *testing.T, c *cache.Cache, f *fetch.Fetcher, asking *sync.WaitGroup, origins int) {
	for i := range origins {
		asking.Go(func() {
			r, err := c.Get(t.Context(), origin(t, fmt.Sprintf("https://silent%d.example", i)), sourceOf(f))
			if err != nil || r.Err == nil || !strings.Contains(fmt.Sprint(r.Err), "within 15s") {
				t.Errorf("a silent origin: %v, %v", r, err)
			}
		})
	}
	synctest.Wait()
}

// However long the queue, and however many flights that takes: each origin has its own time,
// and a caller's wait is bounded by its own context alone.
func TestAQueueOfOursIsNoFailureOfASite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		c, f := &cache.Cache{Store: store}, queue()
		var asking sync.WaitGroup
		silence(t, c, f, &asking, 40) // ten minutes
		asking.Go(func() {
			start := time.Now()
			r, err := c.Get(t.Context(), origin(t, "https://fine.example"), sourceOf(f))
			if took := time.Since(start); err != nil || r.Err != nil || took > 15*time.Minute {
				t.Errorf("got %v, %v after %v, want it at last", r, err, took)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Minute)
		defer cancel()
		start := time.Now() // who is first in a queue that is formed anew is left to chance
		switch r, err := c.Get(ctx, origin(t, "https://silent.example"), sourceOf(f)); {
		case err == nil && strings.Contains(fmt.Sprint(r.Err), "within 15s"):
		case err != context.DeadlineExceeded || time.Since(start) != 7*time.Minute:
			t.Errorf("after %v: %v, %v", time.Since(start), r, err)
		}
		asking.Wait()
		closeCache(t, c)
		for _, key := range store.keys() {
			if failed := strings.Contains(string(store.values[key]), `"failure"`); failed != (key != "RGC4 https://fine.example") {
				t.Errorf("%s is stored with a failure: %v", key, failed)
			}
		}
	})
}

// A refresh that has no turn in time has not failed: it is begun again.
func TestAQueueOfOursIsNoFailureOfARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		c, f := (&cache.Cache{Store: store}).WithoutSpread(), queue()
		good := origin(t, "https://fine.example")
		if _, err := c.Get(t.Context(), good, sourceOf(f)); err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		silence(t, c, f, &asking, 40)
		for start := time.Now(); time.Since(start) < 9*time.Minute+55*time.Second; time.Sleep(time.Second) {
			if r, err := c.Get(t.Context(), good, sourceOf(f)); err != nil || r.Err != nil {
				t.Errorf("after %v: %v, %v", time.Since(start), r, err)
			}
		}
		synctest.Wait()
		value, err := store.Get(t.Context(), "RGC4 "+good.String())
		if err != nil || strings.Contains(string(value), `"failure"`) {
			t.Errorf("stored: %q, %v", value, err)
		}
		asking.Wait()
		closeCache(t, c)
	})
}

// A fetch leaves the queue once no caller waits for it.
func TestTheQueueIsNotLongerThanThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := new(cache.Cache), queue()
		var loads atomic.Int32
		load := func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
			loads.Add(1)
			defer loads.Add(-1)
			return f.Fetch(ctx, o, prev)
		}
		var asking sync.WaitGroup
		for i := range 100 {
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := c.Get(ctx, origin(t, fmt.Sprintf("https://silent%d.example", i)), &cache.Source{Load: load}); err != context.DeadlineExceeded {
					t.Errorf("origin %d: got %v, want %v", i, err, context.DeadlineExceeded)
				}
			})
		}
		asking.Wait()
		time.Sleep(2*time.Minute + 16*time.Second)
		if n := loads.Load(); n > 1 {
			t.Errorf("%d loads wait for a turn that no caller wants", n)
		}
		closeCache(t, c)
	})
}

// Where the last good copy would serve in an outage, a site that stalls costs the first
// callers 3 s and the next ones nothing, wherever the copy is. The refresh goes on.
func TestAUsableCopyIsThreeSecondsAway(t *testing.T) {
	const stall = 30 * time.Second
	for _, row := range []struct {
		name, cacheControl string
		cache              *cache.Cache
		restart, locked    bool
		answer             *fetch.Result // the first
		want               time.Duration // that the first caller waits
	}{
		{name: "as it is", cache: &cache.Cache{}, cacheControl: "max-age=60", want: 3 * time.Second},
		{name: "must-revalidate", cache: &cache.Cache{}, cacheControl: "max-age=60, must-revalidate", want: 3 * time.Second},
		{name: "no-cache", cache: &cache.Cache{}, cacheControl: "no-cache", want: 3 * time.Second},
		{name: "no-store", cache: &cache.Cache{}, cacheControl: "no-store", want: 3 * time.Second},
		{name: "in the foreground", cache: &cache.Cache{NoRefresh: true}, cacheControl: "max-age=60", want: 3 * time.Second},
		{name: "while another process fetches", cache: &cache.Cache{}, locked: true, cacheControl: "max-age=60", want: 3 * time.Second},
		{name: "only in the Store", cache: &cache.Cache{}, restart: true, cacheControl: "max-age=60, must-revalidate", want: 3 * time.Second},
		{name: "only in the Store, while another process fetches", cache: &cache.Cache{}, restart: true, locked: true, cacheControl: "max-age=60", want: 3 * time.Second},
		{name: "that may not be used", cache: &cache.Cache{MaxStale: -1}, cacheControl: "max-age=60", want: stall},
		{name: "that may not be used, in the Store", cache: &cache.Cache{MaxStale: -1}, restart: true, cacheControl: "max-age=60", want: stall},
		{name: "in Strict", cache: &cache.Cache{Outage: cache.Strict}, cacheControl: "max-age=60", want: stall},
		{name: "in Strict, in the Store", cache: &cache.Cache{Outage: cache.Strict}, restart: true, cacheControl: "max-age=60", want: stall},
		{name: "up the ladder", cache: &cache.Cache{Outage: cache.GoogleLadder}, cacheControl: "max-age=60", want: stall},
		{name: "of no file", cache: &cache.Cache{}, answer: unavailable(404), want: stall},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if row.answer == nil {
					row.answer = rules("/old", "Cache-Control", row.cacheControl)
				}
				store, s := new(lockStore), &site{serve: inTurn(row.answer, rules("/new"))}
				c := row.cache
				c.Store, c.Logger = store, quiet
				get(t, c, s, "https://a.example")
				synctest.Wait()
				if row.restart {
					closeCache(t, c)
					c = &cache.Cache{Store: store, Logger: quiet, Outage: c.Outage, MaxStale: c.MaxStale}
				}
				time.Sleep(25 * time.Hour)
				if row.locked {
					store.mu.Lock()
					store.locks["RGC4 https://a.example"] = time.Now().Add(time.Hour)
					store.mu.Unlock()
				}
				s.delay = stall
				start := time.Now()
				var asking sync.WaitGroup
				for range 100 {
					asking.Go(func() {
						r := get(t, c, s, "https://a.example")
						old := !r.Policy.Decide("x", "/old").Allowed
						if took := time.Since(start); took != row.want || old != (row.want < stall) {
							t.Errorf("got the old rules: %v after %v, want %v after %v", old, took, row.want < stall, row.want)
						}
					})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := c.Get(ctx, origin(t, "https://a.example"), &cache.Source{Load: s.load}); err != context.DeadlineExceeded {
					t.Errorf("a caller in a hurry: got %v, want %v", err, context.DeadlineExceeded)
				}
				asking.Wait()
				for range 8 {
					before := time.Now()
					if get(t, c, s, "https://a.example"); time.Since(before) != 0 {
						t.Errorf("%v later another waited for %v", time.Since(start), time.Since(before))
					}
					time.Sleep(3 * time.Second)
				}
				time.Sleep(stall) // the fetch may have begun when the wait for the lock was over
				if r := get(t, c, s, "https://a.example"); s.count() != 2 || r.Policy.Decide("x", "/new").Allowed {
					t.Errorf("after %d fetches got %s, want 2 fetches and the new rules: the refresh goes on", s.count(), brief(r))
				}
				closeCache(t, c)
			})
		})
	}
}

// So it is for callers who never have so much time.
func TestAUsableCopyIsThereForCallersInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&cache.Cache{NoRefresh: true}).WithoutSpread()
		s := &site{serve: inTurn(rules("/old", "Cache-Control", "max-age=60"), rules("/new"))}
		get(t, c, s, "https://a.example")
		time.Sleep(time.Hour)
		s.delay = 20 * time.Second
		for start := time.Now(); time.Since(start) < 20*time.Second; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			late := time.Since(start) >= 3*time.Second
			if _, err := c.Get(ctx, origin(t, "https://a.example"), &cache.Source{Load: s.load}); late != (err == nil) {
				t.Errorf("after %v: got %v, want an error: %v", time.Since(start), err, !late)
			}
			cancel()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if r := get(t, c, s, "https://a.example"); r.Policy.Decide("x", "/new").Allowed || s.count() != 2 {
			t.Errorf("after %d fetches got %s, want 2 and the new rules", s.count(), brief(r))
		}
		closeCache(t, c)
	})
}

// After a stall that has become an outage, and where the refresh had no turn, the next one is
// waited for again.
func TestTheNextRefreshIsWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&cache.Cache{NoRefresh: true}).WithoutSpread()
		s := &site{serve: inTurn(rules("/old", "Cache-Control", "max-age=60"), down(), rules("/new"))}
		get(t, c, s, "https://a.example")
		time.Sleep(time.Hour)
		s.delay = 10 * time.Second
		get(t, c, s, "https://a.example")
		time.Sleep(time.Minute) // the outage is over
		synctest.Wait()
		s.delay = 2 * time.Second
		if r := get(t, c, s, "https://a.example"); r.Policy.Decide("x", "/new").Allowed {
			t.Errorf("got %s, want the new rules, which were to be had within 3 s", brief(r))
		}
		closeCache(t, c)
	})
}

// A lock that is never free costs a miss the 15 s that another process may take.
func TestALockThatIsNeverFreeCosts15Seconds(t *testing.T) {
	for name, patience := range map[string]time.Duration{"as it is": 0, "with a patience of its own": 2 * time.Second} {
		for _, slow := range []time.Duration{0, 30 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				store, s := new(lockStore), &site{serve: always(rules("/private"))}
				store.before = func(_ context.Context, call string) error { time.Sleep(slow); return nil }
				c := &cache.Cache{Store: store, StoreTimeout: patience, Logger: quiet}
				store.locks = map[string]time.Time{"RGC4 https://a.example": time.Now().Add(time.Hour)}
				start := time.Now()
				r := get(t, c, s, "https://a.example")
				if took := time.Since(start); r.Err != nil || took > 15*time.Second || took < 12*time.Second || s.count() != 1 {
					t.Errorf("%s, %v for a call: %v, %d fetches after %v", name, slow, r.Err, s.count(), took)
				}
				closeCache(t, c)
			})
		}
	}
}

// Locks that hang are left alone although values are read and written, as any part of a Store
// that fails, and take no reader's place.
func TestALockerThatHangsIsLeftAlone(t *testing.T) {
	for name, hang := range map[string]func(context.Context) error{
		"heeds its context": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"ignores it":        func(context.Context) error { time.Sleep(24 * time.Hour); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, s := new(lockStore), &site{serve: always(rules("/private"))}
				store.before = func(ctx context.Context, call string) error {
					if call == "Lock" {
						return hang(ctx)
					}
					return ctx.Err()
				}
				var log strings.Builder
				c := &cache.Cache{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				slow, start := 0, time.Now()
				for i := range 1000 { // ten minutes
					before := time.Now()
					get(t, c, s, fmt.Sprintf("https://a%d.example", i))
					synctest.Wait()
					if time.Since(before) > 0 {
						slow++
					}
					time.Sleep(600 * time.Millisecond)
				}
				if most := 5 + int(time.Since(start)/(5*time.Second)); slow > most {
					t.Errorf("%d of 1,000 misses waited for a lock, want %d at most", slow, most)
				}
				if n := len(store.keys()); n != 1000 {
					t.Errorf("%d of 1,000 values are in the Store", n)
				}
				if n := store.count("Get"); n < 1000 {
					t.Errorf("%d reads for 1,000 misses", n)
				}
				if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "part=locking") {
					t.Errorf("the log:\n%s", text)
				}
				closeCache(t, c)
				time.Sleep(48 * time.Hour)
			})
		})
	}
}

// A load that does not heed its context takes nothing from the Store, and Close is not nil
// before it has ended.
func TestCloseWithALoadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, release := new(memStore), make(chan struct{})
		store.before = func(_ context.Context, call string) error {
			if call == "Put" {
				return errors.New("READONLY")
			}
			return nil
		}
		c, s := &cache.Cache{Store: store, Logger: quiet}, &site{serve: always(rules("/private"))}
		hang := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			<-release
			return rules("/"), nil
		}
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := c.Get(t.Context(), origin(t, "https://hangs.example"), &cache.Source{Load: hang}); err != cache.ErrClosed {
				t.Errorf("got %v, want %v", err, cache.ErrClosed)
			}
		})
		synctest.Wait()
		for i := range 20 {
			get(t, c, s, fmt.Sprintf("https://a%d.example", i))
		}
		synctest.Wait()
		store.misbehave(nil) // what is due would be tried again in 5 s
		puts := store.count("Put")
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := c.Shutdown(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still being read for 1 origin") || strings.Contains(err.Error(), "values") {
				t.Errorf("Close number %d: %v", i+1, err)
			}
			if n := len(store.keys()); n != 20 {
				t.Errorf("Close number %d: %d of 20 values are in the Store", i+1, n)
			}
		}
		close(release)
		for range 2 {
			closeCache(t, c)
		}
		asking.Wait()
		if n := store.count("Put") - puts; n != 20 {
			t.Errorf("%d puts", n)
		}
	})
}

// What the Store did not take is said by each Close, and tried again by the next.
func TestCloseMayBeTriedAgain(t *testing.T) {
	for name, bad := range map[string]func(context.Context, string) error{
		"fails": func(_ context.Context, call string) error {
			if call == "Put" {
				return errors.New("OOM")
			}
			return nil
		},
		"hangs": func(ctx context.Context, call string) error {
			if call == "Put" {
				<-ctx.Done()
			}
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(memStore)
				store.misbehave(bad)
				c, s := &cache.Cache{Store: store, Logger: quiet}, &site{serve: always(rules("/private"))}
				for i := range 50 {
					get(t, c, s, fmt.Sprintf("https://a%d.example", i))
				}
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				if err := c.Shutdown(gone); err == nil || !strings.Contains(err.Error(), "50 values") {
					t.Errorf("with no time: %v", err)
				}
				var closing sync.WaitGroup
				for range 3 { // at once, and none may say that all is well
					closing.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
						defer cancel()
						if err := c.Shutdown(ctx); err == nil {
							t.Error("nil, with a Store that takes nothing")
						}
					})
				}
				closing.Wait()
				time.Sleep(time.Hour) // nothing is tried meanwhile
				store.misbehave(nil)
				puts := store.count("Put")
				time.Sleep(time.Hour)
				if n := store.count("Put"); n != puts {
					t.Errorf("%d puts by a Cache that is closed", n-puts)
				}
				for range 2 {
					closeCache(t, c)
				}
				if n := len(store.keys()); n != 50 || store.count("Put") != puts+50 {
					t.Errorf("%d of 50 values are in the Store, after %d puts", n, store.count("Put")-puts)
				}
			})
		})
	}
}

// With nothing left, there is nothing to wait for.
func TestCloseOfAnIdleCacheNeedsNoTime(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := new(cache.Cache).Shutdown(gone); err != nil {
			t.Fatal(err)
		}
	}
}

// A caller whose own fetch had no turn, and who takes the copy before the next, ends the wait of no other: the
// fetch that one began since has its three seconds.
func TestWhoWaitsForNoFetchMakesNoneOverdue(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := (&cache.Cache{NoRefresh: true}).WithoutSpread()
			var n atomic.Int32
			src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				switch n.Add(1) {
				case 1:
					return rules("/old", "Cache-Control", "max-age=60"), nil
				case 2:
					return nil, fetch.ErrBusy
				}
				time.Sleep(2 * time.Second)
				return rules("/new"), nil
			}}
			ask(t, c, src, "https://a.example")
			time.Sleep(time.Hour)
			var asking sync.WaitGroup
			asking.Go(func() { // begins at 0 s a fetch that has no turn, and takes the copy at 3 s, or leaves
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if leaves {
					ctx, cancel = context.WithTimeout(t.Context(), 2950*time.Millisecond)
				}
				defer cancel()
				_, _ = c.Get(ctx, origin(t, "https://a.example"), src)
			})
			time.Sleep(2900 * time.Millisecond)
			asking.Go(func() { ask(t, c, src, "https://a.example") }) // begins the next
			time.Sleep(200 * time.Millisecond)
			if r := ask(t, c, src, "https://a.example"); r.Policy.Decide("x", "/new").Allowed {
				t.Errorf("leaves %v: got %s, want the new rules, which were to be had in 2 s", leaves, brief(r))
			}
			asking.Wait()
			closeCache(t, c)
		})
	}
}
