package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// waiting is what a Pacer puts above the wire: it waits before each request, no longer than its context.
func waiting(d time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(wire http.RoundTripper) http.RoundTripper {
		return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			select {
			case <-time.After(d):
				return wire.RoundTrip(req)
			case <-req.Context().Done():
				return nil, errLate
			}
		})
	}
}

var errLate = errors.New("no turn in time")

// Each request passes, also of redirects and retries, and Sign follows it.
func TestEachRequestGoesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		rt, _ := answers(response(302, "", "Location", "http://b.test/r"), response(503, ""), response(200, file))
		f := fetch.Fetcher{
			Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
				order = append(order, "wire", r.Header.Get("Signature"))
				return rt(r)
			}),
			Through: func(wire http.RoundTripper) http.RoundTripper {
				return roundtrip.Func(func(r *http.Request) (*http.Response, error) {
					order = append(order, r.URL.String())
					res, err := wire.RoundTrip(r)
					if r.Header.Get("Signature") != "" {
						t.Error("Sign got no copy")
					}
					return res, err
				})
			},
			Sign: func(r *http.Request) error {
				order = append(order, "sign")
				r.Header.Set("Signature", r.URL.Host)
				return nil
			},
		}
		fetched(t, &f, "http://a.test", nil, "rules")
		want := []string{
			"http://a.test/robots.txt", "sign", "wire", "a.test",
			"http://b.test/r", "sign", "wire", "b.test", "http://b.test/r", "sign", "wire", "b.test",
		}
		if !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
	})
}

// The wait counts against no time-out, and holds no place.
func TestAWaitForATurnTakesNoTimeOfTheSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := roundtrip.Func(func(r *http.Request) (*http.Response, error) {
			if deadline, ok := r.Context().Deadline(); !ok || time.Until(deadline) > 5*time.Second {
				t.Errorf("the wire has %v, want 5s at most", time.Until(deadline))
			}
			time.Sleep(4 * time.Second)
			if r.URL.Path == "/robots.txt" && r.URL.Host == "a.test" {
				return response(302, "", "Location", "/r"), nil
			}
			return response(200, file), nil
		})
		f := fetch.Fetcher{Transport: site, Timeout: 10 * time.Second, MaxFetches: 1, Through: waiting(time.Minute)}
		start := time.Now()
		go fetched(t, &f, "http://a.test", nil, "rules")
		time.Sleep(time.Second) // the other waits for its turn, and needs none of the places
		free := fetch.Fetcher{Transport: site, Timeout: 10 * time.Second}
		fetched(t, &free, "http://b.test", nil, "rules")
		fetched(t, &f, "http://b.test", nil, "rules")
		if took := time.Since(start); took > 80*time.Second {
			t.Errorf("took %v, want 80s at most", took)
		}
		// A turn that comes right before the wait must have ended is a whole one.
		last := fetch.Fetcher{Transport: site, Timeout: 10 * time.Second, Through: waiting(62 * time.Second)}
		ctx, cancel := context.WithTimeout(t.Context(), 75*time.Second)
		defer cancel()
		r, err := last.Fetch(ctx, originOf(t, "http://b.test"), nil)
		check(t, r, err, "rules")
		time.Sleep(5 * time.Minute)
	})
}

// The wait of a request ends early enough to leave Timeout for it; that of a retry with what is left of Timeout.
func TestTheWaitForATurnIsBounded(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline time.Duration // of the caller
		first    int           // the status of the first answer; 0: no turn comes at all
		want     time.Duration // when Fetch returns
		err      error
	}{
		{"a first request", time.Minute, 0, 50 * time.Second, errLate},
		{"a hop", time.Minute, 302, 50 * time.Second, errLate},
		{"less time than Timeout", 8 * time.Second, 0, 4 * time.Second, errLate},
		{"a retry", time.Minute, 503, 10 * time.Second, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt, n := answers(response(c.first, "", "Location", "/r"))
				f := fetch.Fetcher{Transport: rt, Timeout: 10 * time.Second, Through: func(wire http.RoundTripper) http.RoundTripper {
					if *n == 0 && c.first != 0 {
						return wire
					}
					return waiting(time.Hour)(wire)
				}}
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				start := time.Now()
				r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil)
				if err != c.err || (err == nil) != (r != nil) {
					t.Fatalf("got %v, %v, want %v", r, err, c.err)
				}
				if err == nil && (verdict(r) != "disallow" || r.StatusCode != c.first) {
					t.Errorf("got %v, want the first answer", r)
				}
				if took := time.Since(start).Round(time.Second / 2); took != c.want {
					t.Errorf("returned after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// What is not the site's failure is an error, also after a redirect.
func TestWhatIsOursIsAnError(t *testing.T) {
	ours := errors.New("no key")
	for _, hop := range []int{0, 1} {
		n := 0
		rt, asked := answers(response(302, "", "Location", "/r"), response(503, ""))
		f := fetch.Fetcher{Transport: rt, Sign: func(*http.Request) error {
			if n++; n > hop {
				return ours
			}
			return nil
		}}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		if r != nil || !errors.Is(err, ours) || *asked != hop || !strings.Contains(err.Error(), "Sign") {
			t.Errorf("hop %d: got %v, %v after %d requests, want the error of Sign after %d", hop, r, err, *asked, hop)
		}
	}
	// A 407 is a site's own only where no proxy can be.
	for _, connect := range []error{nil, errors.New("Proxy Authentication Required")} {
		f := fetch.Fetcher{Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) { return response(407, ""), connect })}
		if r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); r != nil || !strings.Contains(fmt.Sprint(err), "407") {
			t.Errorf("407 of any RoundTripper: got %v, %v, want an error that names it", r, err)
		}
	}
	direct := fetch.Fetcher{Transport: piped(func() []byte { return []byte(reply(407, "")) })}
	fetched(t, &direct, "http://a.test", nil, "allow")
}

// plain is a context of another package: what is derived from it ends a moment later.
type plain struct{ context.Context }

func (plain) Value(any) any { return nil }

// If no place comes, the context of the request has ended when the wire returns: a Pacer learns that no site has failed.
func TestTheContextOfARequestWithoutAPlaceHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := fetch.Fetcher{Through: func(wire http.RoundTripper) http.RoundTripper {
		return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			cancel()
			res, err := wire.RoundTrip(req)
			if !errors.Is(err, context.Canceled) || req.Context().Err() == nil {
				t.Errorf("got %v, and %v of the context, want that it was canceled", err, req.Context().Err())
			}
			return res, err
		})
	}}
	if r, err := f.Fetch(plain{ctx}, originOf(t, "http://a.test"), nil); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want that it was canceled", r, err)
	}
}

// One name for each reader.
func TestReader(t *testing.T) {
	sign := func(*http.Request) error { return nil }
	for want, f := range map[string]*fetch.Fetcher{
		"go-http-client":               {},
		"examplebot":                   {UserAgent: "ExampleBot/1.0 (+https://example.com)", Timeout: time.Second},
		"examplebot signed":            {UserAgent: "ExampleBot", Sign: sign},
		"examplebot walls":             {UserAgent: "examplebot/2", ObeyWalls: true},
		"examplebot signed walls host": {UserAgent: "Mozilla/5.0 (compatible; ExampleBot/0.1)", Sign: sign, ObeyWalls: true, SameHost: true},
	} {
		if got := f.Reader(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Behind silent origins, others wait in line for a place: each takes one until its time is up.
func TestAHealthyOriginWaitsBehindSilentOnes(t *testing.T) {
	for silent, want := range map[int]time.Duration{500: 0, 1500: 20 * time.Second, 3000: 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			f := fetch.Fetcher{Retries: -1, Timeout: 20 * time.Second, Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == "a.test" {
					return response(200, file), nil
				}
				<-r.Context().Done()
				return nil, io.ErrUnexpectedEOF
			})}
			for i := range silent {
				go f.Fetch(ctx, originOf(t, fmt.Sprintf("http://silent%d.test", i)), nil)
			}
			synctest.Wait()
			start := time.Now()
			fetched(t, &f, "http://a.test", nil, "rules")
			if took := time.Since(start); took != want {
				t.Errorf("behind %d: after %v, want %v", silent, took, want)
			}
			cancel()
			synctest.Wait()
		})
	}
}
