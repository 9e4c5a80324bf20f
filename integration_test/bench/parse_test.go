package bench

import (
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/temoto/robotstxt"
)

// Results are kept so that the compiler keeps the work.
var (
	parsed       *policy.Policy
	parsedTemoto *robotstxt.RobotsData
)

// BenchmarkParse parses the real files, without those that are pages, and all of them.
func BenchmarkParse(b *testing.B) {
	all := sites(b)
	var real []*site
	for _, s := range all {
		if !s.html {
			real = append(real, s)
		}
	}
	b.Run("real", func(b *testing.B) {
		race(b, func() { parseAll(real) }, func() { parseAllTemoto(real) })
	})
	b.Run("all", func(b *testing.B) {
		race(b, func() { parseAll(all) }, func() { parseAllTemoto(all) })
	})
}

func parseAll(sites []*site) {
	for _, s := range sites {
		parsed = policy.Parse(s.body)
	}
}

func parseAllTemoto(sites []*site) {
	for _, s := range sites {
		parsedTemoto, _ = robotstxt.FromBytes(s.body)
	}
}

// BenchmarkParsePerFile prints the distribution of the ratios over the files.
func BenchmarkParsePerFile(b *testing.B) {
	all := sites(b)
	ratios := make([]float64, len(all))
	for b.Loop() {
		for i, s := range all {
			one := []*site{s}
			rounds := 1 + 20_000/(len(s.body)+1)
			var r []float64
			for range 5 {
				us := stopwatch(func() {
					for range rounds {
						parseAll(one)
					}
				})
				them := stopwatch(func() {
					for range rounds {
						parseAllTemoto(one)
					}
				})
				r = append(r, them/us)
			}
			ratios[i] = median(r)
		}
	}
	b.ReportMetric(quantile(ratios, 0.1), "x-p10")
	b.ReportMetric(quantile(ratios, 0.5), "x-p50")
	b.ReportMetric(quantile(ratios, 0.9), "x-p90")
	b.ReportMetric(0, "ns/op")
}
