// Package gatebench measures what the gate adds to a request, beside the wrappers of
// http.RoundTripper that people use anyhow and beside the check that other crawlers
// make. It is a module of its own so that none of them enters the library's go.mod.
//
//	go test -bench . -benchmem
package gatebench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gregjones/httpcache"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/temoto/robotstxt"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"golang.org/x/oauth2"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
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

// canned answers every page with one response, and robots.txt with one of bodies.
type canned struct {
	page   *http.Response
	bodies func() []byte
}

func newCanned() *canned {
	return &canned{bodies: func() []byte { return []byte(robots) }, page: &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody}}
}

func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/robots.txt" {
		return c.page, nil
	}
	body := c.bodies()
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// fresh answers with a response of its own each time, for wrappers that change it.
type fresh struct{}

func (fresh) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{}, Body: http.NoBody,
	}, nil
}

func request(tb testing.TB, link string) *http.Request {
	tb.Helper()
	req, err := http.NewRequest(http.MethodGet, link, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	return req
}

func run(b *testing.B, rt http.RoundTripper, reqs ...*http.Request) {
	b.Helper()
	for _, req := range reqs {
		if _, err := rt.RoundTrip(req); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rt.RoundTrip(reqs[i%len(reqs)])
	}
}

func gateOver(base http.RoundTripper) *client.Transport {
	return &client.Transport{Base: base, UserAgent: agent, Cache: &cache.Cache{MaxOrigins: 1 << 20, MaxBytes: 4 << 30}}
}

// BenchmarkRoundTrip is one request over a base that costs nothing: what a wrapper adds.
func BenchmarkRoundTrip(b *testing.B) {
	const page = "http://www.example.com/articles/2026/a-page.html"
	b.Run("bare", func(b *testing.B) { run(b, newCanned(), request(b, page)) })
	b.Run("gate", func(b *testing.B) { run(b, gateOver(newCanned()), request(b, page)) })
	b.Run("gate-query", func(b *testing.B) { run(b, gateOver(newCanned()), request(b, page+"?id=42&sort=up")) })
	b.Run("gate-10k-origins", func(b *testing.B) { run(b, gateOver(newCanned()), origins(b, 10_000)...) })
	b.Run("gate-refusal", func(b *testing.B) {
		rt, req := gateOver(newCanned()), request(b, "http://www.example.com/private/x")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := rt.RoundTrip(req); err == nil {
				b.Fatal("sent")
			}
		}
	})
	b.Run("bare-fresh-response", func(b *testing.B) { run(b, fresh{}, request(b, page)) })
	b.Run("oauth2", func(b *testing.B) {
		token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "x"})
		run(b, &oauth2.Transport{Source: token, Base: newCanned()}, request(b, page))
	})
	b.Run("go-retryablehttp", func(b *testing.B) {
		c := retryablehttp.NewClient()
		c.Logger, c.HTTPClient = nil, &http.Client{Transport: fresh{}}
		run(b, &retryablehttp.RoundTripper{Client: c}, request(b, page))
	})
	b.Run("otelhttp", func(b *testing.B) { run(b, otelhttp.NewTransport(fresh{}), request(b, page)) })
	b.Run("httpcache-hit", func(b *testing.B) {
		t := httpcache.NewMemoryCacheTransport()
		t.Transport = cacheable{}
		warm := request(b, page)
		resp, err := t.RoundTrip(warm)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		run(b, t, warm)
	})
}

type cacheable struct{ fresh }

func (c cacheable) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.fresh.RoundTrip(req)
	resp.Header.Set("Cache-Control", "max-age=3600")
	resp.Header.Set("Date", "Fri, 20 Nov 2099 10:00:00 GMT")
	return resp, err
}

func origins(tb testing.TB, n int) []*http.Request {
	reqs := make([]*http.Request, n)
	for i := range reqs {
		reqs[i] = request(tb, fmt.Sprintf("http://host%d.example.com/articles/page.html", i))
	}
	return reqs
}

// BenchmarkParallel is the gate on all cores at once.
func BenchmarkParallel(b *testing.B) {
	rt, reqs := gateOver(newCanned()), origins(b, 10_000)
	for _, req := range reqs {
		if _, err := rt.RoundTrip(req); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := rand.IntN(len(reqs)); pb.Next(); i++ {
			rt.RoundTrip(reqs[i%len(reqs)])
		}
	})
}

// mapCheck is the check that crawlers write around a parser: a map from host to the
// parsed file under a lock, then the group of our agent, then the path with its query.
// It is colly's, step by step.
type mapCheck struct {
	mu    sync.RWMutex // guards hosts
	hosts map[string]*robotstxt.RobotsData
}

func (m *mapCheck) allows(u *url.URL) bool {
	m.mu.RLock()
	data := m.hosts[u.Host]
	m.mu.RUnlock()
	group := data.FindGroup(agent)
	path := u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.Query().Encode() // which sorts the query
	}
	return group.Test(path)
}

// realFiles are the bodies of the corpus that the peer can read (it rejects a file for
// one bad line), endlessly, so that both sides hold the same.
func realFiles(b *testing.B) func() []byte {
	var bodies [][]byte
	files := vectors.Corpus(b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := robotstxt.FromBytes(files[name]); err == nil {
			bodies = append(bodies, files[name])
		}
	}
	i := 0
	return func() []byte { i++; return bodies[i%len(bodies)] }
}

// BenchmarkCheck is the warm question alone, beside the hand-made check over
// temoto/robotstxt: one origin with ten rules, then many origins with real files, asked
// about in random order.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{1, 4_000, 200_000} {
		ours, theirs := newCanned(), newCanned()
		if size > 1 {
			ours.bodies, theirs.bodies = realFiles(b), realFiles(b)
		}
		peer := &mapCheck{hosts: make(map[string]*robotstxt.RobotsData, size)}
		rt, reqs := gateOver(ours), origins(b, size)
		for _, req := range reqs {
			data, err := robotstxt.FromBytes(theirs.bodies())
			if err != nil {
				b.Fatal(err)
			}
			peer.hosts[req.URL.Host] = data
			if _, err := rt.Decide(b.Context(), req.URL); err != nil {
				b.Fatal(err)
			}
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(size, func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
		for _, req := range reqs {
			// The first use of an origin after a sixteenth of all were added also gives it its
			// place in the order of use. That is rare beside the fetches that add them, and
			// would count or not with the time that the benchmark runs.
			if _, err := rt.Decide(b.Context(), req.URL); err != nil {
				b.Fatal(err)
			}
			peer.allows(req.URL)
		}
		for _, query := range []string{"", "b=2&a=1"} {
			for _, req := range reqs {
				req.URL.RawQuery = query
			}
			name := fmt.Sprintf("%d/query=%t", size, query != "")
			b.Run("temoto/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					peer.allows(reqs[i%size].URL)
				}
			})
			b.Run("gate/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := rt.Decide(b.Context(), reqs[i%size].URL); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkColly is one request through the gate beside what colly's own check of
// robots.txt takes. That has no name to be called by, so it is measured as a difference:
// between Visit of a page that was visited before, which ends after the checks, and the
// same without robots.txt. The two take turns, and the median of the differences counts.
func BenchmarkColly(b *testing.B) {
	for _, query := range []string{"", "?id=42&sort=up"} {
		page := "http://www.example.com/articles/2026/a-page.html" + query
		visit := func(ignore bool) func() {
			c := colly.NewCollector(colly.UserAgent(agent))
			c.IgnoreRobotsTxt = ignore
			c.WithTransport(newCanned())
			if err := c.Visit(page); err != nil {
				b.Fatal(err)
			}
			return func() {
				if _, ok := errors.AsType[*colly.AlreadyVisitedError](c.Visit(page)); !ok {
					b.Fatal("visited again")
				}
			}
		}
		checked, unchecked := visit(false), visit(true)
		rt, req := gateOver(newCanned()), request(b, page)
		gated := func() { rt.RoundTrip(req) }
		b.Run(fmt.Sprintf("query=%t", query != ""), func(b *testing.B) {
			const batch = 100
			var checks, gates []time.Duration
			for b.Loop() {
				checks, gates = append(checks, took(batch, checked)-took(batch, unchecked)), append(gates, took(batch, gated))
			}
			check, whole := float64(median(checks))/batch, float64(median(gates))/batch
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(check, "ns/check-of-colly")
			b.ReportMetric(whole, "ns/gate")
			b.ReportMetric(check/whole, "times")
		})
	}
}

func took(n int, f func()) time.Duration {
	start := time.Now()
	for range n {
		f()
	}
	return time.Since(start)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// A warm gate allocates nothing for a plain page, and what is sent with a query once. An own User-Agent is set on a
// copy of the request.
func TestAWarmGateDoesNotAllocate(t *testing.T) {
	rt := gateOver(newCanned())
	for link, most := range map[string]float64{
		"http://www.example.com/":                             0,
		"https://www.example.com/a/b":                         0,
		"https://www.example.com/a/b?c=d":                     1,
		"http://www.example.com/%E3%83%84":                    4, // net/url escapes the path anew, and so does a decision
		"http://www.example.com/?" + strings.Repeat("q", 600): 1,
	} {
		req := request(t, link)
		if _, err := rt.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { rt.RoundTrip(req) }); n > most {
			t.Errorf("%s: %v allocations, want %v", link, n, most)
		}
	}
	req := request(t, "http://www.example.com/a/b")
	req.Header.Del("User-Agent")
	if n := testing.AllocsPerRun(100, func() { rt.RoundTrip(req) }); n > 3 {
		t.Errorf("with the gate's User-Agent: %v allocations, want 3", n)
	}
	req = request(t, "http://www.example.com/private/x")
	if n := testing.AllocsPerRun(100, func() { rt.RoundTrip(req) }); n > 1 {
		t.Errorf("a refusal costs %v allocations, want 1, the error", n)
	}
}
