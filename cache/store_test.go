package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// memStore is a Store whose calls can be made to misbehave.
type memStore struct {
	before func(ctx context.Context, call string) error // nil: nothing goes wrong

	mu     sync.Mutex
	values map[string][]byte
	calls  map[string]int
}

func (s *memStore) enter(ctx context.Context, call string) error {
	s.mu.Lock()
	if s.calls == nil {
		s.calls, s.values = map[string]int{}, map[string][]byte{}
	}
	s.calls[call]++
	before := s.before
	s.mu.Unlock()
	if before != nil {
		return before(ctx, call)
	}
	return ctx.Err()
}

func (s *memStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.enter(ctx, "Get"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("no %q: %w", key, cache.ErrMiss)
}

func (s *memStore) Put(ctx context.Context, key string, data []byte, _ time.Duration) error {
	if err := s.enter(ctx, "Put"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = bytes.Clone(data)
	return nil
}

func (s *memStore) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.values))
}

func (s *memStore) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *memStore) misbehave(before func(context.Context, string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// get asks for an origin and fails the test for any error.
func get(t *testing.T, c *cache.Cache, s *site, raw string) *fetch.Result {
	t.Helper()
	r, err := c.Get(t.Context(), origin(t, raw), &cache.Source{Load: s.load, Dialect: s.dialect})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closeCache(t *testing.T, c *cache.Cache) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestARestartStartsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		a := rules("/private", "ETag", `"v1"`, "Cache-Control", "max-age=7200")
		a.Redirects = []string{"https://b.example/r.txt"}
		first := &site{serve: always(a), dialect: policy.Google}
		c := &cache.Cache{Store: store}
		before := get(t, c, first, "https://a.example")
		closeCache(t, c)

		time.Sleep(time.Hour)
		second := &site{serve: always(rules("/other")), dialect: policy.Google}
		c = (&cache.Cache{Store: store}).WithoutSpread()
		after := get(t, c, second, "https://a.example")
		if second.count() != 0 {
			t.Fatal("fetched although the store has a fresh copy")
		}
		for _, target := range []string{"/private/x", "/public"} {
			if got, want := after.Policy.Decide("x", target), before.Policy.Decide("x", target); got != want {
				t.Errorf("%s: %+v after the restart, %+v before", target, got, want)
			}
		}
		if after.Dialect != policy.Google || after.Header.Get("ETag") != `"v1"` || !after.Time.Equal(before.Time) || len(after.Redirects) != 1 {
			t.Errorf("after the restart %s, before %s", brief(after), brief(before))
		}
		time.Sleep(time.Hour + time.Second)
		if get(t, c, second, "https://a.example"); second.count() != 1 {
			t.Errorf("%d fetches once the copy has expired", second.count())
		}
		closeCache(t, c)
	})
}

func TestA304RenewsAFileThatOnlyTheStoreHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		s := &site{serve: func(n int, prev *fetch.Result) *fetch.Result {
			if n == 0 {
				return rules("/private", "ETag", `"v1"`, "Cache-Control", "max-age=600")
			}
			if prev == nil || prev.Body == nil {
				t.Error("no file to validate")
			}
			renewed := *prev
			return &renewed
		}}
		c := &cache.Cache{Store: store}
		for range 5 {
			get(t, c, s, "https://a.example")
			time.Sleep(time.Hour)
		}
		closeCache(t, c)
		c = &cache.Cache{Store: store, MaxStale: -1, MinTTL: 24 * time.Hour}
		if r := get(t, c, s, "https://a.example"); r.Policy.Decide("x", "/private/x").Rule.Line != 2 {
			t.Errorf("line %d of the file decides, want 2", r.Policy.Decide("x", "/private/x").Rule.Line)
		}
		closeCache(t, c)
	})
}

func TestRulesSurviveAStoreThatForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		s := &site{serve: inTurn(rules("/private", "Cache-Control", "max-age=600"), down())}
		c := &cache.Cache{Store: store}
		get(t, c, s, "https://a.example")
		synctest.Wait()
		store.mu.Lock()
		clear(store.values)
		store.mu.Unlock()
		time.Sleep(time.Hour)
		get(t, c, s, "https://a.example") // in an outage now, and memory has no file
		closeCache(t, c)

		c = &cache.Cache{Store: store}
		r := get(t, c, s, "https://a.example")
		if r.Err != nil || r.Policy.Decide("x", "/private/x").Allowed || !r.Policy.Decide("x", "/public").Allowed {
			t.Errorf("%s, want the rules as the policy writes them", brief(r))
		}
		closeCache(t, c)
	})
}

func TestAnOutageIsRememberedAcrossARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(memStore), &site{serve: always(down())}
		for i := range 5 {
			c := (&cache.Cache{Store: store}).WithoutSpread()
			if r := get(t, c, s, "https://a.example"); r.Err == nil || r.Err.Error() != errDown.Error() {
				t.Errorf("%s, want the error of the outage", brief(r))
			}
			closeCache(t, c)
			if want := []int{1, 1, 2, 2, 2}[i]; s.count() != want {
				t.Errorf("start %d: %d fetches, want %d", i, s.count(), want)
			}
			time.Sleep(20 * time.Second) // 30 s after the first failure, then 60
		}
	})
}

func TestNoStoreIsNotPut(t *testing.T) {
	for _, tt := range []struct {
		cacheControl string
		want         int
	}{
		{"max-age=60", 1}, {"no-store", 0}, {"private", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, s := new(memStore), &site{serve: always(rules("/private", "Cache-Control", tt.cacheControl))}
			c := &cache.Cache{Store: store}
			get(t, c, s, "https://a.example")
			closeCache(t, c)
			if got := len(store.keys()); got != tt.want {
				t.Errorf("Cache-Control: %s: %d values in the store, want %d", tt.cacheControl, got, tt.want)
			}
		})
	}
}

func TestADamagedValueIsAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(memStore), &site{serve: always(rules("/private"))}
		c := &cache.Cache{Store: store}
		get(t, c, s, "https://a.example")
		closeCache(t, c)
		good := store.values["https://a.example"]
		for name, data := range map[string][]byte{
			"empty":           {},
			"cut":             good[:len(good)-1],
			"cut to nothing":  good[:12],
			"too long":        bytes.Repeat([]byte("x"), 10<<20),
			"one bit flipped": flip(good, len(good)/2),
			"another version": flip(good, 3),
			"some text":       []byte("User-agent: *\nAllow: /\n"),
		} {
			fetches := s.count()
			store.values["https://a.example"] = data
			c := &cache.Cache{Store: store}
			if r := get(t, c, s, "https://a.example"); r.Err != nil || s.count() != fetches+1 {
				t.Errorf("%s: %d fetches, want 1", name, s.count()-fetches)
			}
			if closeCache(t, c); !bytes.HasPrefix(store.values["https://a.example"], []byte("RGC3")) {
				t.Errorf("%s: not replaced", name)
			}
		}
		store.values["https://b.example"] = good
		c, fetches := &cache.Cache{Store: store}, s.count()
		if get(t, c, s, "https://b.example"); s.count() != fetches+1 {
			t.Error("took the value of another origin")
		}
		closeCache(t, c)
	})
}

func flip(data []byte, i int) []byte {
	data = bytes.Clone(data)
	data[i] ^= 4
	return data
}

func TestAStoreThatHangsCostsACallerATenthOfASecond(t *testing.T) {
	for name, hang := range map[string]func(context.Context, string) error{
		"heeds its context":  func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
		"ignores it":         func(context.Context, string) error { time.Sleep(time.Hour); return nil },
		"ignores it, panics": func(context.Context, string) error { time.Sleep(time.Hour); panic("late") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &site{serve: always(rules("/private"))}
				c := &cache.Cache{Store: &memStore{before: hang}, Logger: quiet}
				for i := range 50 {
					start := time.Now()
					get(t, c, s, fmt.Sprintf("https://a%d.example", i))
					limit := 100 * time.Millisecond
					if i >= 5 {
						limit = 0 // the breaker is open
					}
					if took := time.Since(start); took > limit {
						t.Errorf("origin %d took %v", i, took)
					}
					start = time.Now()
					if get(t, c, s, fmt.Sprintf("https://a%d.example", i)); time.Since(start) != 0 {
						t.Errorf("a hit took %v", time.Since(start))
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close: %v, want it to say what was not written", err)
				}
				time.Sleep(48 * time.Hour) // let everything end
			})
		})
	}
}

func TestAFailingStoreIsLeftAloneAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := &memStore{before: func(context.Context, string) error { return errors.New("READONLY") }}
		s := &site{serve: always(rules("/private"))}
		c := &cache.Cache{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		ask := func(from, to int) {
			for i := from; i < to; i++ {
				get(t, c, s, fmt.Sprintf("https://a%d.example", i))
				synctest.Wait()
			}
		}
		ask(0, 100)
		if got := store.count("Get"); got != 5 {
			t.Errorf("%d reads of a store that fails, want 5", got)
		}
		time.Sleep(5 * time.Second)
		ask(100, 200)
		if got := store.count("Get"); got != 6 {
			t.Errorf("%d reads after the first pause, want 6", got)
		}
		if got := strings.Count(log.String(), "\n"); got != 2 || strings.Count(log.String(), "READONLY") != 2 {
			t.Errorf("log of a failing store, reading and writing:\n%s", &log)
		}
		store.misbehave(nil)
		time.Sleep(5 * time.Second)
		ask(200, 300)
		if closeCache(t, c); len(store.keys()) < 290 {
			t.Errorf("%d values in the store in the end, most of them queued while it failed", len(store.keys()))
		}
		if got := strings.Count(log.String(), "works again"); got != 2 || strings.Count(log.String(), "\n") != 4 {
			t.Errorf("log after the recovery:\n%s", &log)
		}
		if got := c.Stats(); got.StoreErrors < 11 || got.StoreDrops != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestTheQueueOfWritesIsBoundedAndKeepsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		store := &memStore{before: func(_ context.Context, call string) error {
			if call == "Put" {
				<-held
			}
			return nil
		}}
		s := &site{serve: func(n int, _ *fetch.Result) *fetch.Result { return rules(fmt.Sprintf("/%d", n)) }}
		c := &cache.Cache{Store: store, StoreTimeout: 1, Logger: quiet, MinTTL: -1, DefaultTTL: -1} // no wait for room
		get(t, c, s, "https://a.example")
		synctest.Wait() // it is being written
		for range 3 {
			get(t, c, s, "https://a.example") // these wait for it, one in place of the other
		}
		for i := range 2000 {
			get(t, c, s, fmt.Sprintf("https://a%d.example", i))
		}
		const room = 1024 + 64 // in the queue, and in the hands of writers
		if got := c.Stats().StoreDrops; got != 2000+2-room {
			t.Errorf("%d values dropped, want %d", got, 2000+2-room)
		}
		close(held)
		closeCache(t, c)
		if got := len(store.keys()); got != room-1 {
			t.Errorf("%d values in the store, want %d", got, room-1)
		}
		if got := string(store.values["https://a.example"]); !strings.Contains(got, "Disallow: /3\n") {
			t.Errorf("not the latest value: %q", got)
		}
		if got := store.count("Put"); got != room {
			t.Errorf("%d puts, want %d", got, room)
		}
	})
}

// lockStore has locks, each of which lapses if nobody renews it.
type lockStore struct {
	memStore
	locks map[string]time.Time // until when
	dead  bool                 // whoever holds a lock never lets go
}

func (s *lockStore) Lock(ctx context.Context, key string, ttl time.Duration) (func(), bool, error) {
	if err := s.enter(ctx, "Lock"); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks == nil {
		s.locks = map[string]time.Time{}
	}
	if time.Now().Before(s.locks[key]) {
		return nil, false, nil
	}
	s.locks[key] = time.Now().Add(time.Hour)
	if s.dead {
		s.locks[key] = time.Now().Add(ttl)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.dead {
			delete(s.locks, key)
		}
	}, true, nil
}

func TestProcessesShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lockStore), &site{serve: always(rules("/private")), delay: 12 * time.Second} // others wait for 15
		var group sync.WaitGroup
		caches := make([]cache.Cache, 5)
		for round := range 3 {
			for i := range caches {
				caches[i].Store = store
				for range 3 {
					group.Go(func() {
						if r := get(t, &caches[i], s, "https://a.example"); r.Err != nil {
							t.Error(r.Err)
						}
					})
				}
			}
			group.Wait()
			if s.count() != round+1 {
				t.Errorf("%d fetches in round %d by %d caches, want 1 per round", s.count(), round, len(caches))
			}
			time.Sleep(25 * time.Hour)
		}
		for i := range caches {
			closeCache(t, &caches[i])
		}
	})
}

func TestADeadHolderOfTheLockCostsItsLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := &lockStore{dead: true}, &site{serve: always(rules("/private"))}
		if _, ok, err := store.Lock(t.Context(), "https://a.example", 5*time.Second); !ok || err != nil {
			t.Fatal(ok, err)
		}
		c, start := &cache.Cache{Store: store}, time.Now()
		r := get(t, c, s, "https://a.example")
		if took := time.Since(start); r.Err != nil || s.count() != 1 || took < 4*time.Second || took > 6*time.Second {
			t.Errorf("%v, %d fetches after %v, want 1 after 5 s", r.Err, s.count(), took)
		}
		closeCache(t, c)
	})
}

func TestLocksThatFailCostNoMoreThanAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lockStore), &site{serve: always(rules("/private"))}
		store.before = func(ctx context.Context, call string) error {
			if call == "Lock" {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		c := &cache.Cache{Store: store, Logger: quiet}
		for i := range 20 {
			start := time.Now()
			get(t, c, s, fmt.Sprintf("https://a%d.example", i))
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("origin %d took %v", i, took)
			}
		}
		closeCache(t, c)
	})
}

func TestTimesFromTheFutureAreLongAgo(t *testing.T) {
	var store *memStore
	var ahead []byte
	s := &site{serve: always(rules("/private"))}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * 365 * time.Hour) // a machine whose clock is a year ahead
		store = new(memStore)
		c := &cache.Cache{Store: store}
		get(t, c, s, "https://a.example")
		closeCache(t, c)
		ahead = store.values["https://a.example"]
	})
	synctest.Test(t, func(t *testing.T) {
		store := &memStore{values: map[string][]byte{"https://a.example": ahead}, calls: map[string]int{}}
		c := &cache.Cache{Store: store}
		if get(t, c, s, "https://a.example"); s.count() != 2 {
			t.Error("a copy from the future counts as fresh")
		}
		closeCache(t, c)
		c = &cache.Cache{Store: store}
		if get(t, c, s, "https://a.example"); s.count() != 2 {
			t.Error("it was not replaced by one of today")
		}
		closeCache(t, c)
	})
}

func TestALockIsNotHeldForAWriteThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lockStore), &site{serve: always(rules("/private"))}
		store.before = func(_ context.Context, call string) error {
			if call == "Put" {
				return errors.New("OOM")
			}
			return nil
		}
		// All have their lock before the first write fails, and most are done after the
		// breaker has opened.
		c := &cache.Cache{Store: store, Logger: quiet}
		var asking sync.WaitGroup
		for i := range 16 {
			asking.Go(func() {
				slow := &site{serve: s.serve, delay: time.Duration(1+i) * 100 * time.Millisecond}
				get(t, c, slow, fmt.Sprintf("https://a%d.example", i))
			})
		}
		asking.Wait()
		synctest.Wait()
		store.mu.Lock()
		if store.calls["Lock"] != 16 || len(store.locks) > 0 {
			t.Errorf("%d locks were taken, and %d are still held", store.calls["Lock"], len(store.locks))
		}
		store.mu.Unlock()
		if err := c.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "16 values") || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("Close: %v, want it to say what is lost", err)
		}
	})
}

// seal puts a value that looks genuine, as another process might have written it.
func (s *memStore) seal(key, meta, file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.calls = map[string][]byte{}, map[string]int{}
	}
	s.values[key] = sealed([]byte(meta), []byte(file))
}

func TestAForeignRecordCannotLockAnOriginOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Format(time.RFC3339Nano)
		store, s := new(memStore), &site{serve: always(rules("/private"))}
		store.seal("https://a.example", `{"origin":"https://a.example","failure":{"error":"e","received":"`+now+`","retry_ns":9223372036854775807,"since":"`+now+`","count":1}}`, "")
		c := &cache.Cache{Store: store}
		get(t, c, s, "https://a.example")
		time.Sleep(25 * time.Hour)
		if get(t, c, s, "https://a.example"); s.count() != 1 {
			t.Errorf("%d fetches, a day after an outage was recorded", s.count())
		}
		closeCache(t, c)
	})
}

func TestARecordFromTheFutureDoesNotDisplaceAGoodCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(memStore), &site{serve: inTurn(rules("/private", "Cache-Control", "max-age=60"), down())}
		c := &cache.Cache{Store: store}
		get(t, c, s, "https://a.example")
		synctest.Wait()
		later := time.Now().Add(365 * 24 * time.Hour).Format(time.RFC3339Nano)
		store.seal("https://a.example", `{"origin":"https://a.example","answer":{"file":true,"status":200,"received":"`+later+`"}}`, "")
		time.Sleep(time.Hour)
		if r := get(t, c, s, "https://a.example"); r.Err != nil || r.Policy.Decide("x", "/private/x").Allowed {
			t.Errorf("%s, want the copy in memory", brief(r))
		}
		closeCache(t, c)
	})
}

// A hundred origins are met at once by a Store that takes its time: some are fetched
// without it, but it is not taken for a broken one.
func TestABurstDoesNotLookLikeASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(memStore), &site{serve: always(rules("/private"))}
		store.before = func(context.Context, string) error { time.Sleep(60 * time.Millisecond); return nil }
		c := &cache.Cache{Store: store, Logger: quiet}
		var asking sync.WaitGroup
		for i := range 100 {
			asking.Go(func() {
				start := time.Now()
				get(t, c, s, fmt.Sprintf("https://a%d.example", i))
				if took := time.Since(start); took > 100*time.Millisecond {
					t.Errorf("origin %d took %v", i, took)
				}
			})
		}
		asking.Wait()
		if got := c.Stats().StoreErrors; got != 0 {
			t.Errorf("%d errors of a store that answers in 60 ms", got)
		}
		closeCache(t, c)
	})
}

// lateStore grants each lock a second after it was asked for.
type lateStore struct{ lockStore }

func (s *lateStore) Lock(_ context.Context, key string, ttl time.Duration) (func(), bool, error) {
	time.Sleep(time.Second)
	return s.lockStore.Lock(context.Background(), key, ttl)
}

func TestALockThatComesTooLateIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lateStore), &site{serve: always(rules("/private"))}
		c := &cache.Cache{Store: store, Logger: quiet}
		get(t, c, s, "https://a.example")
		time.Sleep(2 * time.Second)
		if store.count("Lock") != 1 || len(store.locks) != 0 {
			t.Errorf("%d locks taken, %d held: nobody will ever give it back", store.count("Lock"), len(store.locks))
		}
		closeCache(t, c)
	})
}

// Between a look into the Store and the lock, whoever had the lock may have put a result.
func TestTheStoreIsAskedAgainUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lockStore), &site{serve: always(rules("/private"))}
		store.before = func(_ context.Context, call string) error {
			if call == "Lock" {
				store.seal("https://a.example", `{"origin":"https://a.example","answer":{"file":true,"status":200,"received":"`+time.Now().Format(time.RFC3339Nano)+`"}}`, "User-agent: *\n")
			}
			return nil
		}
		c := &cache.Cache{Store: store}
		get(t, c, s, "https://a.example")
		synctest.Wait()
		if s.count() != 0 || len(store.locks) != 0 {
			t.Errorf("%d fetches, %d locks held; want none of either", s.count(), len(store.locks))
		}
		closeCache(t, c)
	})
}

func TestTheQueueOfWritesIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		store := &memStore{before: func(_ context.Context, call string) error {
			if call == "Put" {
				<-held
			}
			return nil
		}}
		s := &site{serve: always(fileResult("User-agent: *\n" + strings.Repeat("#", 400<<10)))}
		c := &cache.Cache{Store: store, Logger: quiet}
		for i := range 200 {
			get(t, c, s, fmt.Sprintf("https://a%d.example", i))
			synctest.Wait()
		}
		const fit = 32 << 20 / (400 << 10) // in the queue, and in the hands of writers
		if got := c.Stats().StoreDrops; got < 200-fit || got > 200-fit+5 {
			t.Errorf("%d of 200 values dropped, want %d", got, 200-fit)
		}
		close(held)
		closeCache(t, c)
	})
}
