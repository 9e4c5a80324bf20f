package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// The last good copy of an origin's rules is what an outage is bridged by. These tests
// take it away in every way that a Store, a second process or a clock has.

func decide(t *testing.T, c *cache.Cache, s *site, target string) policy.Decision {
	t.Helper()
	return get(t, c, s, "https://a.example").Policy.Decide("x", target)
}

func TestAnOutageThatAnotherProcessMetColdLeavesTheCopyInMemory(t *testing.T) {
	for name, fields := range map[string][]string{
		"copy missing in store": {"Cache-Control", "max-age=3600"},
		"copy is no-store":      {"Cache-Control", "no-store"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memStore{values: map[string][]byte{}, calls: map[string]int{}}
				a := &cache.Cache{Store: store, Logger: quiet}
				good := &site{serve: inTurn(rules("/private", fields...), down())}
				decide(t, a, good, "/")
				synctest.Wait()
				store.mu.Lock()
				clear(store.values) // evicted by maxmemory, or never arrived
				store.mu.Unlock()
				time.Sleep(2 * time.Hour)
				// B meets the outage cold.
				b := &cache.Cache{Store: store, Logger: quiet}
				decide(t, b, &site{serve: always(down())}, "/")
				synctest.Wait()
				// A still has its copy and LastGood.
				for range 3 {
					if d := decide(t, a, good, "/public"); !d.Allowed {
						t.Fatalf("A lost its last good copy: %+v", d)
					}
					time.Sleep(2 * time.Second)
				}
				closeCache(t, a)
				closeCache(t, b)
			})
		})
	}
}

func TestAnOutageOfAnotherProcessDoesNotBringBackOldRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memStore{values: map[string][]byte{}, calls: map[string]int{}}
		a := &cache.Cache{Store: store, Logger: quiet}
		sa := &site{serve: inTurn(rules("", "Cache-Control", "max-age=3600"), rules("/", "Cache-Control", "max-age=3600"), down())}
		decide(t, a, sa, "/") // v1: allow all
		synctest.Wait()
		time.Sleep(2 * time.Hour)
		store.misbehave(func(ctx context.Context, call string) error {
			if call == "Put" {
				return errors.New("READONLY")
			}
			return ctx.Err()
		})
		if decide(t, a, sa, "/x").Allowed { // v2: disallow all; its put fails
			t.Fatal("setup")
		}
		synctest.Wait()
		store.misbehave(nil)
		time.Sleep(2 * time.Hour)
		b := &cache.Cache{Store: store, Logger: quiet}
		decide(t, b, &site{serve: always(down())}, "/")
		synctest.Wait()
		if d := decide(t, a, sa, "/x"); d.Allowed {
			t.Errorf("A knows v2 (disallow all) and allows by v1 during an outage: %+v", d)
		}
		closeCache(t, a)
		closeCache(t, b)
	})
}

func TestAFailureDoesNotReplaceACopyThatCouldNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memStore{values: map[string][]byte{}, calls: map[string]int{}}
		a := &cache.Cache{Store: store, Logger: quiet}
		decide(t, a, &site{serve: always(rules("/private"))}, "/")
		closeCache(t, a)
		time.Sleep(25 * time.Hour)
		store.misbehave(func(ctx context.Context, call string) error {
			if call == "Get" {
				select {
				case <-time.After(150 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			return ctx.Err()
		})
		b := &cache.Cache{Store: store, Logger: quiet}
		decide(t, b, &site{serve: always(down())}, "/")
		closeCache(t, b)
		store.misbehave(nil)
		time.Sleep(time.Hour)
		c := &cache.Cache{Store: store, Logger: quiet}
		if d := decide(t, c, &site{serve: always(down())}, "/public"); !d.Allowed {
			t.Errorf("the good copy of 26 h ago is gone from the store: %+v", d)
		}
		closeCache(t, c)
	})
}

func TestAnOutageUnderAWrongClockLeavesTheStoredCopy(t *testing.T) {
	var good []byte
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(365 * 24 * time.Hour)
		store := &memStore{values: map[string][]byte{}, calls: map[string]int{}}
		a := &cache.Cache{Store: store, Logger: quiet}
		decide(t, a, &site{serve: always(rules("/private"))}, "/")
		closeCache(t, a)
		good = store.values["RGC4 https://a.example"]
	})
	store := &memStore{values: map[string][]byte{"RGC4 https://a.example": good}, calls: map[string]int{}}
	synctest.Test(t, func(t *testing.T) { // clock a year behind
		b := &cache.Cache{Store: &plainStore{values: store.values}, Logger: quiet}
		decide(t, b, &site{serve: always(down())}, "/")
		closeCache(t, b)
	})
	after := store.values["RGC4 https://a.example"]
	synctest.Test(t, func(t *testing.T) { // clock right again
		time.Sleep(365*24*time.Hour + 2*time.Hour)
		c := &cache.Cache{Store: &plainStore{values: map[string][]byte{"RGC4 https://a.example": after}}, Logger: quiet}
		if d := decide(t, c, &site{serve: always(down())}, "/public"); !d.Allowed {
			t.Errorf("two hours of a wrong clock without network lost the good copy: %+v", d)
		}
		closeCache(t, c)
	})
}

// What another process has stored is used if its clock was ahead by a minute, and not if it was ahead by more: then the
// fleet reads the file once more.
func TestAFleetsClocksMayDifferByAMinute(t *testing.T) {
	for ahead, want := range map[time.Duration]int{0: 0, time.Minute: 0, time.Minute + time.Second: 1, time.Hour: 1} {
		values := map[string][]byte{}
		read := func(t *testing.T) int {
			s := &site{serve: always(rules("/private"))}
			c := &cache.Cache{Store: &plainStore{values: values}, Logger: quiet}
			decide(t, c, s, "/")
			closeCache(t, c)
			return s.fetches
		}
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(ahead)
			if n := read(t); n != 1 {
				t.Errorf("%d fetches by the first", n)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			if n := read(t); n != want {
				t.Errorf("%v behind: %d fetches, want %d", ahead, n, want)
			}
		})
	}
}

// plainStore has no mutex (synctest bubbles must not share one).
type plainStore struct{ values map[string][]byte }

func (s *plainStore) Get(_ context.Context, key string) ([]byte, error) {
	if v, ok := s.values[key]; ok {
		return v, nil
	}
	return nil, cache.ErrMiss
}
func (s *plainStore) Put(_ context.Context, key string, data []byte, _ time.Duration) error {
	s.values[key] = append([]byte(nil), data...)
	return nil
}

// A policy writes itself down with its own line breaks and in UTF-8: longer than a file that
// was just short enough to be read. So where the file cannot be read back, neither an outage
// nor a 304 puts that text in its place.
func TestALargeFileIsNotReplacedByALongerText(t *testing.T) {
	unreachable := func(*fetch.Result) *fetch.Result { return down() }
	notModified := func(prev *fetch.Result) *fetch.Result { return prev }
	for _, c := range []struct {
		name, head, line string
		size             int
		second           func(prev *fetch.Result) *fetch.Result
	}{
		{"outage, ascii", "user-agent:*\n", "disallow:/%d\n", 499 << 10, unreachable},
		{"outage, utf-8", "User-agent: *\n", "Disallow: /каталог/товары/%d\n", 250 << 10, unreachable},
		{"304, groups", "", "user-agent:b%d\nallow:/%[1]d\n", 499 << 10, notModified},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body strings.Builder
			body.WriteString(c.head)
			for i := 0; body.Len() < c.size; i++ {
				fmt.Fprintf(&body, c.line, i)
			}
			file := fileResult(body.String(), "ETag: \"1\"", "Cache-Control: max-age=3600")
			synctest.Test(t, func(t *testing.T) {
				const o = "https://a.example"
				store := new(memStore)
				s := &site{serve: func(n int, prev *fetch.Result) *fetch.Result {
					switch n {
					case 0:
						return file
					case 1:
						return c.second(prev)
					}
					return down()
				}}
				a := &cache.Cache{Store: store, Logger: quiet}
				get(t, a, s, o)
				synctest.Wait()
				put := len(store.values[o])
				time.Sleep(2 * time.Hour)
				store.misbehave(func(ctx context.Context, call string) error {
					if call == "Get" {
						return errors.New("i/o timeout")
					}
					return ctx.Err()
				})
				get(t, a, s, o)
				closeCache(t, a)
				store.misbehave(nil)
				time.Sleep(2 * time.Hour)
				again := &cache.Cache{Store: store, Logger: quiet}
				if d := get(t, again, s, o).Policy.Decide("x", "/public"); !d.Allowed {
					t.Errorf("%v of %d bytes in the store, where %d were put", d, len(store.values[o]), put)
				}
				closeCache(t, again)
			})
		})
	}
}

func TestRulesThatWereSupersededDoNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		a := &cache.Cache{Store: store, Logger: quiet}
		s := &site{serve: inTurn(rules(""), rules("/", "Cache-Control", "no-store"), down())}
		decide(t, a, s, "/")
		time.Sleep(25 * time.Hour)
		if decide(t, a, s, "/x").Allowed {
			t.Fatal("setup")
		}
		time.Sleep(time.Minute)
		closeCache(t, a)
		time.Sleep(25 * time.Hour)
		c := &cache.Cache{Store: store, Logger: quiet}
		if d := decide(t, c, s, "/x"); d.Allowed {
			t.Errorf("down, last seen Disallow: /, yet allowed: %+v", d)
		}
		closeCache(t, c)
	})
}

// A 304 that brings no-store forbids to store what it renews: the copy in the Store is taken back, and what is there
// instead is no damage.
func TestA304ThatBringsNoStoreTakesTheCopyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		s := &site{serve: func(n int, prev *fetch.Result) *fetch.Result {
			switch {
			case n == 0:
				return rules("/private", "ETag", `"1"`)
			case n > 1 || prev == nil:
				return down()
			}
			renewed := *prev
			renewed.Header = http.Header{"Cache-Control": {"no-store"}}
			return &renewed
		}}
		c := &cache.Cache{Store: store, Logger: quiet}
		decide(t, c, s, "/")
		time.Sleep(25 * time.Hour)
		if !decide(t, c, s, "/").Allowed || s.count() != 2 {
			t.Fatal("setup")
		}
		closeCache(t, c)
		again := &cache.Cache{Store: store, Logger: quiet}
		if d := decide(t, again, s, "/"); d.Reason != policy.ReasonUnreachable || again.Stats().StoreErrors != 0 {
			t.Errorf("%v with what was not to be stored; StoreErrors %d", d, again.Stats().StoreErrors)
		}
		closeCache(t, again)
	})
}

// Google: the last good version for 30 days of the outage, even if the copy was old by then.
func TestTheLadderCountsFromTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache.Cache{Outage: cache.GoogleLadder}
		bad := down()
		bad.StatusCode = 503
		s := &site{serve: inTurn(rules("/private"), bad)}
		decide(t, c, s, "/")
		time.Sleep(25 * 24 * time.Hour)
		for day := range 29 {
			d := decide(t, c, s, "/private/x")
			if d.Allowed {
				t.Fatalf("day %d of the outage (copy had Disallow: /private): %+v", day, d)
			}
			time.Sleep(24 * time.Hour)
		}
	})
}

// A process whose clock is fast meets an outage and says so in the Store. The copy beside
// that is as good as before, and the outage has not begun in the future.
func TestAFailureStampedByAFastClockHidesNoCopy(t *testing.T) {
	for name, answers := range map[string][]*fetch.Result{
		"still down": {down()},
		"up again":   {rules("/other")},
	} {
		t.Run(name, func(t *testing.T) {
			var values map[string][]byte
			put := func(at time.Duration, answer *fetch.Result) {
				synctest.Test(t, func(t *testing.T) { // all bubbles begin at the same time
					time.Sleep(at)
					store := &plainStore{values: values}
					c := &cache.Cache{Store: store, Logger: quiet}
					decide(t, c, &site{serve: always(answer)}, "/")
					closeCache(t, c)
				})
			}
			values = map[string][]byte{}
			put(0, rules("/private", "Cache-Control", "max-age=3600"))
			put(10*time.Hour, down()) // at 2 h, by a clock that is 8 h fast
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(2 * time.Hour)
				c := &cache.Cache{Store: &plainStore{values: values}, Logger: quiet}
				s := &site{serve: inTurn(answers...)}
				if d := decide(t, c, s, "/public"); !d.Allowed || s.count() != 1 {
					t.Errorf("%v after %d fetches: the copy of 2 h ago is hidden", d, s.count())
				}
				closeCache(t, c)
			})
			synctest.Test(t, func(t *testing.T) { // and is there for the next
				time.Sleep(3*time.Hour + time.Minute)
				c := &cache.Cache{Store: &plainStore{values: values}, Logger: quiet}
				if d := decide(t, c, &site{serve: always(down())}, "/public"); !d.Allowed {
					t.Errorf("%v: the copy is gone from the store", d)
				}
				closeCache(t, c)
			})
		})
	}
}

// A flight that waited for room in the queue leaves those who joined it the time that the Store
// may take: a User-Agent's own copy there is not overlooked.
func TestAnOwnCopyIsReadAfterAWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		c := &cache.Cache{Store: store, Logger: quiet}
		ask(t, c, told("b", rules("/b", "Vary", "User-Agent")), "https://a.example")
		closeCache(t, c)

		store.misbehave(on("Put", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
		c = &cache.Cache{Store: store, Logger: quiet}
		start := time.Now()
		for i := range 64 + 1024 { // the writers have their hands full, and so is the queue
			ask(t, c, told("a", rules("/a")), fmt.Sprintf("https://a%d.example", i))
			synctest.Wait()
		}
		if time.Since(start) > time.Second || c.Stats().StoreErrors > 0 {
			t.Fatal("setup", time.Since(start), c.Stats())
		}
		slow := told("a", rules("/a"))
		load := slow.Load
		slow.Load = func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
			time.Sleep(time.Second)
			return load(ctx, o, prev)
		}
		var asking sync.WaitGroup
		asking.Go(func() { ask(t, c, slow, "https://a.example") })
		synctest.Wait()
		if got := whose(t, c, told("b", rules("/a")), "a", "b"); got != "b" {
			t.Errorf("b got the rules of %s, want its own, which are in the Store", got)
		}
		asking.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = c.Shutdown(ctx) // the Store takes nothing
		time.Sleep(time.Minute)
	})
}
