package cache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// A thousand origins met at once by a Store that has them all, in 2 ms each.
func TestABurstFindsWhatTheStoreHas(t *testing.T) {
	for _, n := range []int{200, 1000} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			s := &site{serve: always(rules("/private"))}
			a := &cache.Cache{Store: store, Logger: quiet}
			for i := range n {
				get(t, a, s, fmt.Sprintf("https://a%d.example", i))
				if i%200 == 0 {
					synctest.Wait()
				}
			}
			closeCache(t, a)
			store.misbehave(func(ctx context.Context, call string) error {
				time.Sleep(2 * time.Millisecond)
				return ctx.Err()
			})
			n0 := s.count()
			b := &cache.Cache{Store: store, Logger: quiet}
			var g sync.WaitGroup
			for i := range n {
				g.Go(func() { get(t, b, s, fmt.Sprintf("https://a%d.example", i)) })
			}
			g.Wait()
			if got := s.count() - n0; got > 0 {
				t.Errorf("%d origins in a healthy store of 2 ms, asked at once: %d fetched again", n, got)
			}
			closeCache(t, b)
		})
	}
}

// Three processes meet the same origins at once: each is fetched once for all of them, and
// those who wait do not wear the Store out.
func TestProcessesShareOneFetchOfEachOfAThousandOrigins(t *testing.T) {
	tier.Gate(t)
	for _, n := range []int{100, 300, 1000} {
		synctest.Test(t, func(t *testing.T) {
			store := new(lockStore)
			store.misbehave(func(ctx context.Context, call string) error {
				time.Sleep(2 * time.Millisecond)
				return ctx.Err()
			})
			s := &site{serve: always(rules("/private")), delay: 2 * time.Second}
			var g sync.WaitGroup
			cs := []*cache.Cache{{Store: store, Logger: quiet}, {Store: store, Logger: quiet}, {Store: store, Logger: quiet}}
			for _, c := range cs {
				for i := range n {
					g.Go(func() { get(t, c, s, fmt.Sprintf("https://a%d.example", i)) })
				}
			}
			g.Wait()
			t.Logf("n=%d: %d fetches, %d gets, %d locks", n, s.count(), store.count("Get"), store.count("Lock"))
			if s.count() > n {
				t.Errorf("%d fetches for %d origins by three processes", s.count(), n)
			}
			if got := store.count("Lock"); got > 9*n {
				t.Errorf("%d attempts at locks in the two seconds of a fetch, for %d origins", got, n)
			}
			for _, c := range cs {
				closeCache(t, c)
			}
		})
	}
}

// To wait for another's result is no fault of the Store; to be silent meanwhile is.
func TestAStoreThatFallsSilentIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(lockStore), &site{serve: always(rules("/private"))}
		c, start := &cache.Cache{Store: store, StoreTimeout: 100 * time.Millisecond, Logger: quiet}, time.Now()
		var asking sync.WaitGroup
		for i := range 200 { // more than there are calls of the Store at a time
			if _, ok, err := store.Lock(t.Context(), fmt.Sprintf("RGC5 https://b%d.example ", i), time.Hour); !ok || err != nil {
				t.Fatal(ok, err)
			}
			asking.Go(func() { get(t, c, s, fmt.Sprintf("https://b%d.example", i)) })
		}
		time.Sleep(10 * time.Second)
		if s.count() != 0 {
			t.Errorf("%d fetches of what another process fetches", s.count())
		}
		store.misbehave(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
		asking.Wait()
		// They look twice a second, and then it may take a tenth of one for each of those that share a place, and once more to wait for it.
		if took := time.Since(start) - 10*time.Second; took > 1100*time.Millisecond || s.count() != 200 {
			t.Errorf("%d fetches, the last %v after the store fell silent", s.count(), took)
		}
		store.misbehave(nil)
		time.Sleep(time.Minute) // what it did not take is put again
		closeCache(t, c)
	})
}
