package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// newRegistry has what each program that runs on tells of itself: go_* and process_*.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// newCounters are counters by one label. Each of its values is there from the start: what has not happened yet is
// a zero.
func newCounters(in *prometheus.Registry, name, help, label string, values []string) *prometheus.CounterVec {
	c := promauto.With(in).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, v := range values {
		c.WithLabelValues(v)
	}
	return c
}
