package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

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
		{name: "that may not be used", cache: (&cache.Cache{}).WithTerms(day, 0), cacheControl: "max-age=60", want: stall},
		{name: "that may not be used, in the Store", cache: (&cache.Cache{}).WithTerms(day, 0), restart: true, cacheControl: "max-age=60", want: stall},
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
					c = &cache.Cache{Store: store, Logger: quiet, Outage: c.Outage}
					if row.want == stall && c.Outage == cache.LastGood {
						c.WithTerms(day, 0)
					}
				}
				time.Sleep(25 * time.Hour)
				if row.locked {
					store.mu.Lock()
					store.locks["RGC5 https://a.example "] = time.Now().Add(time.Hour)
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
				if _, _, err := c.Get(ctx, origin(t, "https://a.example"), &cache.Source{Load: s.load}); err != context.DeadlineExceeded {
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
			if _, _, err := c.Get(ctx, origin(t, "https://a.example"), &cache.Source{Load: s.load}); late != (err == nil) {
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
				store.locks = map[string]time.Time{"RGC5 https://a.example ": time.Now().Add(time.Hour)}
				start := time.Now()
				r := get(t, c, s, "https://a.example")
				if took := time.Since(start); r.Err != nil || took > 15*time.Second+2*slow || took < 12*time.Second || s.count() != 1 {
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
				if err := c.Shutdown(gone); err == nil || !strings.Contains(err.Error(), "50 ") {
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
