package main

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/robotsgate/robotsgate/client"
)

// trace counts in r. No label holds a host or a URL: a crawler meets millions of them,
// and each would be a time series of its own.
func trace(r prometheus.Registerer) *client.Trace {
	in := promauto.With(r)
	decisions := in.NewCounterVec(prometheus.CounterOpts{
		Name: "robots_decisions_total", Help: "Requests and questions decided.",
	}, []string{"allowed", "reason"})
	unanswered := in.NewCounter(prometheus.CounterOpts{
		Name: "robots_unanswered_total", Help: "Requests and questions without a decision.",
	})
	fetches := in.NewCounterVec(prometheus.CounterOpts{
		Name: "robots_fetches_total", Help: "Times robots.txt was read. Status 0: no answer came.",
	}, []string{"kind", "status"})
	fetchSeconds := in.NewHistogram(prometheus.HistogramOpts{
		Name: "robots_fetch_seconds", Help: "Time to read robots.txt.", Buckets: []float64{.1, 1, 10},
	})
	waits := in.NewHistogram(prometheus.HistogramOpts{
		Name: "robots_wait_seconds", Help: "Time requests were held back for.", Buckets: []float64{.1, 1, 10},
	})
	return &client.Trace{
		Decided: func(_ context.Context, d client.DecidedInfo) {
			if d.Reason == 0 {
				unanswered.Inc()
				return
			}
			reason, _ := d.Reason.MarshalText() // for machines; String is for people
			decisions.WithLabelValues(strconv.FormatBool(d.Allowed), string(reason)).Inc()
		},
		Fetched: func(_ context.Context, f client.FetchedInfo) {
			kind, status := "first", "given up"
			if f.Refresh {
				kind = "again"
			}
			if f.Result != nil {
				status = strconv.Itoa(f.Result.StatusCode)
			}
			fetches.WithLabelValues(kind, status).Inc()
			fetchSeconds.Observe(f.Took.Seconds())
		},
		Waited: func(_ context.Context, w client.WaitedInfo) { waits.Observe(w.Took.Seconds()) },
	}
}
