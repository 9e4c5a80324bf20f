package bench

import (
	"flag"
	"runtime"
	"testing"
	"time"

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

// With 200,000 origins the peer takes some 4 GB.
var held = flag.Int("origins", 10_000, "how many origins BenchmarkCollect holds")

// BenchmarkCollect times a full garbage collection while a crawler holds the
// rules of many origins.
func BenchmarkCollect(b *testing.B) {
	sites := sites(b)
	collect := func(f func(*site) any) float64 {
		kept := make([]any, *held)
		for i := range kept {
			kept[i] = f(sites[i%len(sites)])
		}
		runtime.GC()
		var took []float64
		for range 5 {
			start := time.Now()
			runtime.GC()
			took = append(took, float64(time.Since(start)))
		}
		runtime.KeepAlive(kept)
		return median(took)
	}
	for b.Loop() {
		base := collect(func(*site) any { return nil })
		us := collect(func(s *site) any { return policy.Parse(s.body).Combined("ExampleBot") }) - base
		them := collect(func(s *site) any { r, _ := robotstxt.FromBytes(s.body); return r }) - base
		b.ReportMetric(us/1e6, "ms-policy")
		b.ReportMetric(them/1e6, "ms-temoto")
		b.ReportMetric(100*us/them, "%-temoto")
	}
	b.ReportMetric(0, "ns/op")
}
