package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// A load that had no turn to ask says nothing about the origin, and nothing is kept. Callers
// wait for another, unless there is a copy that an outage would leave to them.
func TestALoadThatCouldNotAskLeavesNothingBehind(t *testing.T) {
	for _, c := range []struct {
		name   string
		copied bool
		outage cache.Outage
		want   error
	}{
		{"no copy", false, cache.LastGood, context.DeadlineExceeded},
		{"a copy", true, cache.LastGood, nil},
		{"a copy, strictly", true, cache.Strict, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &memStore{}
			cached := &cache.Cache{Outage: c.outage, Store: store, NoRefresh: true}
			o := origin(t, "https://a.example")
			var asked atomic.Int32
			late := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				asked.Add(1)
				return nil, fmt.Errorf("our queue: %w", fetch.ErrBusy)
			}
			good := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				return rules("/private", "Cache-Control", "max-age=60"), nil
			}
			if c.copied {
				cached.Get(t.Context(), o, &cache.Source{Load: good})
				time.Sleep(time.Hour)
			}
			before := cached.Stats()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if r, err := cached.Get(ctx, o, &cache.Source{Load: late}); err != c.want || err == nil && r.Err != nil {
				t.Errorf("%s: got %v, %v, want %v", c.name, r, err, c.want)
			}
			<-ctx.Done()
			if cached.Stats() != before || asked.Load() > 65 {
				t.Errorf("%s: load was called %d times, and %+v became %+v", c.name, asked.Load(), before, cached.Stats())
			}
			time.Sleep(2 * time.Minute)
			if r, err := cached.Get(t.Context(), o, &cache.Source{Load: good}); err != nil || r.Err != nil {
				t.Errorf("%s: then got %v, %v", c.name, r, err)
			}
			cached.Shutdown(context.Background())
		})
	}
}

// A refresh behind the callers that had no turn is begun again after some seconds, however often they call: it
// takes a place that others could use.
func TestARefreshWithoutATurnIsNotBegunAtEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cached, o, asked := (&cache.Cache{}).WithoutSpread(), origin(t, "https://a.example"), 0
		cached.Get(t.Context(), o, &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			return rules("/private", "Cache-Control", "max-age=3600"), nil
		}})
		time.Sleep(50 * time.Minute)
		for range 100 {
			r, err := cached.Get(t.Context(), o, &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				asked++
				return nil, fetch.ErrBusy
			}})
			if err != nil || r.Err != nil {
				t.Errorf("got %v, %v", r, err)
			}
			synctest.Wait()
			time.Sleep(200 * time.Millisecond)
		}
		if asked < 2 || asked > 5 {
			t.Errorf("load was called %d times in 20 s, want every five", asked)
		}
		closeCache(t, cached)
	})
}

// With a context that has ended, Get says what holds at present, and fetches nothing that
// a caller has to wait for.
func TestGetWithAnEndedContextSaysWhatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o, asked := new(cache.Cache), origin(t, "https://a.example"), 0
		load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			asked++
			return rules("/private", "Cache-Control", "max-age=60"), nil
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		check := func(holds bool, fetches int) {
			t.Helper()
			r, err := c.Get(ended, o, &cache.Source{Load: load})
			synctest.Wait()
			if holds != (r != nil) || holds == errors.Is(err, context.Canceled) || asked != fetches {
				t.Errorf("got %v, %v after %d fetches, want %t and %d", r, err, asked, holds, fetches)
			}
		}
		check(false, 0)
		c.Get(t.Context(), o, &cache.Source{Load: load})
		check(true, 1)
		time.Sleep(time.Hour)
		check(false, 1)
	})
}
