package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
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

// What a site says of the lifetime of its file, and what a Cache makes of it.
func ExampleLifetime() {
	r := &fetch.Result{StatusCode: 200, Time: time.Now(), Header: http.Header{
		"Cache-Control": {"max-age=604800"},
		"Age":           {"86400"}, // it was a day in a cache on the way
	}}
	fmt.Println(cache.Lifetime(r)) // a Cache makes it 24 hours
	// Output:
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
	for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
		f := &fetch.Fetcher{UserAgent: "ExampleBot/1.0", Dialect: d}
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

// memory is a Store that processes could share, if it were a server. Packages dirstore
// and redisstore have real ones.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
	locked map[string]bool
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.values[key]; ok {
		return v, nil
	}
	return nil, cache.ErrMiss
}

func (m *memory) Put(_ context.Context, key string, data []byte, _ time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = bytes.Clone(data) // a Cache may use data again
	return nil
}

func (m *memory) Lock(_ context.Context, key string, _ time.Duration) (unlock func(), ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked[key] {
		return nil, false, nil
	}
	m.locked[key] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locked, key)
	}, true, nil
}

// What one Cache has read, the next one finds in the Store. Close writes what is still due.
func ExampleStore() {
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: "www.example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	store := struct{ cache.Store }{&memory{values: map[string][]byte{}}} // without its locks
	for _, run := range []string{"first", "second"} {
		src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			fmt.Println("fetching")
			return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Time: time.Now()}, nil
		}}
		c := &cache.Cache{Store: store}
		r, _, err := c.Get(ctx, o, src)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(run, "run: status", r.StatusCode)
		if err := c.Shutdown(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// fetching
	// first run: status 404
	// second run: status 404
}

// Two Caches that ask at the same time fetch once, if their Store has locks.
func ExampleLocker() {
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: "www.example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var fetches atomic.Int32
	src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		fetches.Add(1)
		return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Time: time.Now()}, nil
	}}
	ctx := context.Background()
	store := &memory{values: map[string][]byte{}, locked: map[string]bool{}}
	var processes sync.WaitGroup
	for range 2 {
		processes.Go(func() {
			c := &cache.Cache{Store: store}
			defer c.Shutdown(ctx)
			if _, _, err := c.Get(ctx, o, src); err != nil {
				fmt.Println(err)
			}
		})
	}
	processes.Wait()
	fmt.Println(fetches.Load(), "fetch")
	// Output: 1 fetch
}

// Stats are for metrics.
func ExampleStats() {
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: "www.example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var c cache.Cache
	load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Time: time.Now()}, nil
	}
	if _, _, err := c.Get(context.Background(), o, &cache.Source{Load: load}); err != nil {
		fmt.Println(err)
		return
	}
	s := c.Stats()
	fmt.Println(s.Origins, "origin,", s.Bytes > 0, s.StoreErrors, "errors of the Store")
	// Output: 1 origin, true 0 errors of the Store
}
