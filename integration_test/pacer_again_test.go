package integration_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

// Requests that wait for their turn while robots.txt expires are decided by the new one:
// once the site has been heard to forbid a page, it is not asked for it any more, but for what
// was on its way.
func TestWhatWaitedForItsTurnIsDecidedByTheNewRules(t *testing.T) {
	var forbidden atomic.Int64 // when the site first answered with Disallow
	var pages, late atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/robots.txt":
			pages.Add(1)
			if at := forbidden.Load(); at > 0 && time.Since(time.UnixMilli(at)) > grace {
				late.Add(1)
			}
		case pages.Load() == 0:
			w.Header().Set("Cache-Control", "max-age=1")
			io.WriteString(w, "User-agent: *\nAllow: /\nCrawl-delay: 0.2\n")
		default:
			forbidden.CompareAndSwap(0, time.Now().UnixMilli())
			io.WriteString(w, "User-agent: *\nDisallow: /\n")
		}
	}))
	defer site.Close()
	gate := &client.Transport{
		UserAgent: userAgent, Base: site.Client().Transport,
		Pacer: &client.Pacer{Delay: 10 * time.Millisecond}, Cache: &cache.Cache{MinTTL: -1},
	}
	c := &http.Client{Transport: gate}
	var refused atomic.Int32
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			resp, err := c.Get(site.URL + "/page")
			if err == nil {
				resp.Body.Close()
				return
			}
			if _, ok := errors.AsType[*client.DisallowedError](err); !ok {
				t.Error(err)
			}
			refused.Add(1)
		})
	}
	asking.Wait()
	if pages.Load() == 0 || refused.Load() == 0 || pages.Load()+refused.Load() != 20 || late.Load() != 0 {
		t.Errorf("%d pages, %d of them after the site forbade them, %d refused", pages.Load(), late.Load(), refused.Load())
	}
	if err := gate.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
