package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
)

// scrape reads /metrics as Prometheus does.
func (v *serving) scrape() map[string]*dto.MetricFamily {
	v.t.Helper()
	res, text := v.do("GET", "/metrics", "")
	media := res.Header.Get("Content-Type")
	if res.StatusCode != 200 || !strings.HasPrefix(media, "text/plain; version=0.0.4") {
		v.t.Fatalf("%s, %s", res.Status, media)
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		v.t.Fatal(err)
	}
	return families
}

// standard reports whether a metric is one that every program in Go has.
func standard(name string) bool {
	return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
}

// values are the metrics of our own as lines "name{label}", with what they count.
func (v *serving) values() map[string]float64 {
	all := map[string]float64{}
	for name, f := range v.scrape() {
		if standard(name) {
			continue
		}
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += fmt.Sprintf("{%s=%s}", l.GetName(), l.GetValue())
			}
			switch {
			case m.Counter != nil:
				all[key] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[key] = m.Gauge.GetValue()
			case m.Histogram != nil:
				all[key] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return all
}

// Each metric counts what it says, and is there before anything has happened.
func TestServeMetrics(t *testing.T) {
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, schemaSite))
	const (
		json   = "Content-Type: application/json"
		ndjson = "Content-Type: application/x-ndjson"
	)
	before := v.values()
	for _, c := range []struct {
		method, path, body, field string
		adds                      string // name and difference, one behind the other
	}{
		{"GET", "/v1/decide?url=http://rules.example/", "", "", "robots_decisions_total{outcome=allowed} 1 " +
			"robots_decision_seconds 1 robots_fetches_total{outcome=rules} 1 robots_fetch_seconds 1 robots_cache_origins 1"},
		{"GET", "/v1/decide?url=http://rules.example/private", "", "",
			"robots_decisions_total{outcome=refused} 1 robots_decision_seconds 1"},
		{"GET", "/v1/decide?url=http://missing.example/", "", "",
			"robots_decisions_total{outcome=allowed} 1 robots_decision_seconds 1 " +
				"robots_fetches_total{outcome=unavailable} 1 robots_fetch_seconds 1 robots_cache_origins 1"},
		{"GET", "/v1/decide?url=http://down.example/", "", "",
			"robots_decisions_total{outcome=unreachable} 1 robots_decision_seconds 1 " +
				"robots_fetches_total{outcome=unreachable} 1 robots_fetch_seconds 1 robots_cache_origins 1"},
		{"GET", "/v1/decide?as=all&url=http://rules.example/private", "", "", "robots_decisions_total{outcome=refused} 5 " +
			"robots_decision_seconds 1 robots_fetches_total{outcome=rules} 1 robots_fetch_seconds 1"},
		{"GET", "/v1/robots?origin=http://rules.example/", "", "", ""}, // known for a minute
		{"POST", "/v1/decide", "http://rules.example/\nhttp://rules.example/private\nfoo bar\n", ndjson,
			"robots_decisions_total{outcome=allowed} 1 robots_decisions_total{outcome=refused} 1 " +
				"robots_decisions_total{outcome=malformed} 1"},
		{"GET", "/authz", "", "X-Original-URL: http://rules.example/private",
			"robots_decisions_total{outcome=refused} 1 robots_decision_seconds 1"},
		{"POST", "/v1/turns", `{"url":"http://short.example/","wait":"0s"}`, json,
			"robots_decisions_total{outcome=allowed} 1 robots_decision_seconds 1 robots_fetches_total{outcome=rules} 1 " +
				"robots_fetch_seconds 1 robots_cache_origins 1 robots_turn_wait_seconds 1"},
		{"POST", "/v1/match", `{"robots":"","urls":["/"]}`, json, ""},
		{"GET", "/v1/decide", "", "", ""}, // no question
		{"GET", "/v1/nothing-of-the-kind", "", "", ""},
	} {
		res, answer := v.do(c.method, c.path, c.body, c.field)
		after := v.values()
		want := maps.Clone(before)
		want["robots_http_responses_total{code=200}"]++ // what was counted before
		want[fmt.Sprintf("robots_http_responses_total{code=%d}", res.StatusCode)]++
		fields := strings.Fields(c.adds)
		for i := 0; i < len(fields); i += 2 {
			n, _ := strconv.ParseFloat(fields[i+1], 64)
			want[fields[i]] += n
		}
		const bytes = "robots_cache_bytes"
		if grew := after[bytes] > before[bytes]; grew != (want["robots_cache_origins"] > before["robots_cache_origins"]) {
			t.Errorf("%s %s: %s: from %v to %v", c.method, c.path, bytes, before[bytes], after[bytes])
		}
		want[bytes] = after[bytes]
		if !maps.Equal(after, want) {
			t.Errorf("%s %s: %s\ngot  %v\nwant %v", c.method, c.path, answer, after, want)
		}
		before = after
	}
}

// README.md lists the metrics and the values of their labels; there are no others.
func TestServeMetricsAreThoseOfTheReadme(t *testing.T) {
	var want []string
	rows := regexp.MustCompile("(?m)^\\| `(robots_[a-z_]+)(?:\\{([a-z]+)\\})?` \\| (.*) \\|$")
	for _, row := range rows.FindAllStringSubmatch(string(read(t, "README.md")), -1) {
		name, label, meaning := row[1], row[2], row[3]
		if label == "" {
			want = append(want, name)
			continue
		}
		values, _, _ := strings.Cut(meaning, ":")
		for value := range strings.SplitSeq(values, ", ") {
			want = append(want, fmt.Sprintf("%s{%s=%s}", name, label, strings.Trim(value, "`")))
		}
	}
	v := startServe(t, serve.UsualLimits())
	got := slices.Sorted(maps.Keys(v.values()))
	slices.Sort(want)
	for _, name := range []string{"go_memstats_heap_alloc_bytes", "process_resident_memory_bytes", "process_cpu_seconds_total"} {
		if v.scrape()[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if !slices.Equal(got, want) || len(got) < 15 {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
