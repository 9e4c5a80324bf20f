package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A load is usually the Fetch method of a fetch.Fetcher.
func ExampleCache_Get() {
	var c cache.Cache
	load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		fmt.Println("fetching")
		return &fetch.Result{StatusCode: 200, Policy: policy.Parse([]byte("User-agent: *\nDisallow: /private\n"))}, nil
	}
	for _, raw := range []string{"https://www.example/private", "HTTPS://WWW.EXAMPLE:443/public"} {
		u, err := url.Parse(raw)
		if err != nil {
			fmt.Println(err)
			return
		}
		o, err := fetch.OriginOf(u)
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := c.Get(context.Background(), o, &cache.Source{Load: load})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(u.Path, r.Policy.Decide("ExampleBot", u.Path).Allowed)
	}
	// Output:
	// fetching
	// /private false
	// /public true
}

// What a site says of the lifetime of its file, and what a Cache makes of it.
func ExampleFreshnessLifetime() {
	r := &fetch.Result{StatusCode: 200, Time: time.Now(), Header: http.Header{
		"Cache-Control": {"max-age=604800"},
		"Age":           {"86400"}, // it was a day in a cache on the way
	}}
	fmt.Println(cache.FreshnessLifetime(r)) // stated; a Cache makes it 24 hours
	// Output:
	// 144h0m0s true
}

// Wrong: a Cache that is made for one request has nothing to remember. Make one for the
// life of the program; it is safe for concurrent use.
func ExampleCache_wrong() {
	fetches := 0
	load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		fetches++
		return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable()}, nil
	}
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: "www.example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		c := new(cache.Cache)
		if _, err := c.Get(context.Background(), o, &cache.Source{Load: load}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(fetches, "fetches")
	// Output:
	// 3 fetches
}
