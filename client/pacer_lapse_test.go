package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// diary is a site that writes down what it is asked for, and when.
type diary struct {
	begin  time.Time
	robots func(at time.Duration) *http.Response
	mu     sync.Mutex
	lines  []string
}

func (d *diary) RoundTrip(req *http.Request) (*http.Response, error) {
	d.mu.Lock()
	at := time.Since(d.begin)
	d.lines = append(d.lines, fmt.Sprint(at.Round(100*time.Millisecond), " ", req.URL.Path))
	d.mu.Unlock()
	switch req.URL.Path {
	case "/robots.txt":
		return d.robots(at), nil
	case "/suffers":
		time.Sleep(50 * time.Second)
		return answer(429, "86400", ""), nil
	}
	return answer(200, "", ""), nil
}

// closesAt is a robots.txt that forbids everything from a time on. It may be kept for so many seconds.
func closesAt(end time.Duration, seconds int) func(time.Duration) *http.Response {
	return func(at time.Duration) *http.Response {
		res := answer(200, "", "User-agent: *\nDisallow: /never\n")
		if at >= end {
			res = answer(200, "", "User-agent: *\nDisallow: /\n")
		}
		res.Header.Set("Cache-Control", fmt.Sprint("max-age=", seconds))
		return res
	}
}

func visit(t *testing.T, rt *client.Transport, ctx context.Context, path string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://a.example"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.RoundTrip(req)
	return err
}

// A page that waited is not sent by what it saw, once something newer was read: by whomever, and though that has expired
// too. Nor after a pause that a page caused.
func TestWhatWasReadMeanwhileCounts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		robots func(time.Duration) *http.Response
		pacer  *client.Pacer
		meet   func(t *testing.T, rt *client.Transport) // while the page waits
	}{
		{"read for another", closesAt(200*time.Second, 60), &client.Pacer{Delay: 2 * time.Minute}, func(t *testing.T, rt *client.Transport) {
			time.Sleep(185 * time.Second)
			rt.Decide(t.Context(), parse("http://a.example/other"))
		}},
		{"before a pause of a day", func(at time.Duration) *http.Response {
			if at < 100*time.Second {
				res := answer(404, "", "")
				res.Header.Set("Cache-Control", "max-age=60")
				return res
			}
			return closesAt(0, 60)(at)
		}, &client.Pacer{Delay: 30 * time.Second, MaxUnderway: 2}, func(t *testing.T, rt *client.Transport) {
			visit(t, rt, t.Context(), "/suffers")
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{begin: time.Now(), robots: tt.robots}
			rt := &client.Transport{Base: d, UserAgent: "X/1", Pacer: tt.pacer}
			var all sync.WaitGroup
			all.Go(func() { tt.meet(t, rt) })
			time.Sleep(time.Second)
			err := visit(t, rt, t.Context(), "/page")
			all.Wait()
			if _, ok := errors.AsType[*client.DisallowedError](err); !ok || strings.Contains(fmt.Sprint(d.lines), "/page") {
				t.Errorf("%s: got %v, want a refusal; the site saw %q", tt.name, err, d.lines)
			}
			rt.Close()
		})
	}
}

// A Try gets its turn although robots.txt holds no longer by then, and the request is sent on it at once.
func TestTryHasItsTurnAtASiteWhoseFileExpires(t *testing.T) {
	moment := func(time.Duration) *http.Response { return answer(429, "60", "") }
	for _, tt := range []struct {
		name   string
		robots func(time.Duration) *http.Response
		cache  *cache.Cache
		pacer  *client.Pacer
		within time.Duration
		opens  bool
	}{
		{"429, Retry-After 60", moment, &cache.Cache{}, &client.Pacer{}, 5 * time.Minute, true},
		{"a minute beside a delay of two", closesAt(time.Hour, 60), &cache.Cache{}, &client.Pacer{Delay: 2 * time.Minute}, 10 * time.Minute, true},
		{"no time at all", closesAt(time.Hour, 0), &cache.Cache{MinTTL: -1}, &client.Pacer{}, time.Minute, true},
		{"and forbids", closesAt(0, 60), &cache.Cache{}, &client.Pacer{Delay: 2 * time.Minute}, 10 * time.Minute, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &diary{begin: time.Now(), robots: tt.robots}
			rt := &client.Transport{Base: d, UserAgent: "X/1", Cache: tt.cache, Pacer: tt.pacer}
			turn, err := rt.Try(t.Context(), parse("http://a.example/p"))
			for time.Since(d.begin) < 3*tt.within {
				late, ok := errors.AsType[*client.LateError](err)
				if !ok {
					break
				}
				time.Sleep(time.Until(late.At))
				turn, err = rt.Try(t.Context(), parse("http://a.example/p"))
			}
			if took := time.Since(d.begin); took > tt.within || (turn != nil) != tt.opens {
				t.Errorf("%s: got %v, %v after %v, want a turn: %t, within %v; the site saw %q", tt.name, turn, err, took, tt.opens, tt.within, d.lines)
			}
			if turn != nil {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(turn.Context(t.Context()), 30*time.Second)
				if err := visit(t, rt, ctx, "/p"); err != nil || time.Since(begin) != 0 {
					t.Errorf("%s: on its turn: got %v after %v, want it sent at once; the site saw %q", tt.name, err, time.Since(begin), d.lines)
				}
				cancel()
				turn.End()
			}
			time.Sleep(3 * time.Minute)
			rt.Close()
			tt.cache.Close()
		})
	}
}

// A Turn that was held starts when its request does: others keep their distance from then.
func TestATurnThatWasHeldStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{begin: time.Now()}
		rules := policy.Parse([]byte("User-agent: *\nDisallow: /never\n"))
		rt := &client.Transport{
			Base: d, UserAgent: "X/1", Pacer: &client.Pacer{MaxUnderway: 2},
			Override: func(fetch.Origin) *policy.Policy { return rules },
			Sign: func(r *http.Request) error {
				if r.URL.Path == "/held" {
					time.Sleep(900 * time.Millisecond)
				}
				return nil
			},
		}
		turn, err := rt.Turn(t.Context(), parse("http://a.example/held"))
		if err != nil {
			t.Fatal(err)
		}
		defer turn.End()
		time.Sleep(30 * time.Second)
		var all sync.WaitGroup
		all.Go(func() { visit(t, rt, turn.Context(t.Context()), "/held") })
		time.Sleep(100 * time.Millisecond)
		visit(t, rt, t.Context(), "/other")
		all.Wait()
		if got, want := fmt.Sprint(d.lines), "[30.9s /held 31.9s /other]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
