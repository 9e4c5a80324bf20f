package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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

// The request is the caller's own, wherever nothing had to be added.
func TestTheRequestIsTheCallersOwn(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.UserAgent()) }))
	defer s.Close()
	base := new(http.Transport)
	defer base.CloseIdleConnections()
	for _, row := range []struct {
		name string
		gate *client.Transport
		has  bool // a User-Agent of its own
		own  bool
	}{
		{"nothing to add", &client.Transport{}, false, true},
		{"a User-Agent of its own", &client.Transport{UserAgent: "ExampleBot/1.0"}, true, true},
		{"with a Pacer", &client.Transport{Pacer: &client.Pacer{Delay: -1}}, false, true},
		{"the gate's User-Agent", &client.Transport{UserAgent: "ExampleBot/1.0"}, false, false},
		{"Sign", &client.Transport{Sign: func(*http.Request) error { return nil }}, true, false},
	} {
		row.gate.Base = base
		req := request("GET", s.URL+"/page", nil)
		if row.has {
			req.Header.Set("User-Agent", "Own/1")
		}
		header := req.Header.Clone()
		resp, err := row.gate.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if (resp.Request == req) != row.own || len(req.Header) != len(header) {
			t.Errorf("%s: the response's request is the caller's own: %t, want %t; its header is %v", row.name, resp.Request == req, row.own, req.Header)
		}
		if want := req.UserAgent(); want != "" && string(body) != want {
			t.Errorf("%s: sent as %q, want %q", row.name, body, want)
		}
	}
}

// Sign may set fields of its copy, and those that the request shares with others stay as they are.
func TestSignWorksOnACopy(t *testing.T) {
	shared := http.Header{"X-List": {"a"}}
	gate := &client.Transport{
		Base: pagesOf(func(req *http.Request) (*http.Response, error) {
			if got := strings.Join(req.Header["X-List"], ","); got != "changed,b" {
				t.Errorf("sent %q, want changed,b", got)
			}
			return answer(200, "", ""), nil
		}),
		Sign: func(req *http.Request) error {
			if req.URL.Path != "/robots.txt" {
				req.Header["X-List"][0] = "changed"
				req.Header.Add("X-List", "b")
			}
			return nil
		},
	}
	if _, err := gate.RoundTrip(&http.Request{URL: parse("http://a.example/"), Header: shared}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(shared["X-List"], ","); got != "a" {
		t.Errorf("the caller's header is now %q, want a", got)
	}
}

// An Override has no time for Until, and a queue that asks again then must not ask in a loop.
func TestAnUnreachableOverrideIsAskedAgainInAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Override: func(fetch.Origin) *policy.Policy { return policy.Unreachable() }}
		a, err := gate.Decide(t.Context(), parse("http://a.example/"))
		if in := time.Until(a.Until); err != nil || a.Allowed || in != time.Minute {
			t.Errorf("got %v, %v, Until in %v; want unreachable, and a minute", a, err, in)
		}
	})
}

// Rules of Override stand in for robots.txt, which is not read, and say so.
func TestOverrideStandsInForRobots(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /\n"}
	ours, err := fetch.OriginOf(parse("http://ours.example"))
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.Parse([]byte("User-agent: *\nDisallow: /drafts\nContent-Usage: train-ai=n\nAllow: /\n"))
	gate := &client.Transport{Base: base, Override: func(o fetch.Origin) *policy.Policy {
		if o == ours {
			return rules
		}
		return nil
	}}
	for _, row := range []struct {
		url        string
		uses       []string
		allowed    bool
		overridden bool
		want       string // part of the answer
	}{
		{"http://ours.example/", nil, true, true, "allowed"},
		{"http://ours.example/drafts", nil, false, true, "disallowed by line 2 of Override: Disallow: /drafts"},
		{"http://ours.example/", []string{"train-ai"}, false, true, `line 3, Content-Usage: "train-ai=n"`},
		{"http://ours.example/robots.txt", nil, true, false, "allowed"},
		{"http://ours.example:8080/", nil, false, false, "disallowed by line 2 of robots.txt"},
		{"https://ours.example/", nil, false, false, "disallowed by line 2 of robots.txt"},
	} {
		ctx := client.WithUses(t.Context(), row.uses...)
		a, err := gate.Decide(ctx, parse(row.url))
		if err != nil || a.Allowed != row.allowed || a.Overridden != row.overridden || !strings.Contains(a.String(), row.want) {
			t.Errorf("%s for %q: got %v (%+v), %v, want %s", row.url, row.uses, a, a.Decision, err, row.want)
		}
		_, err = gate.RoundTrip((&http.Request{URL: parse(row.url)}).WithContext(ctx))
		if (err == nil) != row.allowed {
			t.Errorf("%s for %q: got %v by RoundTrip, want it sent: %t", row.url, row.uses, err, row.allowed)
		}
	}
	if len(base.agents) != 3 { // the last two rows, and a robots.txt that was asked for as a page
		t.Errorf("robots.txt was read %d times, want 3", len(base.agents))
	}
	if p, err := gate.Lookup(t.Context(), parse("http://ours.example/x")); p != rules || err != nil {
		t.Errorf("Lookup: got %v, %v, want the rules of Override", p, err)
	}
}

// With a Base of fetch.PublicOnly no request reaches an address that is not public, and the error is ours.
func TestPublicOnlyAsBase(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	base := fetch.PublicOnly(new(http.Transport))
	gate := &client.Transport{Base: base, Fetcher: &fetch.Fetcher{Retries: -1}}
	for name, ctx := range map[string]context.Context{"robots.txt": t.Context(), "a person's page": client.WithoutRobots(t.Context())} {
		_, err := gate.RoundTrip(request("GET", s.URL, nil).WithContext(ctx))
		if !errors.Is(err, client.ErrNotSent) || !errors.Is(err, fetch.ErrNotPublic) {
			t.Errorf("%s: got %v, want ErrNotSent and ErrNotPublic", name, err)
		}
	}
	page := &client.Transport{Base: base, Override: func(fetch.Origin) *policy.Policy { return policy.Unavailable() }, Pacer: &client.Pacer{Delay: -1}}
	if _, err := page.RoundTrip(request("GET", s.URL, nil)); !errors.Is(err, client.ErrNotSent) || !errors.Is(err, fetch.ErrNotPublic) {
		t.Errorf("a page: got %v, want ErrNotSent and ErrNotPublic", err)
	}
	if asked > 0 {
		t.Errorf("%d requests arrived, want none", asked)
	}
}

// Each reader has files of its own in a shared Cache: another User-Agent, and one that signs.
func TestReadersShareNoFile(t *testing.T) {
	reads := map[string]int{}
	base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		if req.URL.Path != "/robots.txt" {
			return ok(req)
		}
		who := req.UserAgent() + req.Header.Get("Signed")
		reads[who]++
		if who == "OneBot/1.0" {
			return answer(200, "", "User-agent: *\nDisallow: /\n"), nil
		}
		return answer(200, "", ""), nil
	})
	shared := new(cache.Cache)
	for _, row := range []struct {
		gate *client.Transport
		want bool
	}{
		{&client.Transport{Base: base, UserAgent: "OneBot/1.0"}, false},
		{&client.Transport{Base: base, UserAgent: "OneBot/2.0"}, false},
		{&client.Transport{Base: base, UserAgent: "TwoBot/1.0"}, true},
		{&client.Transport{Base: base, UserAgent: "OneBot/1.0", Sign: func(r *http.Request) error { r.Header.Set("Signed", " signed"); return nil }}, true},
	} {
		row.gate.Cache = shared
		if a, err := row.gate.Decide(t.Context(), parse("http://a.example/")); err != nil || a.Allowed != row.want {
			t.Errorf("%s, signing %t: got %v, %v, want allowed: %t", row.gate.UserAgent, row.gate.Sign != nil, a, err, row.want)
		}
	}
	for who, n := range reads {
		if n != 1 {
			t.Errorf("%q read robots.txt %d times, want once", who, n)
		}
	}
}
