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

// What could not be written while the Store was down is written with the next refresh, and once
// more at Close.
func TestTheQueueIsWrittenWhenTheStoreIsBack(t *testing.T) {
	for _, refreshed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			store.misbehave(on("Put", func(context.Context) error { return errors.New("connection reset") }))
			c, quick := &cache.Cache{Store: store, Logger: quiet}, &site{serve: always(rules("/private"))}
			ask := func() {
				for i := range 20 {
					get(t, c, quick, fmt.Sprintf("https://q%d.example", i))
					time.Sleep(time.Millisecond)
				}
			}
			ask()
			store.misbehave(nil)
			time.Sleep(25 * time.Hour)
			if n := store.count("Put"); n != 5 {
				t.Errorf("%d puts without a refresh, want those of the five failures", n)
			}
			if refreshed {
				ask()
				synctest.Wait()
				if n := len(store.keys()); n != 20 {
					t.Errorf("after a refresh the store has %d of 20 values", n)
				}
			}
			closeCache(t, c)
			if n := len(store.keys()); n != 20 || c.Stats().StoreDrops != 0 {
				t.Errorf("after Close it has %d of 20 values; StoreDrops %d", n, c.Stats().StoreDrops)
			}
		})
	}
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
