package client_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// hops is a Base whose hosts redirect their robots.txt, and when each was asked.
type hops struct {
	to     func(host, path string) string // "" : the file
	robots func(host string) *http.Response

	mu sync.Mutex
	at map[string][]time.Time
}

func (h *hops) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.at[req.URL.Host] = append(h.at[req.URL.Host], time.Now())
	h.mu.Unlock()
	if !strings.HasPrefix(req.URL.Path, "/robots") {
		return answer(200, "", "page"), nil
	}
	if to := h.to(req.URL.Host, req.URL.Path); to != "" {
		res := answer(301, "", "")
		res.Header.Set("Location", to)
		return res, nil
	}
	return h.robots(req.URL.Host), nil
}

// gaps checks that a host was asked at most once in its delay, and returns how often.
func (h *hops) gaps(t *testing.T, host string, delay time.Duration) int {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, at := range h.at[host][1:] {
		if d := at.Sub(h.at[host][i]); d < delay {
			t.Errorf("%s: request %d came %v after the one before, want %v", host, i+1, d, delay)
			break
		}
	}
	return len(h.at[host])
}

// Where a redirect of robots.txt leads to keeps its pace: five hundred shops that redirect to one site are one visitor
// to it. A robots.txt that gets no turn there is not a failure of the shop, and every caller gets an answer in the end.
func TestPacerRedirectsOfRobotsKeepThePaceOfTheirSite(t *testing.T) {
	tier.Gate(t)
	synctest.Test(t, func(t *testing.T) {
		web := &hops{at: map[string][]time.Time{},
			to: func(host, _ string) string {
				if host != "www.example" {
					return "http://www.example/robots.txt"
				}
				return ""
			},
			robots: func(string) *http.Response { return answer(200, "", "User-agent: *\nCrawl-delay: 10\n") },
		}
		gate := &client.Transport{Base: web, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{}}
		if _, err := gate.Decide(t.Context(), parse("http://www.example/")); err != nil {
			t.Fatal(err)
		}
		part := 1 // the race detector takes a minute for the whole
		if proc.UnderRace() {
			part = 3
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute/time.Duration(part))
		defer cancel()
		var shops sync.WaitGroup
		var mu sync.Mutex
		read := 0
		for i := range 500 / part {
			shops.Go(func() {
				a, err := gate.Decide(ctx, parse(fmt.Sprintf("http://shop%d.example/", i)))
				if err != nil {
					return
				}
				if a.Unreachable != nil {
					t.Errorf("shop %d: got %v, want its robots.txt read", i, a.Unreachable)
				}
				mu.Lock()
				read++
				mu.Unlock()
			})
		}
		shops.Wait()
		gate.Shutdown(context.Background())
		asked := web.gaps(t, "www.example", 10*time.Second)
		if asked < 120/part || read < asked-2 {
			t.Errorf("in %d minutes the site was asked %d times, and %d shops were answered; want nearly %d", 30/part, asked, read, 180/part)
		}
		all := 0
		for _, at := range web.at {
			all += len(at)
		}
		if all > 3_000 { // 850 to 2,100 by chance; 3,800 if all came back at once
			t.Errorf("%d requests were made in all, want 3,000 at most", all)
		}
	})
}

// Two origins that redirect to each other wait for each other's delay, but not for ever; with
// their only places taken, too. What leads back to the origin asked shares its turn.
func TestPacerRedirectsOfRobotsDoNotWaitForEachOther(t *testing.T) {
	for name, to := range map[string]func(host, path string) string{
		"to each other": func(host, path string) string {
			return "http://" + map[string]string{"a.example": "b.example", "b.example": "a.example"}[host] + path + "x"
		},
		"and back": func(host, path string) string {
			if path == "/robots.txt" {
				return "http://" + map[string]string{"a.example": "b.example", "b.example": "a.example"}[host] + "/robots2"
			}
			if path == "/robots2" {
				return "http://" + map[string]string{"a.example": "b.example", "b.example": "a.example"}[host] + "/robots3"
			}
			return ""
		},
		"within": func(host, path string) string {
			if path == "/robots.txt" {
				return "/robots2"
			}
			return ""
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := &hops{at: map[string][]time.Time{}, to: to,
				robots: func(string) *http.Response { return answer(200, "", "User-agent: *\nDisallow: /private\n") }}
			gate := &client.Transport{Base: web, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{Delay: 2 * time.Second}}
			begin := time.Now()
			var asks sync.WaitGroup
			for _, host := range []string{"a.example", "b.example"} {
				asks.Go(func() {
					a, err := gate.Decide(t.Context(), parse("http://"+host+"/"))
					if err != nil || a.Unreachable != nil || !a.Allowed {
						t.Errorf("%s: %s: got %v, %v, want it allowed", name, host, a, err)
					}
					res, err := (&http.Client{Transport: gate}).Get("http://" + host + "/")
					if err != nil {
						t.Errorf("%s: %s: got %v, want a page", name, host, err)
						return
					}
					res.Body.Close()
				})
			}
			asks.Wait()
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("%s: took %v, want 2m at most", name, took)
			}
			synctest.Wait()
			gate.Shutdown(context.Background())
		})
	}
}

// What a request names in its Host field is an origin of its own, of which fetch names the address alone.
func TestPacerRobotsUnderAnotherNameHaveOnePace(t *testing.T) {
	for _, name := range []string{"", "b.example"} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			begin := time.Now()
			gate := &client.Transport{UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{Delay: 2 * time.Second},
				Base: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
					at = append(at, time.Since(begin).Truncate(time.Second)) // a retry comes a little later
					res := answer(200, "", "")
					switch len(at) {
					case 1:
						res.StatusCode = 503
						res.Header.Set("Retry-After", "4")
					case 2:
						res.StatusCode = 302
						res.Header.Set("Location", "/robots2")
					}
					return res, nil
				})}
			if _, err := gate.RoundTrip(&http.Request{URL: parse("http://a.example/"), Host: name}); err != nil {
				t.Error(err)
			}
			want := []time.Duration{0, 4 * time.Second, 6 * time.Second, 8 * time.Second}
			if !slices.Equal(at, want) {
				t.Errorf("Host %q: sent at %v, want robots.txt, its retry, its redirect and the page at %v", name, at, want)
			}
			gate.Shutdown(context.Background())
		})
	}
}

// A retry keeps the pause that a failure asks for, twice the delay, or there is none.
func TestPacerRetriesOfRobotsKeepTheDelay(t *testing.T) {
	for _, tt := range []struct {
		delay time.Duration
		want  int // requests for a robots.txt that fails: its tries
	}{{2 * time.Second, 3}, {20 * time.Second, 1}, {40 * time.Second, 1}} {
		synctest.Test(t, func(t *testing.T) {
			fails := false
			web := &hops{at: map[string][]time.Time{}, to: func(string, string) string { return "" },
				robots: func(string) *http.Response {
					if fails {
						return answer(503, "", "")
					}
					res := answer(200, "", fmt.Sprintf("User-agent: *\nCrawl-delay: %d\n", tt.delay/time.Second))
					res.Header.Set("Cache-Control", "max-age=60")
					return res
				}}
			gate := &client.Transport{Base: web, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{MaxDelay: time.Minute}}
			u := parse("http://a.example/")
			gate.Decide(t.Context(), u)
			time.Sleep(time.Hour)
			fails = true
			if _, err := gate.Decide(t.Context(), u); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if n := web.gaps(t, "a.example", tt.delay) - 1; n != tt.want {
				t.Errorf("a delay of %v: %d tries, want %d", tt.delay, n, tt.want)
			}
			gate.Shutdown(context.Background())
		})
	}
}
