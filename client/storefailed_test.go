package client_test

import (
	"context"
	"errors"
	"strings"
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

func TestAFailingStoreCountsAndRefusesNothing(t *testing.T) {
	c := &cache.Cache{Store: brokenStore{}}
	rt := &client.Transport{Base: &web{robots: robots}, Cache: c}
	if d, err := rt.Decide(t.Context(), mustParse(t, "http://a.example/x")); err != nil || !d.Allowed {
		t.Errorf("got %v, %v, want it allowed", d, err)
	}
	if err := c.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "down") { // tries what is still to be written
		t.Errorf("Close: %v, want it to say what the store did not get", err)
	}
	if n := c.Stats().StoreErrors; n < 2 || n > 3 {
		t.Errorf("%d failures, want one get and one put, and one more put if the first came before Close", n)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
