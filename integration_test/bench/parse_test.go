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

func BenchmarkParse(b *testing.B) {
	all := sites(b)
	var real, noise []*site
	for _, s := range all {
		if s.html {
			noise = append(noise, s)
		} else {
			real = append(real, s)
		}
	}
	for _, c := range []struct {
		name  string
		sites []*site
	}{
		{"real", real},
		{"all", all},
		{"html", noise},
		{"median", real[len(real)/2 : len(real)/2+1]},
		{"largest", []*site{{body: largest()}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			size := 0
			for _, s := range c.sites {
				size += len(s.body)
			}
			rounds := 1 + 2_000_000/(size+1)
			b.Run("race", func(b *testing.B) {
				race(b, func() {
					for range rounds {
						parseAll(c.sites)
					}
				}, func() {
					for range rounds {
						parseAllTemoto(c.sites)
					}
				})
			})
			b.Run("policy", func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					parseAll(c.sites)
				}
			})
		})
	}
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
