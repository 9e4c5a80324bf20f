package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

// brokenStore is a Store that is down.
type brokenStore struct{}

func (brokenStore) Get(context.Context, string) ([]byte, error) { return nil, errors.New("down") }
func (brokenStore) Put(context.Context, string, []byte, time.Duration) error {
	return errors.New("down")
}

func TestAFailingStoreIsToldToTraceAndRefusesNothing(t *testing.T) {
	var mu sync.Mutex
	var ops []string
	c := &cache.Cache{Store: brokenStore{}}
	rt := &client.Transport{Base: &web{robots: robots}, Cache: c, Trace: &client.Trace{StoreFailed: func(f client.StoreFailed) {
		mu.Lock()
		defer mu.Unlock()
		if f.Origin != "http://a.example" || f.Err == nil {
			t.Errorf("got %+v, want the origin and the error", f)
		}
		ops = append(ops, f.Op)
	}}}
	if d, err := rt.Decide(t.Context(), mustParse(t, "http://a.example/x")); err != nil || !d.Allowed {
		t.Errorf("got %v, %v, want it allowed", d, err)
	}
	if err := c.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "down") { // tries what is still to be written
		t.Errorf("Close: %v, want it to say what the store did not get", err)
	}
	if err := rt.Close(t.Context()); err != nil { // waits for the hooks
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(ops)
	if len(ops) > 3 || !slices.Equal(slices.Compact(ops), []string{"get", "put"}) {
		t.Errorf("told of %q, want one get and one put, and one more put if the first came before Close", ops)
	}
}
