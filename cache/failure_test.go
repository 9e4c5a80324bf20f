package cache_test

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
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

// What takes longer than StoreTimeout is a failure, and is told to those who watch.
func TestStoreTimeoutSaysWhatIsAFailure(t *testing.T) {
	for _, row := range []struct {
		timeout time.Duration
		want    int32
	}{
		{0, 1}, // 100 ms
		{time.Minute, 0},
	} {
		var told, stopped atomic.Int32
		c := &cache.Cache{Store: slowStore(300 * time.Millisecond), StoreTimeout: row.timeout}
		c.OnStoreFailure(func(op, origin string, err error) {
			if op != "get" || origin != "http://a.example" || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("told of %s, %s, %v", op, origin, err)
			}
			told.Add(1)
		})
		c.OnStoreFailure(func(string, string, error) { stopped.Add(1) })()
		o, err := fetch.OriginOf(&url.URL{Scheme: "http", Host: "a.example"})
		if err != nil {
			t.Fatal(err)
		}
		load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			return &fetch.Result{Policy: policy.Unavailable(), StatusCode: 404, Time: time.Now()}, nil
		}
		if _, err := c.Get(t.Context(), o, &cache.Source{Load: load}); err != nil {
			t.Fatal(err)
		}
		if told.Load() != row.want || stopped.Load() != 0 {
			t.Errorf("StoreTimeout %v: told %d times, %d times after stop; want %d and 0", row.timeout, told.Load(), stopped.Load(), row.want)
		}
	}
}

func TestAHookThatPanicsEndsNothing(t *testing.T) {
	store := new(memStore)
	store.misbehave(func(context.Context, string) error { return errors.New("down") })
	c := &cache.Cache{Store: store, Logger: quiet}
	c.OnStoreFailure(func(string, string, error) { panic("hook") })
	if r := get(t, c, &site{serve: always(rules("/p"))}, "https://a.example"); r.Err != nil {
		t.Error(r.Err)
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
			t.Errorf("%s: %+v, %v; want an outage", name, r, err)
		}
	}
}
