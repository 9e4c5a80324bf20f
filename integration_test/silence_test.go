package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/origins"
)

// TestSilentOriginsStarveNobody asks thousands of origins at once, of which a quarter accept
// the connection and never answer. No healthy one is refused for that, nor has to wait until
// the silent ones have had their time: that would take half a minute. (With the time-outs as
// they are by default it would be minutes.)
func TestSilentOriginsStarveNobody(t *testing.T) {
	const healthy, silent = 3000, 1000
	net, err := origins.Start(4)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	gate := &client.Transport{Base: net.Transport(), UserAgent: userAgent, Fetcher: &fetch.Fetcher{
		Transport: net.Transport(), UserAgent: userAgent, Timeout: 10 * time.Second, AttemptTimeout: 5 * time.Second, Retries: 1,
	}}
	sites := make([]*origins.Origin, healthy+silent)
	for i := range sites {
		if i < healthy {
			sites[i] = healthySite(i).origins[0]
			continue
		}
		sites[i] = &origins.Origin{
			Name:  fmt.Sprintf("silent%d.test", i),
			Paths: map[string][]origins.Program{"/robots.txt": {{origins.Hang}}},
		}
	}
	net.Add(sites...)
	rand.New(rand.NewPCG(9309, 2022)).Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, start := http.Client{Transport: gate}, time.Now()
	var last atomic.Int64
	var asking, giveUp sync.WaitGroup
	for _, o := range sites {
		if len(o.Paths["/robots.txt"][0]) == 0 {
			t.Fatal("setup")
		}
	}
	_ = &giveUp
	for _, o := range sites {
		isSilent := o.Name[0] == 's'
		ask := func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.Name+"/public", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := c.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			if isSilent {
				if err == nil {
					t.Errorf("%s: sent", o.Name)
				}
				return
			}
			if err != nil {
				t.Errorf("%s: %v", o.Name, err)
			}
			raise(&last, int64(time.Since(start)))
		}
		if isSilent {
			giveUp.Go(ask)
		} else {
			asking.Go(ask)
		}
	}
	asking.Wait()
	cancel()
	giveUp.Wait()
	t.Logf("the last of %d healthy origins had its answer after %v", healthy, time.Duration(last.Load()))
	if err := gate.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
