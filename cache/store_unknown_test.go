package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// What the Store is at the moment of the question, after a restart: what was there before is in it, or should be.
var storeFaults = []struct {
	name string
	do   func(s *lockStore)
	over func(s *lockStore) // ends the fault
	gone bool               // the copy is not there any more
}{
	{"fails", func(s *lockStore) { s.misbehave(on("Get", fails)) }, func(s *lockStore) { s.misbehave(nil) }, false},
	{"late", func(s *lockStore) { s.misbehave(on("Get", late)) }, func(s *lockStore) { s.misbehave(nil) }, false},
	{"damaged", func(s *lockStore) { s.damage() }, func(s *lockStore) { s.damage() }, false},
	{"fails, and forgets", func(s *lockStore) { s.misbehave(on("Get", fails)) }, func(s *lockStore) {
		s.misbehave(nil)
		s.lose(s.keys()[0])
	}, true},
}

func fails(context.Context) error { return errors.New("no connection") }

func late(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// damage flips a byte of each value, or flips it back.
func (s *lockStore) damage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		v[len(v)-1] ^= 1
	}
}

// "No copy" and "not known whether there is a copy" are two things: a status of the moment permits nothing as long as
// the Store cannot say whether there are rules. Then what it says holds, and the site is asked in its own time.
func TestAStatusOfTheMomentPermitsNothingWhileTheStoreIsSilent(t *testing.T) {
	for _, fault := range storeFaults {
		for _, status := range []int{408, 421, 425, 428, 429, 431} {
			for _, locks := range []bool{false, true} {
				for _, outage := range []cache.Outage{cache.LastGood, cache.Strict, cache.GoogleLadder} {
					name := fmt.Sprintf("%s, %d, locks %v, outage %d", fault.name, status, locks, outage)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							store := new(lockStore)
							var backing cache.Store = &store.memStore
							if locks {
								backing = store
							}
							first := &cache.Cache{Store: backing, Outage: outage, Logger: quiet}
							get(t, first, &site{serve: always(rules("/"))}, "https://a.example")
							closeCache(t, first)

							c := &cache.Cache{Store: backing, Outage: outage, Logger: quiet}
							defer closeCache(t, c)
							s := &site{serve: always(retryAfter(unavailable(status), 2*time.Hour))}
							fault.do(store)
							for range 4 {
								if r := get(t, c, s, "https://a.example"); r.Err == nil && r.Policy.Decide("a", "/x").Allowed {
									t.Fatalf("got %s while nothing is known, want a refusal", brief(r))
								}
								time.Sleep(10 * time.Second)
							}
							if fault.name != "damaged" && s.count() != 1 {
								t.Errorf("the site was asked %d times, want once in two hours", s.count())
							}
							fault.over(store)
							time.Sleep(10 * time.Second)
							r := get(t, c, s, "https://a.example")
							if got := r.Policy.Decide("a", "/x").Allowed; got != fault.gone || s.count() != 1 && fault.name != "damaged" {
								t.Errorf("got %s once the Store has answered, after %d fetches, want allowed %v", brief(r), s.count(), fault.gone)
							}
						})
					})
				}
			}
		}
	}
}

// Rules that no Store may have leave a mark in it, and what stands there afterwards is not taken for a site without rules.
func TestRulesThatAreNotStoredLeaveAMark(t *testing.T) {
	for _, locks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := new(lockStore)
			var backing cache.Store = &store.memStore
			if locks {
				backing = store
			}
			first := &cache.Cache{Store: backing, Logger: quiet}
			get(t, first, &site{serve: always(rules("/", "Cache-Control", "no-store"))}, "https://a.example")
			closeCache(t, first)
			if store.kept() > 0 || len(store.keys()) != 1 {
				t.Fatalf("%d values and %d answers are stored, want a mark", len(store.keys()), store.kept())
			}

			for _, age := range []time.Duration{0, 29 * day, 5 * day} { // after each other
				time.Sleep(age)
				want := age == 5*day
				c := &cache.Cache{Store: backing, Logger: quiet}
				r := get(t, c, &site{serve: always(unavailable(429))}, "https://a.example")
				if got := r.Policy.Decide("a", "/x").Allowed; got != want {
					t.Errorf("after %v: got %s, want allowed %v", age, brief(r), want)
				}
				closeCache(t, c)
			}
			c := &cache.Cache{Store: backing, Logger: quiet}
			if r := get(t, c, &site{serve: always(unavailable(404))}, "https://a.example"); !r.Policy.Decide("a", "/x").Allowed {
				t.Errorf("got %s of a 404, want it to replace the mark", brief(r))
			}
			closeCache(t, c)
		})
	}
}

// Rules in memory hold, whatever the Store does; a 404 in memory is no rules, and none are assumed.
func TestWhatMemoryHasHoldsWhileTheStoreIsSilent(t *testing.T) {
	for _, c := range []struct {
		first   *fetch.Result
		allowed bool // of what the rules leave open
	}{
		{rules("/secret", "Cache-Control", "max-age=60"), true},
		{unavailable(404, "Cache-Control", "max-age=60"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			shared := &cache.Cache{Store: store, Logger: quiet, NoRefresh: true}
			defer closeCache(t, shared)
			s := &site{serve: inTurn(c.first, unavailable(429))}
			get(t, shared, s, "https://a.example")
			synctest.Wait()
			store.misbehave(on("Get", fails))
			time.Sleep(2 * time.Minute)
			r := get(t, shared, s, "https://a.example")
			if got := r.Policy.Decide("a", "/open").Allowed; got != c.allowed || r.Policy.Decide("a", "/secret").Allowed {
				t.Errorf("%s, then 429: got %s, want /open allowed %v and /secret never", brief(c.first), brief(r), c.allowed)
			}
		})
	}
}
