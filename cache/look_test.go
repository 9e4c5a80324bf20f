package cache_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A Source without Load starts no fetch, and waits for none.
func TestASourceWithoutLoadLooksInMemoryAlone(t *testing.T) {
	var o fetch.Origin
	if err := o.UnmarshalText([]byte("http://a.example")); err != nil {
		t.Fatal(err)
	}
	var c cache.Cache
	defer c.Close()
	if r, _, err := c.Get(t.Context(), o, new(cache.Source)); r != nil || !errors.Is(err, cache.ErrMiss) {
		t.Errorf("before a fetch: got %v, %v, want ErrMiss", r, err)
	}
	load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		return &fetch.Result{Policy: policy.Unavailable(), StatusCode: 404, Time: time.Now()}, nil
	}
	want, _, err := c.Get(t.Context(), o, &cache.Source{Load: load})
	if err != nil {
		t.Fatal(err)
	}
	if r, _, err := c.Get(t.Context(), o, new(cache.Source)); r != want || err != nil {
		t.Errorf("after it: got %v, %v, want %v", r, err, want)
	}
}
