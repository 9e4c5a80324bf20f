package cache_test

import (
	"context"
	"errors"
	"fmt"
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
		err   string        // of the first Close; "": none
		after int           // how often the Store is closed after it
		again string        // error of a second Close, when the Store takes values
		most  time.Duration // that the first one takes
	}{
		{"all is well", &closingStore{}, "", 1, "", 100 * time.Millisecond},
		{"a value is not taken", &closingStore{memStore: memStore{before: on("Put", fails)}}, "marks of 1 origins are not in the store: no connection", 0, "", 100 * time.Millisecond},
		{"the Store hangs", &closingStore{memStore: memStore{before: on("Put", late)}}, "not in the store", 0, "", 5 * time.Second},
		{"its Close fails", &closingStore{end: func() error { return full }}, "the disk is full", 1, "the disk is full", 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := tt.store
			c := &cache.Cache{Store: store, Logger: quiet}
			get(t, c, &site{serve: always(rules("/private"))}, "https://a.example")
			time.Sleep(time.Second) // so that a write that hangs is given up before Close is
			for i, want := range []string{tt.err, tt.again} {
				start := time.Now()
				err := c.Close()
				if took := time.Since(start); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) || took > tt.most {
					t.Errorf("%s: Close %d: %v after %v, want %q", tt.name, i+1, err, took, want)
				}
				if got := int(store.closed.Load()); got != max(i, tt.after) {
					t.Errorf("%s: closed %d times after Close %d, want %d", tt.name, got, i+1, max(i, tt.after))
				}
				store.misbehave(nil)
				time.Sleep(2 * time.Hour)
			}
			if len(store.keys()) != 1 {
				t.Errorf("%s: the Store has %q in the end, want one value", tt.name, store.keys())
			}
			if store.misused.Load() {
				t.Errorf("%s: the Store was called while it was closed, or after", tt.name)
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
			if err := errors.Join(c.Shutdown(ended), new(cache.Cache).Shutdown(ended)); err != nil || store.closed.Load() != 1 {
				t.Errorf("error %v, closed %d times; want none, and once", err, store.closed.Load())
			}
		})
	}
}

// Locks are given back behind the callers, which takes a while: no Store is closed before, and there is no longer wait.
func TestCloseWaitsForTheLocksToBeGivenBack(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		answer *fetch.Result
		put    func(context.Context) error // what the first six writes meet
	}{
		"there is something to write":         {rules("/private"), func(context.Context) error { return nil }},
		"there is nothing to write":           {unavailable(429), func(context.Context) error { return nil }},
		"the Store takes nothing for a while": {rules("/private"), fails},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(closingStore)
			store.before = on("Put", tt.put)
			c := &cache.Cache{Store: store, Logger: quiet}
			for i := range 7 {
				time.Sleep(time.Second)
				get(t, c, &site{serve: always(tt.answer)}, fmt.Sprintf("https://a%d.example", i))
			}
			synctest.Wait() // the last unlock is under way
			store.misbehave(nil)
			if err := c.Shutdown(ended); err == nil || store.closed.Load() != 0 {
				t.Errorf("%s: a Close that cannot wait: %v, and the Store is closed %d times; want an error, and 0", name, err, store.closed.Load())
			}
			start := time.Now()
			closeCache(t, c)
			if took := time.Since(start); took != 100*time.Millisecond || store.misused.Load() || store.closed.Load() != 1 {
				t.Errorf("%s: Close took %v, want the 100 ms that it takes to give a lock back", name, took)
			}
		})
	}
}

// A Shutdown waits for another one no longer than its context.
func TestShutdownWaitsForAnotherWithinItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &closingStore{memStore: memStore{before: on("Put", late)}}
		c := &cache.Cache{Store: store, Logger: quiet}
		get(t, c, &site{serve: always(rules("/private"))}, "https://a.example")
		first := make(chan error)
		go func() { first <- c.Shutdown(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := c.Shutdown(ctx)
		if took := time.Since(start); err != context.DeadlineExceeded || took != time.Second {
			t.Errorf("got %v after %v, want %v after a second", err, took, context.DeadlineExceeded)
		}
		<-first
		store.misbehave(nil)
		closeCache(t, c)
	})
}

// Close ends each Load and waits for it. Who waits for one, or comes later, is refused, and waits for no Store.
func TestGetAfterCloseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := &cache.Cache{Store: new(lockStore), Logger: quiet}, &site{serve: always(rules("/private"))}
		allowed(t, c, s, "/x")
		var running atomic.Bool
		waiting := make(chan error, 1)
		go func() {
			_, _, err := c.Get(t.Context(), origin(t, "https://b.example"), &cache.Source{Load: func(ctx context.Context, _ fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
				running.Store(true)
				defer running.Store(false)
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond) // closing connections takes its time
				return nil, ctx.Err()
			}})
			waiting <- err
		}()
		synctest.Wait()
		if closeCache(t, c); running.Load() {
			t.Error("Close returned while a Load still runs")
		}
		if err := <-waiting; err != cache.ErrClosed {
			t.Errorf("a waiting caller got %v, want %v", err, cache.ErrClosed)
		}
		start := time.Now()
		for _, name := range []string{"https://a.example", "https://c.example"} {
			if _, _, err := c.Get(t.Context(), origin(t, name), &cache.Source{Load: s.load}); err != cache.ErrClosed || time.Since(start) != 0 {
				t.Errorf("%s: a later caller got %v after %v, want ErrClosed at once", name, err, time.Since(start))
			}
		}
		closeCache(t, c)
	})
}
