package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
)

// stuck is a Store with locks, of which none is ever free, or one that hangs.
type stuck struct{ hangs bool }

func (s stuck) Get(ctx context.Context, _ string) ([]byte, error) {
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, cache.ErrMiss
}
func (stuck) Put(context.Context, string, []byte, time.Duration) error { return nil }
func (s stuck) Lock(ctx context.Context, _ string, _ time.Duration) (func(), bool, error) {
	if s.hangs {
		<-ctx.Done()
	}
	return nil, false, ctx.Err()
}

// In the time of a bubble a caller who goes at his deadline is not a nanosecond late,
// however busy the machine is: whatever he waits for, and in whatever way he asks.
func TestNobodyIsKeptBeyondTheDeadline(t *testing.T) {
	silent := func(r *http.Request) (*http.Response, error) {
		time.Sleep(time.Hour) // whatever its context says
		return nil, errors.New("late")
	}
	robotsAreSilent := roundTripperFunc(silent)
	pagesAreOpen := pagesOf(func(*http.Request) (*http.Response, error) { return answer(200, "", "page"), nil })
	ask := func(rt *client.Transport, raw string) { rt.RoundTrip(&http.Request{Method: "GET", URL: parse(raw)}) }
	rows := []struct {
		name string
		gate client.Transport
		busy func(*client.Transport) // what goes on already
		page bool                    // it is the page that waits
	}{
		{name: "robots.txt is silent", gate: client.Transport{Base: robotsAreSilent}},
		{name: "another waits for it", gate: client.Transport{Base: robotsAreSilent},
			busy: func(rt *client.Transport) { go ask(rt, "http://a.example/") }},
		{name: "another origin has the only slot", gate: client.Transport{Base: robotsAreSilent, Fetcher: &fetch.Fetcher{Transport: robotsAreSilent, MaxFetches: 1}},
			busy: func(rt *client.Transport) { go ask(rt, "http://b.example/") }},
		{name: "the Store is silent", gate: client.Transport{Base: robotsAreSilent, Cache: &cache.Cache{Store: stuck{hangs: true}, StoreTimeout: time.Hour}}},
		{name: "the lock is never free", gate: client.Transport{Base: robotsAreSilent, Cache: &cache.Cache{Store: stuck{}}}},
		{name: "robots.txt waits for its turn", gate: client.Transport{Base: robotsAreSilent, Pacer: &client.Pacer{Delay: 30 * time.Second}},
			busy: func(rt *client.Transport) { rt.Pacer.Wait(context.Background(), parse("http://a.example/")) }},
		{name: "the page waits for its turn", gate: client.Transport{Base: pagesAreOpen, Pacer: &client.Pacer{Delay: 30 * time.Second, MaxUnderway: 2}}, page: true},
		{name: "the page waits for a place", gate: client.Transport{Base: pagesAreOpen, Pacer: &client.Pacer{Delay: -1}}, page: true,
			busy: func(rt *client.Transport) { ask(rt, "http://a.example/open") }},
	}
	ways := map[string]func(context.Context, *client.Transport, *url.URL) error{
		"RoundTrip": func(ctx context.Context, rt *client.Transport, u *url.URL) error {
			_, err := rt.RoundTrip((&http.Request{Method: "GET", URL: u}).WithContext(ctx))
			return err
		},
		"Decide": func(ctx context.Context, rt *client.Transport, u *url.URL) error {
			_, err := rt.Decide(ctx, u)
			return err
		},
		"Lookup": func(ctx context.Context, rt *client.Transport, u *url.URL) error {
			_, err := rt.Lookup(ctx, u)
			return err
		},
	}
	for i := range rows {
		row := &rows[i]
		for way, ask := range ways {
			if row.page && way != "RoundTrip" {
				continue
			}
			for _, hurry := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
				t.Run(fmt.Sprint(row.name, "/", way, "/", hurry), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						rt := &client.Transport{Base: row.gate.Base}
						if f := row.gate.Fetcher; f != nil {
							rt.Fetcher = &fetch.Fetcher{Transport: f.Transport, MaxFetches: f.MaxFetches}
						}
						if c := row.gate.Cache; c != nil {
							rt.Cache = &cache.Cache{Store: c.Store, StoreTimeout: c.StoreTimeout}
						}
						if p := row.gate.Pacer; p != nil {
							rt.Pacer = &client.Pacer{Delay: p.Delay, MaxDelay: p.MaxDelay, MaxUnderway: p.MaxUnderway}
						}
						if row.busy != nil {
							row.busy(rt)
							synctest.Wait()
						}
						for range 2 { // the second one joins what the first has begun
							ctx, cancel := context.WithTimeout(context.Background(), hurry)
							defer cancel()
							start := time.Now()
							err := ask(ctx, rt, parse("http://a.example/page"))
							if took := time.Since(start); took > hurry || !errors.Is(err, context.DeadlineExceeded) {
								t.Errorf("returned after %v: %v", took, err)
							}
						}
						time.Sleep(300 * time.Hour) // what goes on ends
						if rt.Cache != nil {
							rt.Cache.Close(context.Background())
						}
					})
				})
			}
		}
	}
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
