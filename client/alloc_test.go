package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// What README and integration_test/gatebench/README.md say of allocations.
func TestAllocationsOfAWarmRequest(t *testing.T) {
	if proc.UnderRace() {
		t.Skip("the race detector allocates")
	}
	reply := answer(200, "", "")
	file := answer(200, "", "User-agent: *\nDisallow: /private\nCrawl-delay: 1\n")
	stated := answer(200, "", "User-agent: *\nContent-Signal: ai-train=yes, search=yes\nDisallow: /private\n")
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
		{"plain", &client.Transport{}, "http://a.example/page?q=1", true, 0},
		{"without any User-Agent", &client.Transport{}, "http://a.example/page", false, 0},
		{"Transport.UserAgent", &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)"}, "http://a.example/page", false, 1}, // the request
		{"an escape", &client.Transport{}, "http://a.example/caf%C3%A9", true, 0},
		{"512 bytes of escapes", &client.Transport{}, "http://a.example/" + strings.Repeat("a", 505) + "%C3%A9", true, 0},
		{"%2F", &client.Transport{}, "http://a.example/a%2Fb", true, 0},
		{"capitals", &client.Transport{}, "http://A.Example/page", true, 1},
		{"a Pacer", &client.Transport{Pacer: &client.Pacer{Delay: -1}}, "http://a.example/page", true, 1},
		{"Sign", &client.Transport{Sign: func(*http.Request) error { return nil }}, "http://a.example/page", true, 6}, // one of them its own
		{"Uses, and a file that says nothing of them", &client.Transport{Uses: []string{"train-ai"}}, "http://a.example/page", true, 0},
		{"Fetcher.PublicOnly", &client.Transport{Fetcher: &fetch.Fetcher{PublicOnly: true}}, "http://a.example/page", true, 10},
		{"Uses, and a file that says something of them", &client.Transport{Uses: []string{"train-ai"}}, "http://stated.example/page", true, 3},
		{"a dot segment", &client.Transport{}, "http://a.example/a/../b", true, 206},
		{"a name in Unicode", &client.Transport{}, "http://bücher.example/page", true, 5},
		{"an IPv6 literal", &client.Transport{}, "http://[2001:db8::1]:8080/page", true, 0},
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

// Over an *http.Transport, each request is watched up to its connection.
func TestAllocationsOverARealTransport(t *testing.T) {
	if proc.UnderRace() {
		t.Skip("the race detector allocates")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "User-agent: *\n") }))
	defer s.Close()
	count := func(rt http.RoundTripper) float64 {
		req := request("GET", s.URL+"/page", nil)
		send := func() {
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		send()
		return testing.AllocsPerRun(200, send)
	}
	base := new(http.Transport)
	defer base.CloseIdleConnections()
	bare, gated := count(base), count(&client.Transport{Base: base})
	t.Logf("%v without the gate, %v with it", bare, gated)
	if gated-bare > 12 {
		t.Errorf("the gate adds %v allocations to the %v of net/http and its server", gated-bare, bare)
	}
}
