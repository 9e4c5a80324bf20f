package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// A 429 that is for one User-Agent opens the site to no other.
func TestAStatusOfTheMomentIsForWhomItVariesBy(t *testing.T) {
	for _, first := range []*fetch.Result{rules("/secret", "Cache-Control", "max-age=60"), nil} {
		synctest.Test(t, func(t *testing.T) {
			c := (&cache.Cache{Outage: cache.Strict, NoRefresh: true}).WithoutSpread()
			o := origin(t, "http://a.example")
			load := func(agent string, r *fetch.Result) *cache.Source {
				return &cache.Source{UserAgent: agent, Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
					n := *r
					n.Time = time.Now()
					return &n, nil
				}}
			}
			get := func(agent string, r *fetch.Result) *fetch.Result {
				r, err := c.Get(t.Context(), o, load(agent, r))
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			if first != nil {
				get("a", first)
				time.Sleep(61 * time.Second)
			}
			moment := unavailable(429, "Vary", "User-Agent")
			moment.UserAgent = "a"
			get("a", moment)
			if r := get("b", rules("/secret")); r.Policy.Decide("x", "/secret").Allowed {
				t.Errorf("b may fetch /secret by what a was told: %d for %q", r.StatusCode, r.UserAgent)
			}
			closeCache(t, c)
		})
	}
}
