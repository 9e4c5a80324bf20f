package client_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

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
