package cache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
)

// More origins than a Store is asked for at a time wait for it as long as it answers, and not for one that is silent.
func TestMissesWaitForAStoreThatIsMerelyBusy(t *testing.T) {
	const origins = 300 // in five turns of 64
	for _, row := range []struct {
		name    string
		before  func(context.Context, string) error
		fetches int
		most    time.Duration
	}{
		{"busy", func(context.Context, string) error { time.Sleep(time.Second); return nil }, 0, 5 * time.Second},
		{"silent", func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }, origins, 5 * time.Second},
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
			if got := s.count() - origins; got != row.fetches || took > row.most {
				t.Errorf("%s: %d fetches in %v, want %d in %v at most", row.name, got, took, row.fetches, row.most)
			}
		})
	}
}
