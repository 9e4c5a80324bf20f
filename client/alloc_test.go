package client_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// What README and integration_test/gatebench/README.md say of allocations.
func TestAllocationsOfAWarmRequest(t *testing.T) {
	if proc.UnderRace() {
		t.Skip("the race detector allocates")
	}
	reply := answer(200, "", "")
	file := answer(200, "", "User-agent: *\nDisallow: /private\nCrawl-delay: 1\n")
	stated := answer(200, "", "User-agent: *\nContent-Signal: ai-train=yes, search=yes\nDisallow: /private\n")
	rules := policy.Parse([]byte("User-agent: *\nDisallow: /private\n"))
	trace := &client.Trace{Decided: func(context.Context, *url.URL, client.Answer, time.Duration, error) {}}
	base := func(req *http.Request) (*http.Response, error) {
		switch {
		case req.URL.Path != "/robots.txt":
			return reply, nil
		case req.URL.Host == "stated.example":
			return stated, nil
		}
		return file, nil
	}
	for _, c := range []struct {
		name string
		gate *client.Transport
		url  string
		sets bool // the request has a User-Agent of its own
		most float64
	}{
		{"plain", &client.Transport{}, "http://a.example/page", true, 0},
		{"a query", &client.Transport{}, "http://a.example/page?q=1", true, 1},
		{"without any User-Agent", &client.Transport{}, "http://a.example/page", false, 0},
		{"Transport.UserAgent", &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)"}, "http://a.example/page", false, 3}, // the request, and its header
		{"an escape", &client.Transport{}, "http://a.example/caf%C3%A9", true, 3},
		{"%2F", &client.Transport{}, "http://a.example/a%2Fb", true, 3},
		{"capitals", &client.Transport{}, "http://A.Example/page", true, 3},
		{"Trace and Uses", &client.Transport{Trace: trace, Uses: []string{"train-ai"}}, "http://a.example/page", true, 3},
		{"Uses, and a file that says something of them", &client.Transport{Uses: []string{"train-ai"}}, "http://stated.example/page", true, 3},
		{"Override", &client.Transport{Override: func(fetch.Origin) *policy.Policy { return rules }}, "http://a.example/page", true, 0},
		{"Sign", &client.Transport{Sign: func(*http.Request) error { return nil }}, "http://a.example/page", true, 6},
		{"an IPv6 literal", &client.Transport{}, "http://[2001:db8::1]:8080/page", true, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.gate.Base = roundtrip.Func(base)
			req := request("GET", c.url, nil)
			if c.sets {
				req.Header.Set("User-Agent", "ExampleBot/1.0")
			}
			if _, err := c.gate.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			n := testing.AllocsPerRun(100, func() { c.gate.RoundTrip(req) })
			t.Logf("%v allocations", n)
			if n > c.most {
				t.Errorf("%v allocations, want at most %v", n, c.most)
			}
		})
	}
}
