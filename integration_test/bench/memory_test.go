package bench

import (
	"runtime"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/temoto/robotstxt"
)

// retained returns what one result of f keeps alive, in bytes and objects.
func retained(f func() any) (bytes, objects float64) {
	const copies = 32
	kept := make([]any, copies)
	before := live()
	for i := range kept {
		kept[i] = f()
	}
	after := live()
	runtime.KeepAlive(kept)
	return float64(after.HeapAlloc-before.HeapAlloc) / copies, float64(after.HeapObjects-before.HeapObjects) / copies
}

func live() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC() // the parser's scratch space survives one
	runtime.ReadMemStats(&m)
	return m
}

// BenchmarkRetained prints what an origin costs in memory: "all" with every group
// of its file, "one" with the group of one crawler, as a share of temoto's.
func BenchmarkRetained(b *testing.B) {
	sites := sites(b)
	for b.Loop() {
		var all, one, them, objects []float64
		for _, s := range sites {
			o, n := retained(func() any { return policy.Parse(s.body) })
			all, objects = append(all, o), append(objects, n)
			o, _ = retained(func() any { return policy.Parse(s.body).Combined("ExampleBot") })
			one = append(one, o)
			o, _ = retained(func() any { r, _ := robotstxt.FromBytes(s.body); return r })
			them = append(them, o)
		}
		for _, c := range []struct {
			name string
			of   func([]float64) float64
		}{{"median", median}, {"mean", mean}, {"p99", func(s []float64) float64 { return quantile(s, 0.99) }}} {
			t := c.of(them)
			b.ReportMetric(t, "B-temoto-"+c.name)
			b.ReportMetric(100*c.of(all)/t, "%-all-"+c.name)
			b.ReportMetric(100*c.of(one)/t, "%-one-"+c.name)
		}
		b.ReportMetric(mean(objects), "objects")
		worst := 0.0
		for i, s := range sites {
			if len(s.body) > 4096 { // below, the fixed part is all there is
				worst = max(worst, all[i]/float64(len(s.body)))
			}
		}
		b.ReportMetric(worst, "worst-per-byte")
	}
	b.ReportMetric(0, "ns/op")
}

func mean(s []float64) float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}
