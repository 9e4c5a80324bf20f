package proxy

// How a Server obeys robots.txt: Obey has it send through a site.Gate.

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/policy"
)

type Obeying struct {
	answer.Asker
	Each   bool // the product token in each client's User-Agent field is decided for
	Paced  bool // the delay that each site asks for is kept
	Advise bool // what is refused passes
}

// Obey has s send its requests through g, which has its settings of RunsOn already. Requests for robots.txt have the
// transport of before.
func (s *Server) Obey(g *site.Gate, o Obeying) {
	g.Uses, s.agreed = o.Uses, g.Agreed
	if o.Paced {
		g.Pacer = new(client.Pacer)
		g.Share()
	}
	base := g.Base.(*http.Transport).Clone()
	base.DisableCompression = true // bodies pass as they are
	base.MaxIdleConns, base.MaxIdleConnsPerHost = 1024, 64
	base.MaxResponseHeaderBytes = 1 << 20
	base.ExpectContinueTimeout = 5 * time.Second // after that, we send 100 in the site's place
	g.Base = base
	j := &judge{o, g}
	if s.Gate = j; o.Advise {
		s.Gate = newAdviser(j, s)
	}
	s.init()
}

// judge sends requests through the gate that reads robots.txt as the crawler does which they are judged for.
type judge struct {
	Obeying
	gate *site.Gate
}

func (j *judge) RoundTrip(req *http.Request) (*http.Response, error) {
	k := j.Asker // a copy
	if j.Each {
		k.SetAgent(cmp.Or(policy.ProductToken(req.UserAgent()), answer.AnyOther))
	}
	gate, ctx, err := j.gate.For(req.Context(), &k, req.URL)
	if err != nil {
		return nil, err // httputil.ReverseProxy closes the body
	}
	return gate.RoundTrip(req.WithContext(ctx))
}

// Watched serves on l what watches s, which sends through g, while s drains too: its /readyz is 503 when ctx
// has ended. It sets s.Count. The caller closes what it returns.
func (s *Server) Watched(ctx context.Context, g *site.Gate, l net.Listener) *http.Server {
	guard := web.Guard{Loopback: web.IsLoopback(l), Token: s.Guard.Token}
	mux := http.NewServeMux()
	web.Health(ctx, mux, "proxy", g.Ping)
	mux.Handle("GET /metrics", newMetrics(s, g))
	server := &http.Server{
		Handler:     guard.Protect(mux),
		ReadTimeout: s.Limits.Ask, WriteTimeout: 3 * s.Limits.Ask, IdleTimeout: s.Limits.Idle,
		MaxHeaderBytes: web.MaxHeader, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	go server.Serve(l)
	return server
}

// newMetrics counts what s answers and what g reads. Those of its series that serve has, too, are the same.
func newMetrics(s *Server, g *site.Gate) *site.Metrics {
	m := site.NewMetrics("Time to read robots.txt.")
	m.Watch(g)
	answers := m.Counters("robots_proxy_answers_total", "Answers to clients.", "kind", Kinds...)
	s.Count = func(kind string) { answers.WithLabelValues(kind).Inc() }
	m.Tell("robots_proxy_underway", "Requests and tunnels under way.", func() int64 { return int64(len(s.underway)) })
	g.Trace = &client.Trace{Fetched: m.Fetched}
	return m
}
