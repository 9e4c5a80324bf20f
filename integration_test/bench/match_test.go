package bench

import (
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/temoto/robotstxt"
)

var (
	decision policy.Decision
	allowed  bool
)

// BenchmarkDecidePerFile asks each file the questions of the corpus, the crawler's
// group found before, and prints the distribution over the files.
func BenchmarkDecidePerFile(b *testing.B) {
	all := sites(b)
	var us, them, ratios []float64
	for b.Loop() {
		us, them, ratios = us[:0], them[:0], ratios[:0]
		for _, s := range all {
			groups := make([]policy.Group, len(s.questions))
			theirs := make([]*robotstxt.Group, len(s.questions))
			for i, q := range s.questions {
				groups[i], theirs[i] = s.policy.Group(q.token), s.temoto.FindGroup(q.token)
			}
			const rounds = 20
			each := func(f func(i int, target string)) float64 {
				return stopwatch(func() {
					for range rounds {
						for i, q := range s.questions {
							f(i, q.target)
						}
					}
				}) / rounds / float64(len(s.questions))
			}
			var r, x, y []float64
			for range 9 {
				u := each(func(i int, target string) { decision = groups[i].Decide(target) })
				v := each(func(i int, target string) { allowed = theirs[i].Test(target) })
				x, y, r = append(x, u), append(y, v), append(r, v/u)
			}
			us, them, ratios = append(us, median(x)), append(them, median(y)), append(ratios, median(r))
		}
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}} {
		b.ReportMetric(quantile(us, q.q), "ns-policy-"+q.name)
		b.ReportMetric(quantile(them, q.q), "ns-temoto-"+q.name)
		b.ReportMetric(quantile(ratios, q.q), "x-"+q.name)
	}
	b.ReportMetric(0, "ns/op")
}
