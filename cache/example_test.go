package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	for _, u := range []*url.URL{
		{Scheme: "https", Host: "www.example", Path: "/private"}, {Scheme: "HTTPS", Host: "WWW.EXAMPLE:443", Path: "/public"},
	} {
		o, err := fetch.OriginOf(u)
		if err != nil {
			fmt.Println(err)
			return
		}
		r, _, err := c.Get(context.Background(), o, &cache.Source{Load: load})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(u.Path, r.Policy.Decide("ExampleBot", u.RequestURI()).Allowed)
	}
	// Output:
	// fetching
	// /private false
	// /public true
}

// What a Cache makes of the lifetime of a file, and what the site says of it.
func ExampleCache_Lifetime() {
	r := &fetch.Result{StatusCode: 200, Time: time.Now(), Header: http.Header{
		"Cache-Control": {"max-age=604800"},
		"Age":           {"86400"}, // it was a day in a cache on the way
	}}
	fmt.Println(new(cache.Cache).Lifetime(r))
	fmt.Println((&cache.Cache{MinTTL: -1, MaxTTL: -1}).Lifetime(r))
	// Output:
	// 24h0m0s Cache-Control
	// 144h0m0s Cache-Control
}

// A Source is usually the Fetch method of a fetch.Fetcher, and its Reader.
func ExampleSource() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisalow: /private\n") // only Google reads that
	}))
	defer site.Close()
	u, err := url.Parse(site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		fmt.Println(err)
		return
	}

	var c cache.Cache
	f := &fetch.Fetcher{UserAgent: "ExampleBot/1.0"}
	for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
		r, _, err := c.Get(context.Background(), o, &cache.Source{Load: f.Fetch, Reader: f.Reader(), Dialect: d})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d, r.Policy.Decide("ExampleBot", "/private"))
	}
	// Output:
	// RFC9309 allowed: no rule matches (user-agent: *)
	// Google disallowed by line 2: Disallow: /private (user-agent: *)
}

// What holds when a site that had rules answers no more. These Caches ask it each time.
func ExampleOutage() {
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: "www.example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, outage := range []cache.Outage{cache.LastGood, cache.Strict} {
		c := cache.Cache{Outage: outage, MinTTL: -1}
		up := true
		src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			if up {
				return &fetch.Result{StatusCode: 200, Header: http.Header{"Cache-Control": {"no-cache"}}, Policy: policy.Parse(nil)}, nil
			}
			return &fetch.Result{StatusCode: 503, Policy: policy.Unreachable(), Err: errors.New("status 503")}, nil
		}}
		for range 2 {
			r, _, err := c.Get(context.Background(), o, src)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(r.Policy.Decide("ExampleBot", "/public"))
			up = false
		}
	}
	// Output:
	// allowed: no rule matches
	// allowed: no rule matches
	// allowed: no rule matches
	// disallowed: robots.txt is unreachable
}
