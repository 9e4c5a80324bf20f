package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

// cloaking serves each crawler a file that forbids the path of its name.
func cloaking(t *testing.T) (url string, record *seen) {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding, User-Agent")
		w.Header().Set("Cache-Control", "max-age=86400")
		fmt.Fprintf(w, "User-agent: *\nDisallow: /%s\n", r.UserAgent())
	})
}

// checkOwn holds each Transport to the file that was written for it.
func checkOwn(t *testing.T, site string, gates map[string]*client.Transport) {
	t.Helper()
	for range 2 {
		for own, rt := range gates {
			for path := range gates {
				if ok, err := do(t.Context(), rt, site+"/"+path); ok != (path != own) {
					t.Errorf("%s: /%s sent %v (%v)", own, path, ok, err)
				}
			}
		}
	}
}

func agentGate(agent string, c *cache.Cache) *client.Transport {
	rt := gate(nil)
	rt.UserAgent, rt.Fetcher.UserAgent, rt.Cache = agent, agent, c
	return rt
}

func TestTransportsOverOneCacheHaveTheirOwnFiles(t *testing.T) {
	for name, pacer := range map[string]*client.Pacer{"": nil, "paced": {Delay: time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			site, record := cloaking(t)
			c := new(cache.Cache)
			gates := map[string]*client.Transport{}
			for _, agent := range []string{"abot", "bbot", "cbot"} {
				gates[agent] = agentGate(agent, c)
				gates[agent].Pacer = pacer
				gates[agent].Trace = &client.Trace{Fetched: func(_ context.Context, f client.FetchedInfo) {
					if f.Origin.String() == "" {
						t.Error("Fetched tells of no origin")
					}
				}}
			}
			checkOwn(t, site, gates)
			if n := len(record.of("/robots.txt")); n != 3 {
				t.Errorf("robots.txt was asked for %d times, want 3", n)
			}
		})
	}
}
