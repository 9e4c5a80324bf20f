package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
)

// What waited while the Store was down is written once it is back, with nobody asking for
// anything new: the process may be killed at any moment.
func TestTheQueueIsWrittenWhenTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		bad := func(ctx context.Context, call string) error {
			if call == "Put" {
				return errors.New("connection reset")
			}
			return ctx.Err()
		}
		store.misbehave(bad)
		a := &cache.Cache{Store: store, Logger: quiet}
		quick := &site{serve: always(rules("/private"))}
		for i := range 20 {
			get(t, a, quick, fmt.Sprintf("https://q%d.example", i))
			time.Sleep(time.Millisecond)
		}
		store.misbehave(nil)
		for range 600 { // ten minutes of hits
			time.Sleep(time.Second)
			get(t, a, quick, "https://q19.example")
		}
		if n := len(store.keys()); n < 20 {
			t.Errorf("ten minutes after the store is back it has %d of 20 values (kill -9 now loses the rest)", n)
		}
		closeCache(t, a)
		if n := len(store.keys()); n < 20 {
			t.Errorf("after Close it has %d of 20 values; StoreDrops %d", n, a.Stats().StoreDrops)
		}
	})
}

func TestAFailedPutIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		n := 0
		store.misbehave(func(ctx context.Context, call string) error {
			if call == "Put" {
				if n++; n == 1 {
					return errors.New("connection reset")
				}
			}
			return ctx.Err()
		})
		c := &cache.Cache{Store: store, Logger: quiet}
		get(t, c, &site{serve: always(rules("/p"))}, "https://a.example")
		time.Sleep(time.Hour)
		closeCache(t, c)
		if len(store.keys()) != 1 {
			t.Errorf("Close returned nil, StoreDrops is %d, and the value is not in the store", c.Stats().StoreDrops)
		}
	})
}

// pickyStore refuses one key, each time.
type pickyStore struct {
	memStore
	refused int
}

func (s *pickyStore) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	if key == "https://a.example" {
		s.refused++
		return errors.New("not this one")
	}
	return s.memStore.Put(ctx, key, data, ttl)
}

func TestAValueThatIsRefusedIsGivenUpAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := new(pickyStore), &site{serve: always(rules("/p"))}
		c := &cache.Cache{Store: store, Logger: quiet}
		get(t, c, s, "https://a.example")
		for i := range 20 {
			synctest.Wait()
			get(t, c, s, fmt.Sprintf("https://b%d.example", i))
			time.Sleep(5 * time.Second)
		}
		if got := c.Stats().StoreDrops; got != 1 || store.refused != 8 {
			t.Errorf("%d values given up after %d tries, want 1 after 8", got, store.refused)
		}
		closeCache(t, c)
	})
}
