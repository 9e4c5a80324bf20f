package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/client"
)

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
		u := mustParse(t, "http://a.example/page")
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
				if err == nil || d.Allowed || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), name+" ") {
					t.Errorf("%s %q: got %v, want an error with %s", name, token, err, bad)
				}
			}
			if len(base.agents) > 0 || len(base.pages) > 0 {
				t.Errorf("%s %q: something was sent", name, token)
			}
		}
		if _, err := context.Decide(client.WithToken(client.WithToken(t.Context(), token), "ExampleBot"), u); err != nil {
			t.Errorf("%q and then a good one: got %v", token, err)
		}
		if _, err := context.Decide(client.WithoutRobots(client.WithToken(t.Context(), token)), u); err != nil {
			t.Errorf("%q without robots: got %v", token, err)
		}
	}
	for _, token := range []string{"", "*", "MJ12bot", "Mail.RU_Bot", "example-bot_2"} {
		gate := &client.Transport{Base: &web{robots: robots}}
		if _, err := gate.Decide(client.WithToken(t.Context(), token), mustParse(t, "http://a.example/page")); err != nil {
			t.Errorf("%q: got %v", token, err)
		}
	}
}

// Figure 4 of RFC 9309, second row, as net/http sends it.
func TestRulesWithReservedCharactersHoldForWhatIsSent(t *testing.T) {
	var served []string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /Foo (bar)\nDisallow: /wiki/Foo_(bar)\nDisallow: /go?to=https://\nDisallow: /nul\x00junk\n")
			return
		}
		served = append(served, r.RequestURI)
	}))
	defer site.Close()
	gate := &client.Transport{}
	c := &http.Client{Transport: gate}
	base := mustParse(t, site.URL)
	for _, u := range []*url.URL{
		mustParse(t, site.URL+"/Foo (bar)"), // as http.Get does
		{Scheme: base.Scheme, Host: base.Host, Path: "/wiki/Foo_(bar)"},
		{Scheme: base.Scheme, Host: base.Host, Path: "/go", RawQuery: url.Values{"to": {"https://example.com/?a"}}.Encode()},
		mustParse(t, site.URL+"/go?to=https://example.com/?a"),
		mustParse(t, site.URL+"/nul"),
	} {
		res, err := c.Do(&http.Request{Method: http.MethodGet, URL: u})
		if err == nil {
			res.Body.Close()
		}
		if _, refused := errors.AsType[*client.DisallowedError](err); !refused {
			t.Errorf("%s: got %v, want a refusal", u, err)
		}
	}
	if len(served) > 0 {
		t.Errorf("sent in spite of robots.txt: %q", served)
	}
	for _, u := range []string{"/Foo%2F(bar)", "/wiki%2FFoo_(bar)", "/go%3Fto=https://", "/Foo"} {
		res, err := c.Get(site.URL + u)
		if err != nil {
			t.Errorf("%s: %v", u, err)
			continue
		}
		res.Body.Close()
	}
}
