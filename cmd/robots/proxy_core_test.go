package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// The core is used as it is: what is asked of it is seen to arrive there.

// visits are when a site was asked that wants a distance between requests.
type visits struct {
	delay time.Duration
	mu    sync.Mutex // guards at
	at    []time.Time
}

func (v *visits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at = append(v.at, time.Now())
	if r.URL.Path == "/robots.txt" {
		fmt.Fprintf(w, "User-agent: *\nCrawl-delay: %v\n", v.delay.Seconds())
	}
}

// check is called when so many requests are done.
func (v *visits) check(t *testing.T, requests int) {
	t.Helper()
	for i := 1; i < len(v.at); i++ {
		if d := v.at[i].Sub(v.at[i-1]); d < v.delay-50*time.Millisecond {
			t.Errorf("request %d came after %v, want %v", i, d, v.delay)
		}
	}
	if len(v.at) != requests {
		t.Errorf("%d requests, want %d", len(v.at), requests)
	}
}

// Two proxies with one Redis server are one visitor.
func TestProxyPaceHoldsForTheFleet(t *testing.T) {
	tier.Gate(t)
	site := &visits{delay: 300 * time.Millisecond}
	to, at := siteServer(t, site.ServeHTTP), redis(t)
	var all sync.WaitGroup
	for range 2 {
		v := startProxy(t, "--private", "--pace", "--cache="+at, to)
		for range 3 {
			all.Go(func() { v.do("GET", "http://s.example/a") })
		}
	}
	all.Wait()
	site.check(t, 7)
}

func TestProxySigns(t *testing.T) {
	key := filepath.Join(t.TempDir(), "bot.pem")
	stdoutOf(t, "", "sign", "keygen", key)
	flags, pool := testCA(t)
	var mu sync.Mutex
	signed := map[string]bool{}
	to := tlsSites(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		signed[r.URL.Path] = r.Header.Get("Signature") != "" && r.Header.Get("Signature-Input") != ""
	})
	v := startProxy(t, append(flags, "--private", "--sign-key="+key, "--sign-agent=https://bot.example", to)...)
	c := v.client(pool)
	talk(t, c, "GET", "https://a.example.com/a", "")
	mu.Lock()
	defer mu.Unlock()
	if !signed["/a"] || !signed["/robots.txt"] {
		t.Errorf("signed: %v, want /a and /robots.txt", signed)
	}
}
