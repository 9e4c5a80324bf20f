package serve

// The series of /metrics that only serve has. site.Metrics has those that the proxy has as well.

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
)

// metrics are what a Service counts. The handlers use them concurrently. No label has a value that a stranger chooses:
// each would be a series of its own, for as long as the service runs.
type metrics struct {
	*site.Metrics
	decisions    *prometheus.CounterVec
	decisionTime prometheus.Histogram
	turnsWaiting atomic.Int64
	turnTime     prometheus.Histogram
	responses    *prometheus.CounterVec
	underway     atomic.Int64
}

func newMetrics(g *site.Gate) *metrics {
	m := &metrics{Metrics: site.NewMetrics("Time to read robots.txt; for a turn, with that until it may be read.")}
	m.Watch(g)
	m.decisions = m.Counters("robots_decisions_total", "Decisions about URLs of sites.", "outcome",
		"allowed", "refused", "unreachable", "malformed")
	m.decisionTime = m.Histogram("robots_decision_seconds",
		"Time to decide, with that to read robots.txt. Lines of streams are left out.", .0001, .001, .01, .1, 1, 10, 100)
	m.Gauge("robots_turns_waiting", "Questions that wait for a turn.", m.turnsWaiting.Load)
	m.turnTime = m.Histogram("robots_turn_wait_seconds",
		"Time waited for a turn, whether or not it came.", .1, .3, 1, 3, 10, 30, 100)
	m.responses = m.Counters("robots_http_responses_total", "Answers to requests.", "status", "2xx", "3xx", "4xx", "429", "5xx")
	m.Gauge("robots_http_requests_underway", "Requests that are being read, waited for or answered.", m.underway.Load)
	return m
}

// count counts what next answers, by the class of the status; a 429 counts by itself, since it says that a bound is
// too narrow, and no other 4xx does.
func (m *metrics) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.underway.Add(1)
		said := &statusWriter{w, http.StatusOK}
		defer func() { // an answer that breaks off counts, too
			m.underway.Add(-1)
			class := fmt.Sprintf("%dxx", said.status/100)
			if said.status == http.StatusTooManyRequests {
				class = "429"
			}
			m.responses.WithLabelValues(class).Inc()
		}()
		next.ServeHTTP(said, r)
	})
}

// statusWriter keeps the status of an answer. A handler that writes none has answered 200.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader keeps the last status: one of 1xx may come before it.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController, by which handlers set their deadlines.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// decided counts decisions that were asked for at begin, each by its outcome (answer.Verdict.Outcome).
func (m *metrics) decided(begin time.Time, outcomes ...string) {
	m.decisionTime.Observe(time.Since(begin).Seconds())
	for _, o := range outcomes {
		m.decisions.WithLabelValues(o).Inc()
	}
}
