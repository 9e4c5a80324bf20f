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
		{0, 0}, // 2 s
		{100 * time.Millisecond, 1},
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
