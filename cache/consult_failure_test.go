package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// slowStore answers a read after a time, with nothing, unless its context ends before.
type slowStore time.Duration

func (s slowStore) Get(ctx context.Context, _ string) ([]byte, error) {
	select {
	case <-time.After(time.Duration(s)):
		return nil, cache.ErrMiss
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (slowStore) Put(context.Context, string, []byte, time.Duration) error { return nil }

// What takes longer than StoreTimeout is a failure, and counts.
func TestStoreTimeoutSaysWhatIsAFailure(t *testing.T) {
	for _, row := range []struct {
		timeout time.Duration
		want    uint64
	}{
		{0, 1}, // 100 ms
		{time.Minute, 0},
		{-1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &cache.Cache{Store: slowStore(300 * time.Millisecond), StoreTimeout: row.timeout}
			start := time.Now()
			get(t, c, &site{serve: always(unavailable(404))}, "http://a.example")
			if took, n := time.Since(start), c.Stats().StoreErrors; n != row.want || took > 600*time.Millisecond { // two reads: for all, and for this User-Agent
				t.Errorf("StoreTimeout %v: %d failures after %v, want %d", row.timeout, n, took, row.want)
			}
			closeCache(t, c)
		})
	}
}

type panicky struct{}

func (panicky) Error() string { panic("Error() panics") }

func TestAnErrorThatPanicsIsAnOutage(t *testing.T) {
	for name, answer := range map[string]struct {
		r   *fetch.Result
		err error
	}{
		"in the result": {&fetch.Result{Err: panicky{}, Policy: policy.Unreachable()}, nil},
		"beside it":     {nil, panicky{}},
	} {
		c := new(cache.Cache)
		r, err := c.Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			return answer.r, answer.err
		}})
		if err != nil || r.Err == nil || r.Policy.Decide("x", "/").Allowed {
			t.Errorf("%s: %s, %v; want an outage", name, brief(r), err)
		}
	}
}

// A Store that several processes share is over a network: an answer that comes after some round trips is no
// failure. One of a single process is beside it.
func TestASharedStoreHasTheTimeOfANetwork(t *testing.T) {
	far := func(context.Context, string) error { time.Sleep(300 * time.Millisecond); return nil }
	for _, shared := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := &lockStore{memStore: memStore{before: far}}
			c := &cache.Cache{Store: store, Logger: quiet}
			if !shared {
				c.Store = &store.memStore
			}
			get(t, c, &site{serve: always(rules("/private"))}, "https://a.example")
			if n := c.Stats().StoreErrors; n > 0 == shared {
				t.Errorf("shared %v: %d failures", shared, n)
			}
			closeCache(t, c)
		})
	}
}
