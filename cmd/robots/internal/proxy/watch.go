package proxy

// What watches a proxy has an address of its own (--metrics-listen): on that of the proxy, a path is a
// request to some site.

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// Watched serves on l what watches s, which sends through g, while s drains too: its /readyz is 503 when ctx
// has ended. It sets s.Count, so it comes after Obey and before Serve. The caller closes what it returns.
func (s *Server) Watched(ctx context.Context, g *site.Gate, l net.Listener) *http.Server {
	m := newMetrics(s, g)
	guard := web.Guard{Loopback: web.IsLoopback(l), Token: s.Guard.Token}
	mux := http.NewServeMux()
	web.Health(ctx, mux, "proxy", g.Ping)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if err := guard.CheckToken(w, r); err != nil {
			err.Write(w)
			return
		}
		m.ServeHTTP(w, r)
	})
	server := &http.Server{
		// The Host field is looked at first, for every path, since a web page may have been rebound to this
		// address. The probes need no token.
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			if err := guard.CheckHost(r); err != nil {
				err.Write(w)
				return
			}
			mux.ServeHTTP(w, r)
		}),
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
	m.Gauge("robots_proxy_underway", "Requests and tunnels under way.", func() int64 { return int64(s.Underway()) })
	g.Trace = &client.Trace{Fetched: func(_ context.Context, f client.FetchedInfo) { m.Fetched(f) }}
	return m
}
