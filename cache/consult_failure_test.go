package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
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
			if took, n := time.Since(start), c.Stats().StoreErrors; n != row.want || took > 300*time.Millisecond {
				t.Errorf("StoreTimeout %v: %d failures after %v, want %d", row.timeout, n, took, row.want)
			}
			closeCache(t, c)
		})
	}
}
