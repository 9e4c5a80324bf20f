// Package gatebench measures what the gate adds to a request, beside the wrapper of http.RoundTripper that most
// programs have, and what the service and the filter add. It is a module of its own, so that what it is measured beside
// does not enter the library's go.mod.
package gatebench

import (
	"bytes"
	"io"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
)

const agent = "ExampleBot/1.0 (+https://example.com/bot)"

// robots is a file of ten rules, one of them a wildcard.
const robots = `User-agent: *
Disallow: /admin/
Disallow: /cart
Disallow: /checkout
Disallow: /search
Allow: /search/about
Disallow: /tmp/
Disallow: /*?session=
Disallow: /private/
Disallow: /login
Disallow: /user/
`

// canned answers every page with one response, and robots.txt with robots.
type canned struct{ page *http.Response }

func newCanned() canned {
	return canned{&http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody}}
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/robots.txt" {
		return c.page, nil
	}
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(robots))), ContentLength: int64(len(robots)),
	}, nil
}

// BenchmarkGate is a request over a Base that costs nothing, beside one through x/oauth2's Transport: what a wrapper
// adds.
//
//	go test -run XXX -bench Gate -benchtime 101x -count 3
func BenchmarkGate(b *testing.B) {
	const perRound, page = 20_000, "http://www.example.com/articles/2026/a-page.html"
	side := func(rt http.RoundTripper, url string) func() time.Duration {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("User-Agent", agent)
		rt.RoundTrip(req)
		return sides.Took(func() {
			for range perRound {
				rt.RoundTrip(req)
			}
		})
	}
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "x"})
	theirs := side(&oauth2.Transport{Source: token, Base: newCanned()}, page)
	for name, url := range map[string]string{
		"warm": page, "query": page + "?id=42&sort=up", "refusal": "http://www.example.com/private/x",
	} {
		gate := &client.Transport{Base: newCanned(), UserAgent: agent}
		b.Run(name, func(b *testing.B) { sides.Compare(b, perRound, side(gate, url), theirs) })
	}
}

// build builds a program, or a file of one.
func build(b *testing.B, bin, what string) {
	if out, err := exec.Command("go", "build", "-o", bin, what).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}
