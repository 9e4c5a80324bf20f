package client_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

// Who closes a Transport and then what its hooks write to must not be told of anything after
// that: neither of an answer from a cache that others go on with, nor of one that was late.
func TestDecidedIsNotCalledAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				<-release
			}
			return (&web{robots: robots}).RoundTrip(req)
		})
		var told atomic.Int32
		shared := new(cache.Cache)
		rt := &client.Transport{Base: base, Cache: shared, Trace: &client.Trace{
			Decided: func(context.Context, client.Decided) { told.Add(1) },
		}}
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
		close(release)
		asking.Wait()
		if told.Load() != 0 {
			t.Error("Decided was called after Close had returned")
		}
		if err := shared.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
