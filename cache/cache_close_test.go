package cache_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// closingStore is a memStore that has to be closed, after its last call.
type closingStore struct {
	memStore
	end      func() error // what Close does; nil: nothing
	underway atomic.Int32
	closed   atomic.Int32
	misused  atomic.Bool // called while or after it was closed
}

func (s *closingStore) during() func() {
	s.underway.Add(1)
	return func() {
		s.misused.Store(s.misused.Load() || s.closed.Load() > 0)
		s.underway.Add(-1)
	}
}

func (s *closingStore) Get(ctx context.Context, key string) ([]byte, error) {
	defer s.during()()
	return s.memStore.Get(ctx, key)
}

func (s *closingStore) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	defer s.during()()
	return s.memStore.Put(ctx, key, data, ttl)
}

func (s *closingStore) Lock(ctx context.Context, _ string, _ time.Duration) (unlock func(), ok bool, err error) {
	defer s.during()()
	if err := s.enter(ctx, "Lock"); err != nil {
		return nil, false, err
	}
	return func() {
		defer s.during()()
		time.Sleep(100 * time.Millisecond)
	}, true, nil
}

func (s *closingStore) Close() error {
	s.misused.Store(s.misused.Load() || s.underway.Load() > 0)
	s.closed.Add(1)
	if s.end != nil {
		return s.end()
	}
	return nil
}

func TestCloseClosesTheStoreOnce(t *testing.T) {
	full := errors.New("the disk is full")
	for _, tt := range []struct {
		name  string
		store *closingStore
		err   string // of the first Close, which has a second; "": none
		after int    // how often the Store is closed after it
		again string // error of a second Close, when what is left had time to end
	}{
		{"all is well", &closingStore{}, "", 1, ""},
		{"a value is not taken", &closingStore{memStore: memStore{before: inCall("Put", func() error { return full })}}, "marks of 1 origins are not in the store: the disk is full", 0, ""},
		{"its Close fails", &closingStore{end: func() error { return full }}, "the disk is full", 1, "the disk is full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := tt.store
				c := &cache.Cache{Store: store, Logger: quiet}
				get(t, c, &site{serve: always(rules("/private"))}, "https://a.example")
				for i, want := range []string{tt.err, tt.again} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					err := c.Shutdown(ctx)
					if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
						t.Errorf("Close %d: %v, want %q", i+1, err, want)
					}
					closed := 1
					if i == 0 {
						closed = tt.after
					}
					if got := store.closed.Load(); int(got) != closed {
						t.Errorf("closed %d times after Close %d, want %d", got, i+1, closed)
					}
					store.misbehave(nil)
					time.Sleep(10 * time.Second)
				}
				if store.misused.Load() {
					t.Error("the Store was called while it was closed, or after")
				}
			})
		})
	}
}

// inCall is a memStore.before for one of its calls.
func inCall(name string, f func() error) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if call != name {
			return nil
		}
		return f()
	}
}

// A Close without any time closes no Store that is still given a lock back.
func TestALockIsGivenBackBeforeTheStoreIsClosed(t *testing.T) {
	for _, answer := range []*fetch.Result{rules("/private"), unavailable(429)} {
		synctest.Test(t, func(t *testing.T) {
			store := new(closingStore)
			c := &cache.Cache{Store: store}
			get(t, c, &site{serve: always(answer)}, "https://a.example")
			synctest.Wait() // the unlock is under way
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := c.Shutdown(ctx); err == nil {
				t.Errorf("status %d: no error from a Close that cannot wait", answer.StatusCode)
			}
			time.Sleep(time.Second)
			if closeCache(t, c); store.misused.Load() || store.closed.Load() != 1 {
				t.Errorf("status %d: closed %d times, misused: %v", answer.StatusCode, store.closed.Load(), store.misused.Load())
			}
		})
	}
}

// Where nothing runs and nothing is owed there is nothing to wait for.
func TestShutdownWithAnEndedContextClosesWhatIsAtRest(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			store := new(closingStore)
			c := &cache.Cache{Store: store}
			get(t, c, &site{serve: always(unavailable(404))}, "https://a.example")
			time.Sleep(time.Second)
			if err := c.Shutdown(ended); err != nil || store.closed.Load() != 1 {
				t.Errorf("error %v, closed %d times; want none, and once", err, store.closed.Load())
			}
		})
	}
}

// Several Caches can share a Store if its Close is hidden from all but the last.
func TestAStoreWithoutCloseIsLeftOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(closingStore)
		shared := struct {
			cache.Store
			cache.Locker
		}{store, store}
		if _, ok := any(shared).(io.Closer); ok {
			t.Fatal("the wrapper has the method")
		}
		c := &cache.Cache{Store: shared}
		get(t, c, &site{serve: always(rules("/private"))}, "https://a.example")
		if closeCache(t, c); store.closed.Load() != 0 || len(store.keys()) != 1 {
			t.Errorf("closed %d times, with %d values; want it open, with one", store.closed.Load(), len(store.keys()))
		}
	})
}

// Locks are given back behind the callers, which takes a while.
func TestCloseWaitsForTheLocksToBeGivenBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer *fetch.Result
		put    error // what the first six writes meet
	}{
		{"there is something to write", rules("/private"), nil},
		{"there is nothing to write", unavailable(429), nil},
		{"the Store takes nothing for a while", rules("/private"), errors.New("READONLY")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(closingStore)
				store.before = inCall("Put", func() error { return tt.put })
				c := &cache.Cache{Store: store, Logger: quiet}
				for i := range 7 {
					get(t, c, &site{serve: always(tt.answer)}, "https://a"+strconv.Itoa(i)+".example")
					if i < 6 {
						time.Sleep(time.Second)
					}
				}
				store.misbehave(nil)
				start := time.Now()
				closeCache(t, c)
				if took := time.Since(start); took != 100*time.Millisecond || store.misused.Load() || store.closed.Load() != 1 {
					t.Errorf("Close took %v, want the 100 ms that it takes to give a lock back", took)
				}
			})
		})
	}
}

// Close waits for the Store no longer than it may take.
func TestCloseWaitsFiveSecondsAtMost(t *testing.T) {
	for name, tt := range map[string]struct {
		store *closingStore
		took  time.Duration
		err   string
	}{
		"a Store":                    {new(closingStore), 100 * time.Millisecond, ""},
		"a Store that takes nothing": {&closingStore{memStore: memStore{before: on("Put", fails)}}, 100 * time.Millisecond, "no connection"},
		"a Store that hangs":         {&closingStore{memStore: memStore{before: on("Put", late)}}, 5 * time.Second, "not in the store"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &cache.Cache{Store: tt.store, Logger: quiet}
			get(t, c, &site{serve: always(rules("/private"))}, "https://b.example")
			start := time.Now()
			err := c.Close()
			if took := time.Since(start); took > tt.took || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// Whoever asks later is refused at once, and does not wait for the Store that is closed.
func TestGetAfterCloseLeavesTheStoreAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := &cache.Cache{Store: new(lockStore), Logger: quiet}, &site{serve: always(rules("/private"))}
		get(t, c, s, "https://a.example")
		closeCache(t, c)
		start := time.Now()
		_, _, err := c.Get(t.Context(), origin(t, "https://b.example"), &cache.Source{Load: s.load})
		if took := time.Since(start); err != cache.ErrClosed || took != 0 {
			t.Errorf("got %v after %v, want %v at once", err, took, cache.ErrClosed)
		}
	})
}
