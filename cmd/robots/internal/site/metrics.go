package site

// The series of /metrics that serve and proxy have in common: they have the same names and meanings in both,
// and README.md lists them. The stores are counted by wrappers, which know each kind of call.

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
)

// Metrics are what GET /metrics tells: of the process (go_* and process_*), of what a gate reads and of its stores, and
// what else is registered. No label has a value that a client or a site chooses.
type Metrics struct {
	http.Handler
	registry      *prometheus.Registry
	fetches       *prometheus.CounterVec
	fetchTime     prometheus.Histogram
	storeFailures *prometheus.CounterVec
}

// NewMetrics makes those of a gate. fetchTime is the help of robots_fetch_seconds.
func NewMetrics(fetchTime string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	m.fetches = m.Counters("robots_fetches_total", "Times robots.txt was read.", "outcome",
		answer.OutcomeRules, "unavailable", "unreachable", "given-up")
	m.fetchTime = m.Histogram("robots_fetch_seconds", fetchTime, .03, .1, .3, 1, 3, 10, 30, 100)
	m.storeFailures = m.Counters("robots_store_failures_total", "Calls of the store that failed.", "op",
		"get", "put", "lock", "reserve", "pause")
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

// Histogram counts times in seconds.
func (m *Metrics) Histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return promauto.With(m.registry).NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

// Gauge tells a value whenever it is asked for.
func (m *Metrics) Gauge(name, help string, value func() int64) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value()) })
}

// Watch tells of g, and wraps its stores: it must be called before g is asked, and after Share, which looks
// for the store of Redis itself. Its readings are for Fetched, which the Trace of g has to call.
func (m *Metrics) Watch(g *Gate) {
	m.Gauge("robots_cache_origins", "Origins in memory.", func() int64 { return int64(g.Cache.Stats().Origins) })
	m.Gauge("robots_cache_bytes", "Memory that they take.", func() int64 { return g.Cache.Stats().Bytes })
	if g.Turns != nil {
		g.Pacer.Turns = countedTurns{g.Pacer.Turns, m}
	}
	switch s := g.Cache.Store.(type) {
	case nil:
	case cache.Locker:
		g.Cache.Store = countedLocker{countedStore{g.Cache.Store, m}, s}
	default:
		g.Cache.Store = countedStore{s, m}
	}
}

// Fetched counts a reading of robots.txt. "given-up" is one without a result: all callers had left, no turn
// came in time, or the signature failed.
func (m *Metrics) Fetched(f client.FetchedInfo) {
	outcome := "given-up"
	if f.Err == nil {
		outcome = answer.OutcomeOf(f.Result)
	}
	m.fetches.WithLabelValues(outcome).Inc()
	m.fetchTime.Observe(f.Took.Seconds())
}

// failed counts a call of a store, if it failed. One whose client has gone did not.
func (m *Metrics) failed(ctx context.Context, op string, err error) {
	if err != nil && !errors.Is(err, cache.ErrMiss) && !errors.Is(ctx.Err(), context.Canceled) {
		m.storeFailures.WithLabelValues(op).Inc()
	}
}

// countedStore is a cache.Store with its failures counted. package cache looks for two more interfaces in a
// Store, io.Closer and Locker. A wrapper hides what it does not have, and one that claims to be a Locker has
// others wait, so there is a second type for those.
type countedStore struct {
	cache.Store
	metrics *Metrics
}

func (s countedStore) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := s.Store.Get(ctx, key)
	s.metrics.failed(ctx, "get", err)
	return data, err
}

func (s countedStore) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	err := s.Store.Put(ctx, key, data, ttl)
	s.metrics.failed(ctx, "put", err)
	return err
}

// Close closes the store, if there is anything to close: a directory has nothing.
func (s countedStore) Close() error {
	if c, ok := s.Store.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// countedLocker is a countedStore of a store that is a cache.Locker as well.
type countedLocker struct {
	countedStore
	locker cache.Locker
}

func (l countedLocker) Lock(ctx context.Context, key string, ttl time.Duration) (unlock func(), ok bool, err error) {
	unlock, ok, err = l.locker.Lock(ctx, key, ttl)
	l.metrics.failed(ctx, "lock", err)
	return unlock, ok, err
}

// countedTurns is a turns.Store with its failures counted.
type countedTurns struct {
	turns.Store
	metrics *Metrics
}

func (t countedTurns) Reserve(ctx context.Context, key string, delay, within time.Duration) (time.Duration, bool, error) {
	wait, ok, err := t.Store.Reserve(ctx, key, delay, within)
	t.metrics.failed(ctx, "reserve", err)
	return wait, ok, err
}

func (t countedTurns) Pause(ctx context.Context, key string, d time.Duration) (time.Duration, error) {
	rest, err := t.Store.Pause(ctx, key, d)
	t.metrics.failed(ctx, "pause", err)
	return rest, err
}
