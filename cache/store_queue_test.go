package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// What waited while the Store was down is written once it is back, without anything asking for
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
	if key == "RGC4 https://a.example" {
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

func TestTheQueueOfWritesIsBoundedAndKeepsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		store := &memStore{before: on("Put", func(context.Context) error { <-held; return nil })}
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
		if got := string(store.values["RGC4 https://a.example"]); !strings.Contains(got, "Disallow: /3\n") {
			t.Errorf("not the latest value: %q", got)
		}
		if got := store.count("Put"); got != room {
			t.Errorf("%d puts, want %d", got, room)
		}
	})
}

func TestTheQueueOfWritesIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		store := &memStore{before: on("Put", func(context.Context) error { <-held; return nil })}
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
