package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// web is a base transport: it answers robots.txt and keeps what else it was given.
type web struct {
	robots string
	pages  []*http.Request
	agents []string // that asked for robots.txt
}

func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	body := "page"
	if req.URL.Path == "/robots.txt" {
		body = w.robots
		w.agents = append(w.agents, req.UserAgent())
	} else {
		w.pages = append(w.pages, req)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

const robots = `User-agent: *
Disallow: /private

User-agent: ExampleBot
Disallow: /example-only

User-agent: Go-http-client
Disallow: /go-only
`

func request(method, url string, body io.Reader) *http.Request {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		panic(err)
	}
	return req
}

func TestTheTokenIsThatOfTheUserAgentToBeSent(t *testing.T) {
	for _, row := range []struct {
		name             string
		userAgent, token string
		header           http.Header
		ctx              func(context.Context) context.Context
		refused          string // the one path of these that is refused
		want             string // token that was decided for
	}{
		{name: "nothing set: net/http's own", refused: "/go-only", want: "Go-http-client"},
		{name: "UserAgent", userAgent: "ExampleBot/1.0", refused: "/example-only", want: "ExampleBot"},
		{name: "the compatible form", userAgent: "Mozilla/5.0 (compatible; ExampleBot/0.1; +https://example.com/)", refused: "/example-only", want: "ExampleBot"},
		{name: "Token before UserAgent", userAgent: "Strange/1", token: "examplebot", refused: "/example-only", want: "examplebot"},
		{name: "the request's own", userAgent: "Strange/1", header: http.Header{"User-Agent": {"ExampleBot/2"}}, refused: "/example-only", want: "ExampleBot"},
		{name: "a request that sends none", header: http.Header{"User-Agent": {""}}, refused: "/private", want: ""},
		{name: "a request that sends none, of a Transport that has one", userAgent: "ExampleBot/1.0", header: http.Header{"User-Agent": {}}, refused: "/private", want: ""},
		{name: "the context's empty one", token: "ExampleBot", ctx: func(ctx context.Context) context.Context { return client.WithToken(ctx, "") }, refused: "/private", want: ""},
		{name: "a token without group", token: "NoGroup", refused: "/private", want: "NoGroup"},
		{name: "the context's before all", token: "NoGroup", ctx: func(ctx context.Context) context.Context { return client.WithToken(ctx, "ExampleBot") }, refused: "/example-only", want: "ExampleBot"},
	} {
		t.Run(row.name, func(t *testing.T) {
			rt := &client.Transport{Base: &web{robots: robots}, UserAgent: row.userAgent, Token: row.token}
			for _, path := range []string{"/private", "/example-only", "/go-only"} {
				ctx := t.Context()
				if row.ctx != nil {
					ctx = row.ctx(ctx)
				}
				req := (&http.Request{Method: http.MethodGet, URL: parse("http://a.example" + path), Header: row.header}).WithContext(ctx)
				_, err := rt.RoundTrip(req)
				refusal, _ := errors.AsType[*client.DisallowedError](err)
				if (refusal != nil) != (path == row.refused) {
					t.Errorf("%s: %v, want only %s refused", path, err, row.refused)
				}
				if refusal != nil && refusal.Token != row.want {
					t.Errorf("decided for token %q, want %q", refusal.Token, row.want)
				}
			}
		})
	}
}

func TestUserAgentIsSentWhereARequestHasNone(t *testing.T) {
	base := &web{robots: robots}
	rt := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0"}
	for _, h := range []http.Header{nil, {}, {"User-Agent": {"Own/1"}}} {
		if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/"), Header: h}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"ExampleBot/1.0", "ExampleBot/1.0", "Own/1"} {
		if got := base.pages[i].UserAgent(); got != want {
			t.Errorf("request %d was sent as %q, want %q", i, got, want)
		}
	}
	if len(base.agents) != 1 || base.agents[0] != "ExampleBot/1.0" {
		t.Errorf("robots.txt was asked for as %q, want once as ExampleBot/1.0", base.agents)
	}
}

// What is decided on is what net/http would send: path as escaped, query as written.
func TestTheTargetIsDecidedAsSent(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: strings.Join([]string{
		"User-agent: *", "Disallow: /private", "Disallow: /*?*secret", "Disallow: /a%2Fb", "Disallow: //double", "Disallow: /x?$",
	}, "\n")}}
	for _, row := range []struct {
		url   url.URL
		allow bool
	}{
		{url.URL{Path: ""}, true},
		{url.URL{Path: "/"}, true},
		{url.URL{Path: "/private"}, false},
		{url.URL{Path: "/%70rivate"}, true}, // sent as /%2570rivate
		{url.URL{Path: "/private", RawPath: "/%70rivate"}, false},
		{url.URL{Path: "/a/b"}, true},
		{url.URL{Path: "/a/b", RawPath: "/a%2Fb"}, false},
		{url.URL{Path: "/q", RawQuery: "x=1&secret"}, false},
		{url.URL{Path: "/q", RawQuery: strings.Repeat("x", 4096) + "secret"}, false},
		{url.URL{Path: "/q", Fragment: "?secret"}, true}, // never sent
		{url.URL{Path: "//double/x"}, false},
		{url.URL{Path: "/x"}, true},
		{url.URL{Path: "/x", ForceQuery: true}, false},
		{url.URL{Path: "/public/.../private"}, true},
		{url.URL{Path: "/public/..private"}, true},
		{url.URL{Path: "/public", RawQuery: "/../private"}, true},
	} {
		u := row.url
		u.Scheme, u.Host = "http", "a.example"
		_, err := rt.RoundTrip(&http.Request{URL: &u})
		if allowed := err == nil; allowed != row.allow {
			t.Errorf("%.80s: allowed = %t (%.200v), want %t", u.RequestURI(), allowed, err, row.allow)
		}
		d, err := rt.Decide(t.Context(), &u)
		if err != nil || d.Allowed != row.allow {
			t.Errorf("Decide(%.80s) = %v, %v, want allowed = %t", u.RequestURI(), d, err, row.allow)
		}
	}
}

// Whatever the spelling, the canonical host is sent: for some, net/http would dial one host and name another. A signature
// is of the canonical host too (RFC 9421 §2.2.3), and not all receivers make it of what they get.
func TestTheHostIsCanonicalBeforeAnythingIsSent(t *testing.T) {
	for _, row := range []struct{ host, hostField, wantURL, wantHost string }{
		{"a.example", "", "a.example", ""},
		{"A.Example", "", "a.example", ""},
		{"a.example:80", "", "a.example", ""},
		{"a.example.", "", "a.example", ""},
		{"WWW.Müller.EU", "", "www.xn--mller-kva.eu", ""},
		{"example。com", "", "example.com", ""},
		{"１２７.0.0.1", "", "127.0.0.1", ""},
		{"a.example:080", "a.example:080", "a.example", ""},
		{"127.0.0.1:8080", "Müller.eu", "127.0.0.1:8080", "xn--mller-kva.eu"},
		{"127.0.0.1:8080", "A.example:80", "127.0.0.1:8080", "a.example"},
		{"[fe80::1%eth0]", "[fe80::1%eth0]", "[fe80::1%eth0]", "[fe80::1]"}, // RFC 6874 §4
	} {
		base := &web{robots: robots}
		rt := &client.Transport{Base: base}
		req := &http.Request{URL: &url.URL{Scheme: "http", Host: row.host, Path: "/"}, Host: row.hostField}
		if _, err := rt.RoundTrip(req); err != nil {
			t.Errorf("%s: got %v, want it sent", row.host, err)
			continue
		}
		sent := base.pages[0]
		if sent.URL.Host != row.wantURL || sent.Host != row.wantHost {
			t.Errorf("%s with Host %q: sent to %q with Host %q, want %q and %q", row.host, row.hostField, sent.URL.Host, sent.Host, row.wantURL, row.wantHost)
		}
		if req.URL.Host != row.host || req.Host != row.hostField {
			t.Errorf("%s: the request was modified", row.host)
		}
	}
}

func TestOtherSchemesPassUntouched(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /"}
	rt := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0"}
	sign := func(*http.Request) error { return errors.New("Sign is called") }
	for i, raw := range []string{"file:///etc/hosts", "ws://a.example/"} {
		req := request(http.MethodGet, raw, nil)
		if _, err := (&client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Sign: sign}).RoundTrip(req); err != nil || len(base.pages) != i+1 || base.pages[i] != req {
			t.Errorf("%s: %v, base was given %v, want the request itself", raw, err, base.pages)
		}
	}
	if _, err := rt.RoundTrip(&http.Request{URL: &url.URL{Scheme: "HTTP", Host: "a.example", Path: "/x"}}); err == nil {
		t.Error("a scheme in capital letters went round the gate")
	}
}

func TestWithoutRobotsSendsAndAsksNothing(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /"}
	rt := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0"}
	req := (&http.Request{URL: parse("http://a.example/private")}).WithContext(client.WithoutRobots(t.Context()))
	if _, err := rt.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	if len(base.agents) != 0 || len(base.pages) != 1 {
		t.Fatalf("robots.txt was asked for %d times, and the page %d times, want 0 and 1", len(base.agents), len(base.pages))
	}
	if got := base.pages[0].UserAgent(); got != "ExampleBot/1.0" {
		t.Errorf("the page was asked for as %q, want ExampleBot/1.0", got)
	}
}

func TestLookupGivesThePolicyOfTheOrigin(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: robots}}
	p, err := rt.Lookup(t.Context(), parse("http://a.example/any/page?x"))
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide("ExampleBot", "/example-only"); d.Allowed || d.Rule.Line != 5 {
		t.Errorf("Decide = %v, want the refusal by line 5", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rt.Lookup(ctx, parse("http://b.example/")); !errors.Is(err, context.Canceled) {
		t.Errorf("Lookup with an ended context: got %v, want %v", err, context.Canceled)
	}
}

func TestZeroValueTransportWorks(t *testing.T) {
	a, err := new(client.Transport).Decide(t.Context(), parse("http://127.0.0.1:1/x")) // nothing listens there
	if err != nil || a.Allowed || a.Reason != policy.ReasonUnreachable || a.Token != "Go-http-client" {
		t.Errorf("got %v, %v, want a refusal for Go-http-client, as robots.txt is unreachable", a, err)
	}
}

func TestDefaultTransportMayBeTheGateItself(t *testing.T) {
	if os.Getenv("ROBOTSGATE_TEST_SELF") != "" {
		http.DefaultTransport = &client.Transport{UserAgent: "ExampleBot/1.0"}
		_, err := http.Get("http://127.0.0.1:1/x")
		fmt.Println("error:", err)
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDefaultTransportMayBeTheGateItself$")
	cmd.Env = append(os.Environ(), "ROBOTSGATE_TEST_SELF=1")
	out, err := cmd.CombinedOutput()
	if want := "the Transport is its own Base"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got %.300q, %v, want an error that says %q", out, err, want)
	}
}

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
		{"a page", t.Context(), parse("http://a.example/")},
		{"robots.txt, always allowed", t.Context(), parse("http://a.example/robots.txt")},
		{"without robots", client.WithoutRobots(t.Context()), parse("http://a.example/")},
		{"another scheme", t.Context(), parse("ws://a.example/")},
		{"no URL", t.Context(), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := &web{robots: robots}
			rt := &client.Transport{Base: base}
			if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")}); err != nil {
				t.Fatal(err)
			}
			for _, end := range []func() error{rt.Close, func() error { return rt.Shutdown(t.Context()) }, rt.Close} {
				if err := end(); err != nil {
					t.Fatal(err)
				}
			}
			body := &closeCount{Reader: strings.NewReader("payload")}
			resp, err := rt.RoundTrip((&http.Request{URL: row.url, Body: body}).WithContext(row.ctx))
			if resp != nil || !isClosed(err) {
				t.Errorf("RoundTrip: got %v, %v, want that it is closed", resp, err)
			}
			if body.closed != 1 {
				t.Errorf("the body was closed %d times, want once", body.closed)
			}
			if _, err := rt.Decide(row.ctx, row.url); !isClosed(err) {
				t.Errorf("Decide: got %v, want that it is closed", err)
			}
			if _, err := rt.Lookup(row.ctx, row.url); !isClosed(err) {
				t.Errorf("Lookup: got %v, want that it is closed", err)
			}
			if len(base.pages) != 1 || len(base.agents) != 1 {
				t.Errorf("%d pages and %d robots.txt were asked for, want 1 each, from before", len(base.pages), len(base.agents))
			}
		})
	}
}

// isClosed reports whether err says that the Transport, and not a Cache that was given to it, is closed.
func isClosed(err error) bool {
	return errors.Is(err, cache.ErrClosed) && errors.Is(err, client.ErrNotSent) && err.Error() == "client: the Transport is closed"
}

func TestATransportThatWasNeverUsedCanBeClosed(t *testing.T) {
	base := new(silent)
	rt := &client.Transport{Base: base}
	if err := errors.Join(rt.Shutdown(t.Context()), rt.Close()); err != nil {
		t.Error(err)
	}
	if base.idleClosed.Load() != 0 {
		t.Error("the connections of Base, which is the caller's, were closed")
	}
	if (&http.Client{Transport: rt}).CloseIdleConnections(); base.idleClosed.Load() != 1 {
		t.Error("CloseIdleConnections is not passed on")
	}
	(&client.Transport{Base: new(web)}).CloseIdleConnections() // has none to close
	if err := new(client.Transport).Shutdown(t.Context()); err != nil {
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
				if !isClosed(err) {
					t.Errorf("got %v, want that it is closed", err)
				}
			})
		}
		synctest.Wait()
		if err := rt.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		waiting.Wait()
		synctest.Wait()
		if asked, gone := base.asked.Load(), base.gone.Load(); asked != 26 || gone != 26 {
			t.Errorf("%d fetches were begun and %d ended, want 26 each", asked, gone)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("took %v, want no time", took)
		}
	})
}

// A robots.txt may have to wait for hours until the site's pause is over. Its callers do not, once there is no cache.
func TestCloseFreesThoseWhoWaitForTheTurnOfRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Pacer: new(client.Pacer), Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				resp := answer(404, "", "")
				resp.Header.Set("Cache-Control", "max-age=60")
				return resp, nil
			}
			return answer(429, "3600", ""), nil
		})}
		if _, err := gate.RoundTrip(request(http.MethodGet, "http://a.example/", nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		time.AfterFunc(time.Second, func() { gate.Close() })
		start := time.Now()
		_, err := gate.RoundTrip(request(http.MethodGet, "http://a.example/", nil))
		if took := time.Since(start); !isClosed(err) || took > 2*time.Second {
			t.Errorf("got %v after %v, want that it is closed after a second", err, took)
		}
	})
}

func TestACacheThatWasGivenIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := new(cache.Cache)
		release := make(chan struct{})
		base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				<-release
			}
			return (&web{robots: robots}).RoundTrip(req)
		})
		var told atomic.Int32 // of decisions, to one, whose hooks may write to what is closed after it
		one := &client.Transport{Base: base, Cache: shared, Trace: &client.Trace{
			Decided: func(context.Context, *url.URL, client.Answer, time.Duration, error) { told.Add(1) },
		}}
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
		if err := one.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		close(release)
		waiting.Wait()
		if _, err := one.Decide(t.Context(), parse("http://a.example/")); !isClosed(err) || told.Load() != 0 {
			t.Errorf("the closed one: got %v, want that it is closed; its Trace heard of %d decisions", err, told.Load())
		}
		if d, err := other.Decide(t.Context(), parse("http://a.example/go-only")); err != nil || d.Allowed {
			t.Errorf("the other one: got %v, %v, want a refusal", d, err)
		}
		if err := shared.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := other.Decide(t.Context(), parse("http://a.example/")); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("over a closed cache: got %v, want cache.ErrClosed", err)
		}
	})
}

// Every request is sent or ends with cache.ErrClosed, and after a Close none is sent.
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
					case isClosed(err):
						return
					case err != nil:
						t.Error(err)
						return
					}
				}
			})
			if i%4 == 3 {
				users.Go(func() {
					if err := rt.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
					closed.Store(true)
				})
			}
		}
		users.Wait()
	}
}

// The blanks of a Fetcher are filled in a copy, and what it has goes first.
func TestAFetchersBlanksAreFilled(t *testing.T) {
	own := &web{robots: robots}
	for _, row := range []struct {
		name  string
		f     *fetch.Fetcher
		agent string // that robots.txt is asked for with
		over  *web   // nil: Base
	}{
		{"Transport and UserAgent", &fetch.Fetcher{Retries: -1}, "ExampleBot/1.0", nil},
		{"Transport", &fetch.Fetcher{UserAgent: "OtherBot/1.0"}, "OtherBot/1.0", nil},
		{"UserAgent", &fetch.Fetcher{Transport: own}, "ExampleBot/1.0", own},
		{"none", &fetch.Fetcher{Transport: own, UserAgent: "OtherBot/1.0"}, "OtherBot/1.0", own},
	} {
		base := &web{robots: robots}
		over := cmp.Or(row.over, base)
		over.agents = nil
		transport, agent := row.f.Transport, row.f.UserAgent
		rt := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Fetcher: row.f}
		if _, err := rt.Decide(t.Context(), parse("http://a.example/")); err != nil {
			t.Errorf("%s: got %v, want an answer", row.name, err)
		}
		if len(over.agents) != 1 || over.agents[0] != row.agent {
			t.Errorf("%s: robots.txt was asked for as %q, want once as %q", row.name, over.agents, row.agent)
		}
		if row.f.Transport != transport || row.f.UserAgent != agent {
			t.Errorf("%s: the caller's Fetcher was modified", row.name)
		}
	}
}

// Dialect is how a robots.txt is read, whatever Fetcher fetched it, and what Trace tells of: to Google a 401 allows
// everything, to the dialect of 1996 it forbids everything.
func TestTheDialectIsThatOfTheTransport(t *testing.T) {
	f := &fetch.Fetcher{UserAgent: "ExampleBot/1.0", Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		return answer(401, "", ""), nil
	})}
	for dialect, want := range map[policy.Dialect]bool{policy.Google: true, policy.Original: false} {
		var told *fetch.Result
		trace := &client.Trace{Fetched: func(_ context.Context, _ fetch.Origin, r *fetch.Result, _ time.Duration, _ error) { told = r }}
		rt := &client.Transport{Dialect: dialect, Fetcher: f, Trace: trace}
		a, err := rt.Decide(t.Context(), parse("http://a.example/"))
		if err != nil || a.Allowed != want || told == nil || told.Dialect != dialect || (told.Err == nil) != want {
			t.Errorf("%v: got %v, %v, and the Trace is told of %v; want Allowed %v", dialect, a, err, told, want)
		}
	}
}

// An Answer says what it rests on, and a refusal carries the same.
func TestAnAnswerSaysWhatItRestsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "down.example" {
				return nil, down
			}
			return (&web{robots: robots}).RoundTrip(req)
		})
		rt := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0"}
		start := time.Now()
		for _, row := range []struct {
			url      string
			reason   policy.Reason
			received bool
			err      string
		}{
			{"http://a.example/example-only", policy.ReasonRule, true, ""},
			{"http://a.example/robots.txt", policy.ReasonNoRule, false, ""},
			{"http://down.example/x", policy.ReasonUnreachable, true, "down"},
		} {
			a, err := rt.Decide(t.Context(), parse(row.url))
			if err != nil || a.Reason != row.reason || a.Token != "ExampleBot" || a.Received.IsZero() == row.received {
				t.Errorf("%s: got %v for %q, received %v, %v, want %v for ExampleBot, received: %t", row.url, a, a.Token, a.Received, err, row.reason, row.received)
			}
			if row.received && (a.Received.Before(start) || a.Received.After(time.Now())) {
				t.Errorf("%s: received %v, want between %v and now", row.url, a.Received, start)
			}
			if (a.Unreachable != nil) != (row.err != "") || a.Unreachable != nil && !strings.Contains(a.Unreachable.Error(), row.err) {
				t.Errorf("%s: Err is %v, want %q", row.url, a.Unreachable, row.err)
			}
			_, rerr := rt.RoundTrip(&http.Request{URL: parse(row.url)})
			if refusal, ok := errors.AsType[*client.DisallowedError](rerr); ok == a.Allowed || ok && refusal.Answer != a {
				t.Errorf("%s: got %v by RoundTrip, want what Decide says: %v", row.url, rerr, a)
			}
			time.Sleep(time.Second)
		}
	})
}
