package client_test

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// BenchmarkPacerWait is a Wait that nothing delays.
func BenchmarkPacerWait(b *testing.B) {
	hosts := make([]string, 1_000_000)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("www.site-%d.example", i)
	}
	b.Run("one origin", func(b *testing.B) {
		p := &client.Pacer{Delay: -1}
		u := url.URL{Scheme: "http", Host: hosts[0]}
		b.ReportAllocs()
		for b.Loop() {
			p.Wait(b.Context(), &u)
		}
	})
	b.Run("10,000 known origins", func(b *testing.B) {
		p := &client.Pacer{Delay: -1}
		waitInTurn(b, p, hosts[:10_000])
	})
	b.Run("a million origins, all forgotten in between", func(b *testing.B) {
		p := &client.Pacer{Delay: time.Millisecond}
		waitInTurn(b, p, hosts)
	})
	b.Run("10,000 known origins, parallel", func(b *testing.B) {
		p := &client.Pacer{Delay: -1}
		b.ReportAllocs()
		var next atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			u := url.URL{Scheme: "http"}
			for i := int(next.Add(5000)); pb.Next(); i++ {
				u.Host = hosts[i%10_000]
				p.Wait(b.Context(), &u)
			}
		})
	})
}

func waitInTurn(b *testing.B, p *client.Pacer, hosts []string) {
	b.ReportAllocs()
	u := url.URL{Scheme: "http"}
	i := 0
	for b.Loop() {
		if i++; i == len(hosts) {
			i = 0
		}
		u.Host = hosts[i]
		p.Wait(b.Context(), &u)
	}
	b.StopTimer()
	runtime.KeepAlive(p)
}

// BenchmarkPacedRoundTrip is what the Pacer adds to a request that has not to wait: a
// place is taken and given back. How much there is to learn from robots.txt is no matter.
func BenchmarkPacedRoundTrip(b *testing.B) {
	many := "User-agent: *\nCrawl-delay: 0\nAllow: /\n" + strings.Repeat("Note: x\n", 60_000)
	for _, c := range []struct {
		name, robots string
		pacer        *client.Pacer
	}{
		{"without", "User-agent: *\nCrawl-delay: 0\n", nil},
		{"with", "User-agent: *\nCrawl-delay: 0\n", new(client.Pacer)},
		{"with 60,000 records", many, new(client.Pacer)},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := &client.Transport{Token: "ExampleBot", Pacer: c.pacer}
			t.Base = withFile(c.robots)
			req := request("GET", "http://a.example/page", nil)
			b.ReportAllocs()
			for b.Loop() {
				res, err := t.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				res.Body.Close()
			}
		})
	}
}

// withFile is a Base with a robots.txt, and a page at every other path.
func withFile(robots string) roundtrip.Func {
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/robots.txt" {
			return answer(200, "", robots), nil
		}
		return ok(req)
	}
}
