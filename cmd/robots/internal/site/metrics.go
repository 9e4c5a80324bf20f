package site

// The series of /metrics that serve and proxy have in common: they have the same names and meanings in both,
// and README.md lists them.

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
)

// Metrics are what GET /metrics tells: of the process (go_* and process_*), of what a gate reads, and what else is
// registered. No label has a value that a client or a site chooses.
type Metrics struct {
	http.Handler
	registry  *prometheus.Registry
	fetches   *prometheus.CounterVec
	fetchTime prometheus.Histogram
}

// NewMetrics makes those of a gate. fetchTime is the help of robots_fetch_seconds.
func NewMetrics(fetchTime string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	m.fetches = m.Counters("robots_fetches_total", "Times robots.txt was read.", "outcome",
		answer.OutcomeRules, "unavailable", "unreachable", "given-up")
	m.fetchTime = m.Histogram("robots_fetch_seconds", fetchTime, .03, .1, .3, 1, 3, 10, 30, 100)
	return m
}

// Counters are counters by one label. Each of its values is there from the start: what has not happened yet is a zero.
func (m *Metrics) Counters(name, help, label string, values ...string) *prometheus.CounterVec {
	c := promauto.With(m.registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, v := range values {
		c.WithLabelValues(v)
	}
	return c
}

func (m *Metrics) Histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return promauto.With(m.registry).NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func (m *Metrics) Gauge(name, help string) prometheus.Gauge {
	return promauto.With(m.registry).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// Tell tells a value whenever it is asked for.
func (m *Metrics) Tell(name, help string, value func() int64) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value()) })
}

// Watch tells of g. Its readings are for Fetched, which the Trace of g has to call.
func (m *Metrics) Watch(g *Gate) {
	m.Tell("robots_cache_origins", "Origins in memory.", func() int64 { return int64(g.Cache.Stats().Origins) })
	m.Tell("robots_cache_bytes", "Memory that they take.", func() int64 { return g.Cache.Stats().Bytes })
	promauto.With(m.registry).NewCounterFunc(
		prometheus.CounterOpts{Name: "robots_store_failures_total", Help: "Calls of the store that failed or took too long."},
		func() float64 { return float64(g.Cache.Stats().StoreErrors) })
}

// Fetched counts a reading of robots.txt. "given-up" is one without a result: all callers had left, no turn
// came in time, or the signature failed.
func (m *Metrics) Fetched(_ context.Context, _ fetch.Origin, r *fetch.Result, took time.Duration, err error) {
	outcome := "given-up"
	if err == nil {
		outcome = answer.OutcomeOf(r)
	}
	m.fetches.WithLabelValues(outcome).Inc()
	m.fetchTime.Observe(took.Seconds())
}
