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
	"github.com/robotsgate/robotsgate/integration_test/tier"
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

// kept counts the values but the marks, which hold no answer.
func (s *memStore) kept() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		if !bytes.Contains(v, []byte(`"rules_until"`)) {
			n++
		}
	}
	return n
}

func (s *memStore) lose(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
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

// ask asks for an origin and fails the test for any error.
func ask(t *testing.T, c *cache.Cache, src *cache.Source, raw string) *fetch.Result {
	t.Helper()
	r, _, err := c.Get(t.Context(), origin(t, raw), src)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get asks what a site says.
func get(t *testing.T, c *cache.Cache, s *site, raw string) *fetch.Result {
	t.Helper()
	return ask(t, c, &cache.Source{Load: s.load, Dialect: s.dialect}, raw)
}

func closeCache(t *testing.T, c *cache.Cache) {
	t.Helper()
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// seal puts a value that looks genuine, as another process might have written it.
func (s *memStore) seal(key, meta, file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.calls = map[string][]byte{}, map[string]int{}
	}
	s.values[key] = sealed([]byte(meta), []byte(file))
}

// lockStore has locks, each of which lapses if its holder does not renew it.
type lockStore struct {
	memStore
	locks map[string]time.Time // until when
}

func (s *lockStore) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.locks)
}

func (s *lockStore) Lock(ctx context.Context, key string, _ time.Duration) (func(), bool, error) {
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
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.locks, key)
	}, true, nil
}

// on returns a fault of one call of a Store, or of all.
func on(call string, fault func(context.Context) error) func(context.Context, string) error {
	return func(ctx context.Context, called string) error {
		if called == call || call == "" {
			return fault(ctx)
		}
		return ctx.Err()
	}
}

// then is what the next process over a Store says of a site, and of its answer; it ends with that.
func then(t *testing.T, store cache.Store, answer *fetch.Result) *fetch.Result {
	t.Helper()
	c := &cache.Cache{Store: store, Logger: quiet}
	defer closeCache(t, c)
	return get(t, c, &site{serve: always(answer)}, "https://a.example")
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

// More origins than a Store is asked for at a time wait for it as long as it answers, and not for one that is silent.
func TestMissesWaitForAStoreThatIsMerelyBusy(t *testing.T) {
	const origins = 4*64 + 1 // in five turns of 64
	for _, row := range []struct {
		name    string
		before  func(context.Context, string) error
		fetches int
		took    time.Duration // at most, if the Store is silent
	}{
		{"quick", func(context.Context, string) error { time.Sleep(2 * time.Millisecond); return nil }, 0, 10 * time.Millisecond},
		{"busy", func(context.Context, string) error { time.Sleep(time.Second); return nil }, 0, 5 * time.Second},
		{"silent", on("", late), origins, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, s := new(memStore), &site{serve: always(rules("/private"))}
			all := func() time.Duration {
				c, start := &cache.Cache{Store: store, Logger: quiet}, time.Now()
				var asking sync.WaitGroup
				for i := range origins {
					asking.Go(func() { get(t, c, s, fmt.Sprintf("https://a%d.example", i)) })
				}
				asking.Wait()
				took := time.Since(start)
				store.misbehave(nil)
				closeCache(t, c)
				return took
			}
			all() // the Store has them now
			store.misbehave(row.before)
			took := all()
			if got := s.count() - origins; got != row.fetches || took > row.took || got == 0 && took < row.took {
				t.Errorf("%s: got %d fetches in %v, want %d in %v", row.name, got, took, row.fetches, row.took)
			}
		})
	}
}

// Several processes meet the same origins at once: each is fetched once for all of them, and
// those who wait do not wear the Store out.
func TestProcessesShareOneFetch(t *testing.T) {
	most := 100
	if tier.AtGate() {
		most = 1000
	}
	for _, tt := range []struct {
		origins, processes int
		delay              time.Duration // of the site
	}{{1, 5, 12 * time.Second}, {most, 3, 2 * time.Second}} { // others wait for 15
		synctest.Test(t, func(t *testing.T) {
			store, s := new(lockStore), &site{serve: always(rules("/private")), delay: tt.delay}
			store.misbehave(func(ctx context.Context, call string) error {
				time.Sleep(2 * time.Millisecond)
				return ctx.Err()
			})
			var asking sync.WaitGroup
			caches := make([]cache.Cache, tt.processes)
			for round := range 3 {
				for i := range caches {
					caches[i].Store = store
					for n := range tt.origins {
						asking.Go(func() { get(t, &caches[i], s, fmt.Sprintf("https://a%d.example", n)) })
					}
				}
				asking.Wait()
				if want := (round + 1) * tt.origins; s.count() != want {
					t.Errorf("%d fetches in round %d of %d origins by %d processes, want %d", s.count(), round, tt.origins, tt.processes, want)
				}
				if got := store.count("Lock"); tt.origins > 1 && got > 9*tt.origins*(round+1) {
					t.Errorf("%d attempts at locks in the two seconds of a fetch, for %d origins, want %d at most", got, tt.origins, 9*tt.origins*(round+1))
				}
				time.Sleep(25 * time.Hour)
			}
			for i := range caches {
				closeCache(t, &caches[i])
			}
		})
	}
}

// An outage displaces nothing that another process has put while it was found out: a Store may have no locks, and a lock
// may be lost.
func TestAFailureLeavesWhatAnotherProcessHasPut(t *testing.T) {
	for _, tt := range []struct {
		name        string
		before      *fetch.Result // in the Store; nil: nothing
		put, failed *fetch.Result
		want, next  string // of the one that failed, and of the next process, which meets a 429
	}{
		{"503", nil, rules("/private"), outage(503), "rules", "rules"},
		{"429", nil, rules("/private"), unavailable(429), "rules", "rules"},
		{"503, and an older copy", rules("/", "Cache-Control", "no-cache"), rules("/private"), outage(503), "rules", "rules"},
		{"503, and a mark", nil, rules("/private", "Cache-Control", "no-store"), outage(503), "disallow", "disallow"},
		{"429, and a mark", nil, rules("/private", "Cache-Control", "no-store"), unavailable(429), "disallow", "disallow"},
		{"503, and a 404", nil, unavailable(404), outage(503), "allow", "allow"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			if tt.before != nil {
				then(t, store, tt.before)
				time.Sleep(time.Hour)
			}
			c := &cache.Cache{Store: store, Logger: quiet}
			go get(t, c, &site{serve: always(tt.failed), delay: 10 * time.Second}, "https://a.example")
			time.Sleep(time.Second)
			then(t, store, tt.put)
			time.Sleep(10 * time.Second)
			if got := verdictOf(get(t, c, &site{serve: always(tt.failed)}, "https://a.example")); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
			closeCache(t, c)
			if got := verdictOf(then(t, store, unavailable(429))); got != tt.next {
				t.Errorf("%s: then %s, want %s", tt.name, got, tt.next)
			}
		})
	}
}

// To wait for another's result is no fault of the Store; to be silent meanwhile is.
func TestAStoreThatFallsSilentIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lockStore), &site{serve: always(rules("/private"))}
		c, start := &cache.Cache{Store: store, Logger: quiet}, time.Now()
		var asking sync.WaitGroup
		for i := range 200 { // more than there are calls of the Store at a time
			if _, ok, err := store.Lock(t.Context(), fmt.Sprintf("RGC5 https://b%d.example ", i), time.Hour); !ok || err != nil {
				t.Fatalf("setup: lock %d: got %t, %v, want true, no error", i, ok, err)
			}
			asking.Go(func() { get(t, c, s, fmt.Sprintf("https://b%d.example", i)) })
		}
		time.Sleep(4 * time.Second)
		if s.count() != 0 {
			t.Errorf("%d fetches of what another process fetches, want none", s.count())
		}
		store.misbehave(on("", late))
		asking.Wait()
		// They look once a second at least, and then wait for two seconds for a place, for two more if no call has failed in
		// that moment, and for two for an answer.
		if took := time.Since(start) - 4*time.Second; took > 7*time.Second || s.count() != 200 {
			t.Errorf("%d fetches, the last %v after the store fell silent; want 200, within 7 s", s.count(), took)
		}
		store.misbehave(nil)
		time.Sleep(time.Minute) // what it did not take is put again
		closeCache(t, c)
	})
}

// A lock that is never free costs a miss the 15 s that another process may take, and one that lapses no longer than that.
func TestALockThatIsNeverFreeCosts15Seconds(t *testing.T) {
	for _, tt := range []struct {
		name        string
		until       time.Duration // of the lock
		least, most time.Duration
	}{
		{"as it is", time.Hour, 12 * time.Second, 15 * time.Second},
		{"its holder is dead", 5 * time.Second, 4 * time.Second, 6 * time.Second},
	} {
		for _, slow := range []time.Duration{0, 30 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				store, s := new(lockStore), &site{serve: always(rules("/private"))}
				store.before = func(_ context.Context, call string) error { time.Sleep(slow); return nil }
				c := &cache.Cache{Store: store, Logger: quiet}
				store.locks = map[string]time.Time{"RGC5 https://a.example ": time.Now().Add(tt.until)}
				start := time.Now()
				r := get(t, c, s, "https://a.example")
				if took := time.Since(start); r.Err != nil || took > tt.most+2*slow || took < tt.least || s.count() != 1 {
					t.Errorf("%s, %v for a call: %v, %d fetches after %v, want one after %v to %v", tt.name, slow, r.Err, s.count(), took, tt.least, tt.most)
				}
				closeCache(t, c)
			})
		}
	}
}

// Locks that hang are left alone although values are read and written, as any part of a Store
// that fails, and take no reader's place.
func TestALockerThatHangsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lockStore), &site{serve: always(rules("/private"))}
		store.before = on("Lock", late)
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
		if n, reads := len(store.keys()), store.count("Get"); n != 1000 || reads < 1000 {
			t.Errorf("%d values are in the Store, after %d reads, want 1,000, and so many at least", n, reads)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "part=locking") {
			t.Errorf("the log, want one line about locking:\n%s", text)
		}
		closeCache(t, c)
	})
}

// What takes longer than two seconds is a failure, and counts.
func TestACallOfTheStoreHasTwoSeconds(t *testing.T) {
	for takes, want := range map[time.Duration]uint64{1900 * time.Millisecond: 0, 2100 * time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			store := &memStore{before: on("Get", func(ctx context.Context) error {
				select {
				case <-time.After(takes):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})}
			c, start := &cache.Cache{Store: store, Logger: quiet}, time.Now()
			get(t, c, &site{serve: always(unavailable(404))}, "http://a.example")
			if took, n := time.Since(start), c.Stats().StoreErrors; n != want || took != min(takes, 2*time.Second) {
				t.Errorf("a call of %v: %d failures after %v, want %d", takes, n, took, want)
			}
			closeCache(t, c)
		})
	}
}
