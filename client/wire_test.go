package client_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// witness is a site that notes when it was asked for what, and with which nonce.
type witness struct {
	mu     sync.Mutex
	at     []time.Time
	nonces map[string]int
	robots int
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.at = append(w.at, time.Now())
	w.nonces[r.Header.Get("Nonce")]++
	if r.URL.Path == "/robots.txt" {
		w.robots++
	}
	w.mu.Unlock()
	if r.URL.Path == "/robots.txt" {
		rw.Header().Set("Cache-Control", "max-age=1")
		io.WriteString(rw, "User-agent: *\nCrawl-delay: 0.1\nDisallow: /private\n")
		return
	}
	if r.URL.Path == "/private" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.nonces["forbidden"]++
	}
	io.WriteString(rw, "page")
}

// On the wire, with the site as the witness: a delay between any two requests, pages and robots.txt, one signature for
// each, and nothing that is forbidden, whether callers read, close or forget what they get.
func TestTheWireKeepsThePace(t *testing.T) {
	tier.Gate(t)
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %t", http2), func(t *testing.T) {
			t.Parallel()
			w := &witness{nonces: map[string]int{}}
			s := httptest.NewUnstartedServer(w)
			s.EnableHTTP2 = http2
			s.StartTLS()
			defer s.Close()
			var mu sync.Mutex
			n := 0
			gate := &client.Transport{
				Base: s.Client().Transport, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{}, Cache: &cache.Cache{MinTTL: -1},
				Sign: func(r *http.Request) error {
					mu.Lock()
					defer mu.Unlock()
					n++
					r.Header.Set("Nonce", fmt.Sprint(n))
					return nil
				},
			}
			defer gate.Cache.Close()
			c := &http.Client{Transport: gate}
			end := time.Now().Add(3 * time.Second)
			var workers sync.WaitGroup
			for i := range 6 {
				workers.Go(func() {
					for j := 0; time.Now().Before(end); j++ {
						path := "/page"
						if j%3 == 2 {
							path = "/private"
						}
						ctx, cancel := context.WithCancel(t.Context())
						resp, err := c.Do(request(http.MethodGet, s.URL+path, nil).WithContext(ctx))
						if (err == nil) != (path == "/page") {
							t.Errorf("worker %d, %s: got %v, want an error: %t", i, path, err, path != "/page")
						}
						switch {
						case err != nil || rand.IntN(3) == 0: // forgotten, as by those who only defer cancel
						case rand.IntN(2) == 0:
							io.Copy(io.Discard, resp.Body)
						default:
							resp.Body.Close()
						}
						time.Sleep(rand.N(20 * time.Millisecond))
						cancel()
					}
				})
			}
			workers.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			for i, at := range w.at[1:] {
				if gap := at.Sub(w.at[i]); gap < 100*time.Millisecond {
					t.Errorf("request %d came %v after the one before, want 100ms or more", i+1, gap)
				}
			}
			for nonce, n := range w.nonces {
				if n != 1 || nonce == "" || nonce == "forbidden" {
					t.Errorf("nonce %q came %d times, want each once, and none for what is forbidden", nonce, n)
				}
			}
			if len(w.at) < 15 || w.robots < 2 {
				t.Errorf("%d requests, %d of them for robots.txt, want 15 and 2 or more", len(w.at), w.robots)
			}
		})
	}
}
