package serve

// The series of /metrics that only serve has. site.Metrics has those that the proxy has as well.

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
)

// metrics are what a Service counts. The handlers use them concurrently. No label has a value that a stranger chooses:
// each would be a series of its own, for as long as the service runs.
type metrics struct {
	*site.Metrics
	decisions    *prometheus.CounterVec
	decisionTime prometheus.Histogram
	turnsWaiting prometheus.Gauge
	turnTime     prometheus.Histogram
	responses    *prometheus.CounterVec
	underway     prometheus.Gauge
}

func newMetrics(g *site.Gate) *metrics {
	m := &metrics{Metrics: site.NewMetrics("Time to read robots.txt; for a turn, with that until it may be read.")}
	m.Watch(g)
	m.decisions = m.Counters("robots_decisions_total", "Decisions about URLs of sites.", "outcome",
		"allowed", "refused", "unreachable", "malformed")
	m.decisionTime = m.Histogram("robots_decision_seconds",
		"Time to decide, with that to read robots.txt. Lines of streams are left out.", .0001, .001, .01, .1, 1, 10, 100)
	m.turnsWaiting = m.Gauge("robots_turns_waiting", "Questions that wait for a turn.")
	m.turnTime = m.Histogram("robots_turn_wait_seconds",
		"Time waited for a turn, whether or not it came.", .1, .3, 1, 3, 10, 30, 100)
	m.responses = m.Counters("robots_http_responses_total", "Answers to requests.", "code", "200", "429")
	m.underway = m.Gauge("robots_http_requests_underway", "Requests that are being read, waited for or answered.")
	return m
}

// count counts what next answers, unless the answer breaks off.
func (m *metrics) count(next http.Handler) http.Handler {
	return promhttp.InstrumentHandlerInFlight(m.underway, promhttp.InstrumentHandlerCounter(m.responses, next))
}

// decided counts decisions that were asked for at begin, each by its outcome (answer.Verdict.Outcome).
func (m *metrics) decided(begin time.Time, outcomes ...string) {
	m.decisionTime.Observe(time.Since(begin).Seconds())
	for _, o := range outcomes {
		m.decisions.WithLabelValues(o).Inc()
	}
}
