package cache_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// over is an answer that redirects with these headers led to.
func over(r *fetch.Result, redirects ...http.Header) *fetch.Result {
	r.RedirectHeaders = redirects
	for range redirects {
		r.Redirects = append(r.Redirects, "https://b.example/robots.txt")
	}
	return r
}

func cacheControl(v string) http.Header { return header("Cache-Control", v) }

// An answer is fresh as long as it and all redirects to it are, in memory, as
// FreshnessLifetime has it, and after a restart.
func TestARedirectBoundsTheLifetime(t *testing.T) {
	aDay := rules("/private", "Cache-Control", "max-age=86400")
	silent := rules("/private")
	for name, tt := range map[string]struct {
		answer *fetch.Result
		hops   []http.Header
		want   time.Duration // below a minute: that, in a Cache
		stored bool
	}{
		"no redirect":              {aDay, nil, day, true},
		"one that states none":     {aDay, []http.Header{{}}, day, true},
		"shorter":                  {aDay, []http.Header{cacheControl("max-age=600")}, 10 * time.Minute, true},
		"longer":                   {aDay, []http.Header{cacheControl("max-age=8640000")}, day, true},
		"the least of three":       {aDay, []http.Header{cacheControl("max-age=7200"), cacheControl("max-age=3600"), {}}, time.Hour, true},
		"no-cache":                 {aDay, []http.Header{cacheControl("no-cache")}, 0, true},
		"no-store":                 {aDay, []http.Header{cacheControl("no-store"), cacheControl("max-age=60")}, 0, false},
		"Age":                      {aDay, []http.Header{header("Cache-Control", "max-age=600", "Age", "300")}, 5 * time.Minute, true},
		"Expires":                  {aDay, []http.Header{header("Expires", "0")}, 0, true},
		"Vary: *":                  {aDay, []http.Header{header("Vary", "*")}, 0, true},
		"no lifetime of the file":  {silent, []http.Header{cacheControl("max-age=3600")}, time.Hour, true},
		"nor a longer one":         {silent, []http.Header{cacheControl("max-age=864000")}, day, true},
		"more than such a header":  {aDay, []http.Header{cacheControl("max-age=86400, x=" + strings.Repeat("x", 4000))}, 0, true},
		"no-store in a long one":   {aDay, []http.Header{cacheControl("no-store, x=" + strings.Repeat("x", 4000))}, 0, false},
		"in a very long one":       {aDay, []http.Header{cacheControl("x=" + strings.Repeat("x", 9000) + ", No-Store")}, 0, false},
		"no-store, and long Vary":  {aDay, []http.Header{header("Cache-Control", "no-store", "Vary", strings.Repeat("x", 4000))}, 0, false},
		"and many of them":         {aDay, []http.Header{{"Cache-Control": {"no-store"}, "Vary": slices.Repeat([]string{"x"}, 33)}}, 0, false},
		"no-store after a quote":   {aDay, []http.Header{cacheControl(`max-age=3600", no-store, ext="`)}, 0, false},
		"stale-while-revalidate":   {rules("/private", "Cache-Control", "max-age=86400, stale-while-revalidate=9999"), []http.Header{cacheControl("max-age=600")}, 10 * time.Minute, true},
		"must-revalidate on a way": {rules("/private", "Cache-Control", "max-age=600, stale-while-revalidate=9999"), []http.Header{cacheControl("must-revalidate")}, 10 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := *tt.answer
				s := &site{serve: always(over(&r, tt.hops...))}
				dated := r
				dated.Time = time.Now()
				if got, _ := cache.Lifetime(&dated); got != tt.want {
					t.Errorf("FreshnessLifetime is %v, want %v", got, tt.want)
				}
				holds := max(tt.want, time.Minute)
				store := new(memStore)
				open := func() *cache.Cache { return (&cache.Cache{Store: store, Logger: quiet}).WithoutSpread() }
				c := open()
				get(t, c, s, "https://a.example")
				closeCache(t, c)
				if store.kept() > 0 != tt.stored {
					t.Errorf("%d values are stored, want any: %v", store.kept(), tt.stored)
				}
				if tt.stored { // a restart in time asks no origin
					time.Sleep(holds/5*4 - time.Second)
					c = open()
					if get(t, c, s, "https://a.example"); s.count() != 1 {
						t.Error("asked again within the lifetime")
					}
					time.Sleep(holds/5 + 2*time.Second)
					closeCache(t, c)
					c = open()
					if get(t, c, s, "https://a.example"); s.count() != 2 {
						t.Error("not asked after the lifetime and a restart")
					}
					closeCache(t, c)
				}
				n := s.count()
				c = new(cache.Cache).WithoutSpread()
				get(t, c, s, "https://a.example")
				time.Sleep(holds + time.Second)
				start := time.Now()
				s.delay = time.Second // to tell a fetch that is waited for
				if get(t, c, s, "https://a.example"); s.count() != n+2 || time.Since(start) != time.Second {
					t.Errorf("after the lifetime: %d fetches, %v waited", s.count()-n, time.Since(start))
				}
				closeCache(t, c)
			})
		})
	}
}
