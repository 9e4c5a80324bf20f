package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
)

// How long an origin is left alone after one answer. What the field may say is in the
// table of fetch.RetryAfter; here is what follows from it.
func TestPacerHonoursRetryAfter(t *testing.T) {
	const exact, own = true, false // own: a pause of ours, 2 s give or take a fifth
	for _, c := range []struct {
		status     int
		retryAfter string
		kind       bool
		want       time.Duration
	}{
		{503, "120", exact, 2 * time.Minute},
		{429, "120", exact, 2 * time.Minute},
		{503, "date", exact, 90 * time.Second},
		{503, "9999999999999999999999", exact, 24 * time.Hour},
		{503, "", own, 2 * time.Second},
		{429, "", own, 2 * time.Second},
		{0, "", own, 2 * time.Second}, // no answer
		{503, "0", own, 2 * time.Second},
		{200, "120", exact, time.Second}, // no failure: the delay as always
		{404, "120", exact, time.Second},
		{301, "120", exact, time.Second}, // about the target of the redirect
	} {
		synctest.Test(t, func(t *testing.T) {
			pacer := &client.Pacer{}
			c2 := paced(pacer, pagesOf(func(*http.Request) (*http.Response, error) {
				if c.status == 0 {
					return nil, errors.New("connection reset")
				}
				if c.retryAfter == "date" {
					return answer(c.status, time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat), ""), nil
				}
				return answer(c.status, c.retryAfter, ""), nil
			}))
			c2.Get("http://a.example/")
			got := pacer.Next(parse("http://a.example/"))
			if least, most := c.want*4/5, c.want*6/5; c.kind == exact && got != c.want || got < least || got > most {
				t.Errorf("%d, Retry-After %q: next in %v, want %v", c.status, c.retryAfter, got, c.want)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Hour)
			defer cancel()
			if err := pacer.Pass(ctx, parse("http://a.example/")); err != nil {
				t.Errorf("%d, Retry-After %q: then got %v, want a turn: the place was given back", c.status, c.retryAfter, err)
			}
		})
	}
}

// A request that its caller gave up says nothing about the site.
func TestPacerDoesNotBlameTheSiteForAnImpatientCaller(t *testing.T) {
	for name, ends := range map[string]func(*http.Request) <-chan struct{}{
		"its context": func(r *http.Request) <-chan struct{} { return r.Context().Done() },
		//lint:ignore SA1019 http.Client closes it at its Timeout
		"Cancel": func(r *http.Request) <-chan struct{} { return r.Cancel },
	} {
		synctest.Test(t, func(t *testing.T) {
			pacer := &client.Pacer{}
			c := paced(pacer, pagesOf(func(req *http.Request) (*http.Response, error) {
				<-ends(req)
				return nil, errFailing
			}))
			c.Timeout = 5 * time.Second
			c.Get("http://a.example/")
			if got := pacer.Next(parse("http://a.example/")); got != time.Second {
				t.Errorf("%s: next in %v, want the delay, 1s", name, got)
			}
		})
	}
}

// robotsAnswers is a Base with one robots.txt answer for all and empty pages. It logs when either was asked for.
type robotsAnswers struct {
	robots func() *http.Response
	page   func() *http.Response
	begin  time.Time
	log    []string
}

func (b *robotsAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	b.log = append(b.log, strings.TrimPrefix(req.URL.Path, "/")+" at "+time.Since(b.begin).String())
	if req.URL.Path == "/robots.txt" {
		return b.robots(), nil
	}
	return b.page(), nil
}

// A 429 on robots.txt allows everything (RFC 9309 §2.3.1.3), and slows it down.
func TestPacer429OnRobotsSlowsThePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &robotsAnswers{
			robots: func() *http.Response { return answer(429, "20", "") },
			page:   func() *http.Response { return answer(200, "", "") },
			begin:  time.Now(),
		}
		get(t, paced(&client.Pacer{}, base), "http://a.example/page")
		if got, want := strings.Join(base.log, ", "), "robots.txt at 0s, page at 20s"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// Robots.txt is read no sooner than a page would be: here for a second Transport that
// shares the Pacer, but not the cache.
func TestPacerRobotsWaitsAsWell(t *testing.T) {
	for _, c := range []struct{ retryAfter, want string }{
		{"", "robots.txt at 0s, page at 1s, robots.txt at 2s, page at 3s"},
		{"30", "robots.txt at 0s, page at 1s, robots.txt at 31s, page at 32s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			status := 503
			base := &robotsAnswers{
				robots: func() *http.Response { return answer(404, "", "") },
				page:   func() *http.Response { return answer(status, c.retryAfter, "") },
				begin:  time.Now(),
			}
			if c.retryAfter == "" {
				status = 200
			}
			pacer := &client.Pacer{}
			get(t, paced(pacer, base), "http://a.example/page")
			get(t, paced(pacer, base), "http://a.example/page")
			if got := strings.Join(base.log, ", "); got != c.want {
				t.Errorf("Retry-After %q: got %s, want %s", c.retryAfter, got, c.want)
			}
		})
	}
}
