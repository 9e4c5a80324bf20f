package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
)

// metrics is what GET /metrics tells. No label has a value that a client or a site chooses.
type metrics struct {
	http.Handler
	registry *prometheus.Registry

	decisions     *prometheus.CounterVec
	decisionTime  prometheus.Histogram
	fetches       *prometheus.CounterVec
	fetchTime     prometheus.Histogram
	storeFailures *prometheus.CounterVec
	turnsWaiting  prometheus.Gauge
	turnTime      prometheus.Histogram
	responses     *prometheus.CounterVec
	underway      prometheus.Gauge
}

// The values of labels. All are there from the start: what has not happened yet is a zero.
var (
	decisionOutcomes = []string{"allowed", "refused", "unreachable", "malformed"}
	fetchOutcomes    = []string{answer.OutcomeRules, "unavailable", "unreachable", "given-up"}
	storeOps         = []string{"get", "put", "lock", "take", "tell"}
	statusClasses    = []string{"2xx", "3xx", "4xx", "429", "5xx"}
)

func newMetrics() *metrics {
	m := &metrics{registry: newRegistry()}
	in := promauto.With(m.registry)
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return in.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m.decisions = newCounters(m.registry, "robots_decisions_total", "Decisions about URLs of sites.", "outcome", decisionOutcomes)
	m.decisionTime = histogram("robots_decision_seconds",
		"Time to decide, with that to read robots.txt. Lines of streams are left out.", .0001, .001, .01, .1, 1, 10, 100)
	m.fetches = newCounters(m.registry, "robots_fetches_total", "Times robots.txt was read.", "outcome", fetchOutcomes)
	m.fetchTime = histogram("robots_fetch_seconds",
		"Time to read robots.txt; for a turn, with that until it may be read.", .03, .1, .3, 1, 3, 10, 30, 100)
	m.storeFailures = newCounters(m.registry, "robots_store_failures_total", "Calls of the store that failed.", "op", storeOps)
	m.turnsWaiting = in.NewGauge(prometheus.GaugeOpts{
		Name: "robots_turns_waiting", Help: "Questions that wait for a turn.",
	})
	m.turnTime = histogram("robots_turn_wait_seconds",
		"Time waited for a turn, whether or not it came.", .1, .3, 1, 3, 10, 30, 100)
	m.Handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// watch tells of the size of c.
func (m *metrics) watch(c *cache.Cache) {
	m.gauge("robots_cache_origins", "Origins in memory.", func() int64 { return int64(c.Stats().Origins) })
	m.gauge("robots_cache_bytes", "Memory that they take.", func() int64 { return c.Stats().Bytes })
}

// watchService tells of what v holds for its clients.
func (m *metrics) watchService(v *service) {
	m.responses = newCounters(m.registry, "robots_http_responses_total", "Answers to requests.", "status", statusClasses)
	m.underway = promauto.With(m.registry).NewGauge(prometheus.GaugeOpts{
		Name: "robots_http_requests_underway", Help: "Requests that are being read, waited for or answered.",
	})
	m.gauge("robots_work_bytes", "Memory admitted for bodies, files and answers.",
		func() int64 { return v.work.Held() + v.small.Held() + v.policies.Held() })
	m.gauge("robots_spool_bytes", "Room taken on disk by bodies and answers of slow clients.", v.spool.Held)
	m.gauge("robots_streams_underway", "Streams of POST /v1/decide.", func() int64 { return int64(len(v.streams)) })
}

func (m *metrics) gauge(name, help string, value func() int64) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value()) })
}

// count counts what next answers.
func (m *metrics) count(next http.Handler) http.Handler {
	classes := map[int]prometheus.Counter{}
	for _, class := range statusClasses {
		classes[int(class[0]-'0')] = m.responses.WithLabelValues(class)
	}
	classes[4], classes[http.StatusTooManyRequests] = m.responses.WithLabelValues("4xx"), m.responses.WithLabelValues("429")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.underway.Inc()
		said := &statusWriter{w, http.StatusOK}
		defer func() {
			m.underway.Dec()
			if c := classes[said.status]; c != nil {
				c.Inc()
			} else {
				classes[said.status/100].Inc()
			}
		}()
		next.ServeHTTP(said, r)
	})
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// decided counts decisions that were asked for at a time.
func (m *metrics) decided(begin time.Time, outcomes ...string) {
	m.decisionTime.Observe(time.Since(begin).Seconds())
	for _, o := range outcomes {
		m.decisions.WithLabelValues(o).Inc()
	}
}

// fetched counts a reading of robots.txt.
func (m *metrics) fetched(res *fetch.Result, err error, took time.Duration) {
	outcome := "given-up"
	if err == nil {
		outcome = answer.OutcomeOf(res)
	}
	m.fetches.WithLabelValues(outcome).Inc()
	m.fetchTime.Observe(took.Seconds())
}

// failed counts a call of a store, if it failed. One whose client has gone did not.
func (m *metrics) failed(ctx context.Context, op string, err error) {
	if err != nil && !errors.Is(err, cache.ErrMiss) && !errors.Is(ctx.Err(), context.Canceled) {
		m.storeFailures.WithLabelValues(op).Inc()
	}
}

// store returns s with its failures counted.
func (m *metrics) store(s cache.Store) cache.Store {
	counted := countedStore{s, m}
	if l, ok := s.(cache.Locker); ok {
		return countedLocker{counted, l}
	}
	return counted
}

type countedStore struct {
	cache.Store
	metrics *metrics
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

// Close closes the store: both that there are can be closed.
func (s countedStore) Close() error { return s.Store.(io.Closer).Close() }

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
	metrics *metrics
}

func (t countedTurns) Take(ctx context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	answer, err := t.Store.Take(ctx, origin, a)
	t.metrics.failed(ctx, "take", err)
	return answer, err
}

func (t countedTurns) Tell(ctx context.Context, origin string, n turns.Report) error {
	err := t.Store.Tell(ctx, origin, n)
	t.metrics.failed(ctx, "tell", err)
	return err
}
