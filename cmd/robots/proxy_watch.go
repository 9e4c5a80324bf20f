package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// proxyAnswers are the kinds of answers that are counted.
var proxyAnswers = []string{proxy.Passed, proxy.Tunneled, "rule", "unreachable", "tunnel", "target", "token", "busy",
	"unavailable", "failure"}

// watched serves on l what watches this proxy, while s drains too: its /readyz is 503 when ctx has ended.
func (p *proxying) watched(ctx context.Context, s *proxy.Server, g *site.Gate, l net.Listener) *http.Server {
	m := newProxyMetrics(s, g)
	guard := web.Guard{Loopback: isLoopback(l), Token: s.Guard.Token}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(ctx, r, g); err != nil {
			err.Write(w)
			return
		}
		io.WriteString(w, "ok\n")
	})
	metrics := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if err := guard.CheckToken(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer") // RFC 9110 §15.5.2
			err.Write(w)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			if err := guard.CheckHost(r); err != nil {
				err.Write(w)
				return
			}
			mux.ServeHTTP(w, r)
		}),
		ReadTimeout: p.bounds.Ask, WriteTimeout: 3 * p.bounds.Ask, IdleTimeout: p.bounds.Idle,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	go server.Serve(l)
	return server
}

// ready returns why requests should go to another proxy, or nil.
func ready(ctx context.Context, r *http.Request, g *site.Gate) *web.Problem {
	if ctx.Err() != nil {
		return unavailable("the proxy is ending")
	}
	within, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := g.Ping(within); err != nil {
		return unavailable("the store of turns is away")
	}
	return nil
}

// newProxyMetrics counts what s answers and what g reads. Those of its series that serve has, too, are the same.
func newProxyMetrics(s *proxy.Server, g *site.Gate) *metrics {
	m := &metrics{registry: newRegistry()}
	answers := newCounters(m.registry, "robots_proxy_answers_total", "Answers to clients.", "kind", proxyAnswers)
	s.Count = func(kind string) { answers.WithLabelValues(kind).Inc() }
	m.fetches = newCounters(m.registry, "robots_fetches_total", "Times robots.txt was read.", "outcome", fetchOutcomes)
	m.storeFailures = newCounters(m.registry, "robots_store_failures_total", "Calls of the store that failed.", "op", storeOps)
	m.fetchTime = promauto.With(m.registry).NewHistogram(prometheus.HistogramOpts{Name: "robots_fetch_seconds",
		Help: "Time to read robots.txt.", Buckets: []float64{.03, .1, .3, 1, 3, 10, 30, 100}})
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: "robots_proxy_underway",
		Help: "Requests and tunnels under way."}, func() float64 { return float64(s.Underway()) })
	m.watch(g.Cache)
	if g.Cache.Store != nil {
		g.Cache.Store = m.store(g.Cache.Store)
	}
	if g.Turns != nil {
		g.Pacer.Turns = countedTurns{g.Pacer.Turns, m}
	}
	g.Trace = &client.Trace{Fetched: func(_ context.Context, f client.FetchedInfo) { m.fetched(f.Result, f.Err, f.Took) }}
	return m
}
