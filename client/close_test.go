package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

// silent is a Base that says nothing until it is asked in vain.
type silent struct {
	asked, gone atomic.Int32
	idleClosed  atomic.Int32
}

func (s *silent) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	<-req.Context().Done()
	s.gone.Add(1)
	return nil, req.Context().Err()
}

func (s *silent) CloseIdleConnections() { s.idleClosed.Add(1) }

func TestAfterCloseNothingIsSent(t *testing.T) {
	for _, row := range []struct {
		name string
		ctx  context.Context
		url  *url.URL
	}{
		{"a page", t.Context(), mustParse(t, "http://a.example/")},
		{"robots.txt, always allowed", t.Context(), mustParse(t, "http://a.example/robots.txt")},
		{"without robots", client.WithoutRobots(t.Context()), mustParse(t, "http://a.example/")},
		{"another scheme", t.Context(), mustParse(t, "ftp://a.example/")},
		{"no URL", t.Context(), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := &web{robots: robots}
			rt := &client.Transport{Base: base}
			if _, err := rt.RoundTrip(&http.Request{URL: mustParse(t, "http://a.example/")}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := rt.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			body := &closeCount{Reader: strings.NewReader("payload")}
			resp, err := rt.RoundTrip((&http.Request{URL: row.url, Body: body}).WithContext(row.ctx))
			if resp != nil || err != client.ErrClosed {
				t.Errorf("RoundTrip: got %v, %v, want ErrClosed", resp, err)
			}
			if body.closed != 1 {
				t.Errorf("the body was closed %d times, want once", body.closed)
			}
			if _, err := rt.Decide(row.ctx, row.url); err != client.ErrClosed {
				t.Errorf("Decide: got %v, want ErrClosed", err)
			}
			if _, err := rt.Lookup(row.ctx, row.url); err != client.ErrClosed {
				t.Errorf("Lookup: got %v, want ErrClosed", err)
			}
			if len(base.pages) != 1 || len(base.agents) != 1 {
				t.Errorf("%d pages and %d robots.txt were asked for, want 1 each, from before", len(base.pages), len(base.agents))
			}
		})
	}
}

func TestATransportThatWasNeverUsedCanBeClosed(t *testing.T) {
	base := new(silent)
	rt := &client.Transport{Base: base}
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if base.idleClosed.Load() == 0 {
		t.Error("the idle connections of Base were not closed")
	}
	if err := new(client.Transport).Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The bubble ends only when all its goroutines have.
func TestCloseEndsFetchesAndFreesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := new(silent)
		rt := &client.Transport{Base: base}
		start := time.Now()
		var waiting sync.WaitGroup
		for i := range 100 {
			waiting.Go(func() {
				var err error
				switch u := parse("http://" + string(rune('a'+i%26)) + ".example/"); i % 3 {
				case 0:
					_, err = rt.RoundTrip(&http.Request{URL: u})
				case 1:
					_, err = rt.Decide(t.Context(), u)
				case 2:
					_, err = rt.Lookup(t.Context(), u)
				}
				if err != client.ErrClosed {
					t.Errorf("got %v, want ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
		waiting.Wait()
		synctest.Wait()
		if asked, gone := base.asked.Load(), base.gone.Load(); asked != 26 || gone != 26 {
			t.Errorf("%d fetches were begun and %d ended, want 26 each", asked, gone)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("took %v", took)
		}
	})
}

func TestACacheThatWasGivenIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := new(cache.Cache)
		release := make(chan struct{})
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				<-release
			}
			return (&web{robots: robots}).RoundTrip(req)
		})
		one := &client.Transport{Base: base, Cache: shared}
		other := &client.Transport{Base: base, Cache: shared}
		var waiting sync.WaitGroup
		for _, rt := range []*client.Transport{one, other} {
			waiting.Go(func() {
				if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if err := one.Close(t.Context()); err != nil {
			t.Error(err)
		}
		close(release)
		waiting.Wait()
		if _, err := one.Decide(t.Context(), parse("http://a.example/")); err != client.ErrClosed {
			t.Errorf("the closed one: got %v, want ErrClosed", err)
		}
		if d, err := other.Decide(t.Context(), parse("http://a.example/go-only")); err != nil || d.Allowed {
			t.Errorf("the other one: got %v, %v, want a refusal", d, err)
		}
		if err := shared.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := other.Decide(t.Context(), parse("http://a.example/")); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("over a closed cache: got %v, want cache.ErrClosed", err)
		}
	})
}

// Every request is sent or ends with ErrClosed, and after a Close none is sent.
func TestCloseMayComeAtAnyMoment(t *testing.T) {
	for range 20 {
		var closed atomic.Bool
		rt := &client.Transport{Base: pagesOf(ok)}
		var users sync.WaitGroup
		for i := range 16 {
			users.Go(func() {
				for {
					after := closed.Load()
					_, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")})
					switch {
					case err == nil && after:
						t.Error("a request was sent after Close")
						return
					case err == client.ErrClosed:
						return
					case err != nil:
						t.Error(err)
						return
					}
				}
			})
			if i%4 == 3 {
				users.Go(func() {
					if err := rt.Close(t.Context()); err != nil {
						t.Error(err)
					}
					closed.Store(true)
				})
			}
		}
		users.Wait()
	}
}
