package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// what is dialled and named is what was decided for
func FuzzTheHostSentIsTheHostDecidedOn(f *testing.F) {
	for _, h := range []string{"a.example", "A.example.", "a.example:80", "a.example:080", "[::1]", "[::1%eth0]:80", "[fe80::1%25x]:8080", "Müller.de", "1.2.3.4", "example。com", "a_b.example", "xn--mller-kva.de", "ſ.example", "a.example:443"} {
		f.Add(h, "", false)
		f.Add("a.example", h, false)
		f.Add(h, "B.example:0080", true)
	}
	f.Fuzz(func(t *testing.T, urlHost, hostField string, upper bool) {
		scheme := "http"
		if upper {
			scheme = "HTTP"
		}
		var sent *http.Request
		rt := &client.Transport{Base: pagesOf(func(req *http.Request) (*http.Response, error) {
			sent = req
			return ok(req)
		})}
		req := &http.Request{URL: &url.URL{Scheme: scheme, Host: urlHost, Path: "/p"}, Host: hostField}
		o, oerr := fetch.OriginOfRequest(&http.Request{URL: &url.URL{Scheme: "http", Host: urlHost}, Host: hostField})
		if _, err := rt.RoundTrip(req.WithContext(t.Context())); err != nil {
			return
		}
		if oerr != nil {
			t.Fatalf("%q %q: sent, want the error of its origin: %v", urlHost, hostField, oerr)
		}
		if name := cmp.Or(sent.Host, sent.URL.Host); sent.URL.Host != o.URLHost() || name != o.HostField() && name != o.URLHost() {
			t.Errorf("%q %q: sent to %q as %q, want %q and %q, which was decided for", urlHost, hostField, sent.URL.Host, sent.Host, o.URLHost(), o.HostField())
		}
	})
}

// closeCount is a request's body that counts Close calls.
type closeCount struct {
	io.Reader
	closed int
}

func (c *closeCount) Close() error { c.closed++; return nil }

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
func TestNoCallerIsKeptBeyondTheDeadline(t *testing.T) {
	robotsAreSilent := roundtrip.Func(hang)
	pagesAreOpen := pagesOf(func(*http.Request) (*http.Response, error) { return answer(200, "", "page"), nil })
	ask := func(rt *client.Transport, raw string) { rt.RoundTrip(&http.Request{Method: "GET", URL: parse(raw)}) }
	quiet := func() *client.Transport { return &client.Transport{Base: robotsAreSilent} }
	rows := []struct {
		name string
		gate func() *client.Transport
		busy func(*client.Transport) // what goes on already
		page bool                    // it is the page that waits
	}{
		{name: "robots.txt is silent", gate: quiet},
		{name: "another waits for it", gate: quiet, busy: func(rt *client.Transport) { go ask(rt, "http://a.example/") }},
		{name: "another origin has the only slot", gate: func() *client.Transport {
			return &client.Transport{Base: robotsAreSilent, Fetcher: &fetch.Fetcher{Transport: robotsAreSilent, MaxFetches: 1}}
		}, busy: func(rt *client.Transport) { go ask(rt, "http://b.example/") }},
		{name: "the Store is silent", gate: func() *client.Transport {
			return &client.Transport{Base: robotsAreSilent, Cache: &cache.Cache{Store: stuck{hangs: true}}}
		}},
		{name: "the lock is never free", gate: func() *client.Transport {
			return &client.Transport{Base: robotsAreSilent, Cache: &cache.Cache{Store: stuck{}}}
		}},
		{name: "robots.txt waits for its turn", gate: func() *client.Transport {
			return &client.Transport{Base: robotsAreSilent, Pacer: &client.Pacer{Delay: 30 * time.Second}}
		}, busy: func(rt *client.Transport) {
			ask(&client.Transport{Base: pagesAreOpen, Pacer: rt.Pacer, Override: func(fetch.Origin) *policy.Policy { return policy.Unavailable() }}, "http://a.example/")
		}},
		{name: "the page waits for its turn", gate: func() *client.Transport {
			return &client.Transport{Base: pagesAreOpen, Pacer: &client.Pacer{Delay: 30 * time.Second, MaxUnderway: 2}}
		}, page: true},
		{name: "the page waits for a place", gate: func() *client.Transport {
			return &client.Transport{Base: pagesAreOpen, Pacer: &client.Pacer{Delay: -1}}
		}, page: true, busy: func(rt *client.Transport) { ask(rt, "http://a.example/open") }},
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
	for _, row := range rows {
		for way, ask := range ways {
			if row.page && way != "RoundTrip" {
				continue
			}
			for _, hurry := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second} {
				t.Run(fmt.Sprint(row.name, "/", way, "/", hurry), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						rt := row.gate()
						if row.busy != nil {
							row.busy(rt)
							synctest.Wait()
						}
						for range 2 { // the second one joins what the first has begun
							ctx, cancel := context.WithTimeout(context.Background(), hurry)
							defer cancel()
							start := time.Now()
							err := ask(ctx, rt, parse("http://a.example/page"))
							_, late := errors.AsType[*client.LateError](err)
							if took := time.Since(start); took > hurry || !late && !errors.Is(err, context.DeadlineExceeded) {
								t.Errorf("got %v after %v, want a *LateError or the deadline, after %v at most", err, took, hurry)
							}
						}
						time.Sleep(300 * time.Hour) // what goes on ends
						if rt.Cache != nil {
							rt.Cache.Shutdown(context.Background())
						}
					})
				})
			}
		}
	}
}

// RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed". No other is.
func TestOnlyRobotsTxtItselfIsAllowedUnasked(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: "User-agent: *\nDisallow: /\n"}, UserAgent: "ExampleBot/1.0"}
	for target, want := range map[string]bool{
		"/robots.txt":     true,
		"/robots.txt.bak": false,
		"/robots.txt/":    false,
		"/robots.txt/x":   false,
		"/robots.txt?x=1": false,
		"/robots.tx":      false,
		"/Robots.txt":     false,
		"/a/robots.txt":   false,
	} {
		d, err := rt.Decide(t.Context(), parse("http://a.example"+target))
		if err != nil || d.Allowed != want {
			t.Errorf("%s: %v, %v, want it allowed: %v", target, d, err, want)
		}
	}
}

// A token that no name can match would obey "*" without a word.
func TestATokenThatIsNoneIsRefused(t *testing.T) {
	for token, bad := range map[string]string{
		"ExampleBot\n":      `leave out the "\n"`,
		"ExampleBot ":       `leave out the " "`,
		" ExampleBot":       `leave out the " "`,
		"Example Bot":       `leave out the " "`,
		"Example\tBot":      `leave out the "\t"`,
		"ExampleBot\u00a0":  `leave out the "\u00a0"`,
		"ExampleBot\xa0":    `leave out the "\xa0"`,
		"ExampleBot*":       `leave out the "*"`,
		"**":                `leave out the "*"`,
		"ExampleBot#":       `leave out the "#"`,
		"ExampleBot:":       `leave out the ":"`,
		"ExampleBot\x00":    `leave out the "\x00"`,
		"ExampleBot/1":      `to "ExampleBot"`,
		"ExampleBot (test)": `to "ExampleBot"`,
	} {
		base := &web{robots: robots}
		u := parse("http://a.example/page")
		field := &client.Transport{Base: base, Token: token}
		context := &client.Transport{Base: base}
		for name, gate := range map[string]*client.Transport{"Token": field, "WithToken": context} {
			ctx := t.Context()
			if gate == context {
				ctx = client.WithToken(ctx, token)
			}
			_, sent := gate.RoundTrip((&http.Request{Method: http.MethodGet, URL: u}).WithContext(ctx))
			d, asked := gate.Decide(ctx, u)
			for _, err := range []error{sent, asked} {
				if err == nil || d.Allowed || !errors.Is(err, client.ErrNotSent) || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), name+" ") {
					t.Errorf("%s %q: got %v, want an error with %s", name, token, err, bad)
				}
			}
			if len(base.agents) > 0 || len(base.pages) > 0 {
				t.Errorf("%s %q: something was sent", name, token)
			}
		}
		if _, err := context.Decide(client.WithToken(client.WithToken(t.Context(), token), "ExampleBot"), u); err != nil {
			t.Errorf("%q and then a good one: got %v, want an answer", token, err)
		}
		if _, err := context.Decide(client.WithoutRobots(client.WithToken(t.Context(), token)), u); err != nil {
			t.Errorf("%q without robots: got %v, want an answer", token, err)
		}
	}
	for _, token := range []string{"", "*", "MJ12bot", "Mail.RU_Bot", "example-bot_2"} {
		gate := &client.Transport{Base: &web{robots: robots}}
		if _, err := gate.Decide(client.WithToken(t.Context(), token), parse("http://a.example/page")); err != nil {
			t.Errorf("%q: got %v, want an answer", token, err)
		}
	}
}

// For a caller who has gone, no robots.txt is asked for.
func TestAnEndedContextAsksForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		base := &web{}
		gate := &client.Transport{Base: base}
		defer gate.Close()
		req, _ := http.NewRequestWithContext(ended, "GET", "http://a.example/", nil)
		_, sendErr := gate.RoundTrip(req)
		_, askErr := gate.Decide(ended, req.URL)
		_, lookErr := gate.Lookup(ended, req.URL)
		synctest.Wait() // for what is behind the caller
		if want := context.Canceled; sendErr != want || askErr != want || lookErr != want || len(base.agents) != 0 {
			t.Errorf("got %v, %v, %v and %d requests, want %v of each and none", sendErr, askErr, lookErr, len(base.agents), want)
		}
	})
}
