package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

func TestErrorTextIsSafeInALogLine(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /private"}
	rt := &client.Transport{Base: base}
	for _, u := range []*url.URL{
		parse("http://a.example/private?q=\u009b2J\u202etxt.exe"), // a Location field can hold that
		parse("http://a.example/private?\xff"),
		parse("http://a.example/private?" + strings.Repeat("é", 300)),
	} {
		_, err := rt.RoundTrip(&http.Request{URL: u})
		var refusal *client.DisallowedError
		if !errors.As(err, &refusal) {
			t.Fatalf("%.100s: got %v, want a *DisallowedError", u, err)
		}
		text := refusal.Error()
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("unprintable or not UTF-8: %+q", text)
		}
	}
}

func TestDisallowedErrorNamesWhatACallerNeeds(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "a.example", Path: "/x", User: url.UserPassword("me", "secret")}
	rule := policy.Decision{Reason: policy.ReasonRule, Rule: policy.Rule{Pattern: "/x\n\x1b[31m" + strings.Repeat("y", 5000), Line: 7}, GroupToken: "b\u202eot\x9b"}
	unreachable := policy.Decision{Reason: policy.ReasonUnreachable}
	answer := func(d policy.Decision, err error) client.Answer {
		return client.Answer{Decision: d, Token: "ExampleBot", Unreachable: err}
	}
	for _, row := range []struct {
		err  error
		want string
	}{
		{&client.DisallowedError{URL: u, Answer: answer(policy.Parse([]byte("User-agent: *\nDisallow: /x")).Decide("a", "/x"), nil)},
			`client: not sent for "ExampleBot": disallowed by line 2 of robots.txt: Disallow: /x (user-agent: *)`},
		{&client.DisallowedError{URL: u, Answer: answer(rule, nil)},
			`client: not sent for "ExampleBot": disallowed by line 7 of robots.txt: Disallow: /x%0A%1B[31m` + strings.Repeat("y", 248) + `… (user-agent: b%E2%80%AEot%9B)`},
		{&client.DisallowedError{URL: u, Answer: answer(unreachable, errors.New("no route to host"))},
			`client: not sent for "ExampleBot": disallowed: robots.txt is unreachable: no route to host`},
		{&client.DisallowedError{URL: u, Answer: answer(unreachable, nil)}, `client: not sent for "ExampleBot": disallowed: robots.txt is unreachable`},
		{&client.DisallowedError{}, `client: not sent for "": disallowed`}, // the zero value prints, too
		{&client.DelayError{Delay: time.Minute, Max: 30 * time.Second},
			`client: not sent:  asks for 1m0s between requests, more than the Pacer's MaxDelay of 30s`},
	} {
		if text := row.err.Error(); text != row.want {
			t.Errorf("got  %q\nwant %q", text, row.want)
		}
	}
	if _, ok := reflect.TypeFor[*client.DisallowedError]().MethodByName("Unwrap"); ok {
		t.Error("DisallowedError unwraps: a time-out of robots.txt would look like the caller's deadline")
	}
}

// Which group decides, and whether any does, where the answer is easily lost.
func TestTheGroupThatDecidesInRareCases(t *testing.T) {
	plain := func(ctx context.Context) context.Context { return ctx }
	for name, c := range map[string]struct {
		gate   *client.Transport
		scheme string
		agent  []string // the request's
		ctx    func(context.Context) context.Context
		sent   bool
	}{
		"no User-Agent is sent":   {&client.Transport{UserAgent: "ExampleBot/1.0"}, "http", []string{}, plain, true},
		"an empty token":          {&client.Transport{Token: "ExampleBot"}, "http", nil, func(ctx context.Context) context.Context { return client.WithToken(ctx, "") }, true},
		"the Transport's token":   {&client.Transport{Token: "ExampleBot"}, "http", nil, plain, false},
		"the scheme in capitals":  {&client.Transport{Token: "ExampleBot"}, "HTTPS", nil, plain, false},
		"the scheme in HTTP":      {&client.Transport{Token: "ExampleBot"}, "HTTP", nil, plain, false},
		"the scheme in both ways": {&client.Transport{Token: "ExampleBot"}, "hTtPs", nil, plain, false},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			c.gate.Base = roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path == "/robots.txt" {
					return answer(200, "", "User-agent: ExampleBot\nDisallow: /\n\nUser-agent: *\nAllow: /\n"), nil
				}
				sent++
				return answer(200, "", ""), nil
			})
			req := (&http.Request{Method: "GET", URL: &url.URL{Scheme: c.scheme, Host: "a.example", Path: "/page"}, Header: http.Header{}}).
				WithContext(c.ctx(t.Context()))
			if c.agent != nil {
				req.Header["User-Agent"] = c.agent
			}
			if _, err := c.gate.RoundTrip(req); c.sent != (err == nil) || c.sent != (sent == 1) {
				t.Errorf("%d sent, %v", sent, err)
			}
		})
	}
}

// Without robots, Decide still says what is wrong with the Transport, and for whom it answers.
func TestDecideWithoutRobots(t *testing.T) {
	u := &url.URL{Scheme: "http", Host: "a.example", Path: "/page"}
	ctx := client.WithoutRobots(t.Context())
	if a, err := (&client.Transport{Token: "ExampleBot"}).Decide(ctx, u); err != nil || !a.Allowed || a.Token != "ExampleBot" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := (&client.Transport{Token: "Example Bot"}).Decide(ctx, u); err == nil {
		t.Errorf("%+v", a)
	}
}
