// Package sides compares two ways to do one thing. Both run in one process and take turns, so whatever else the
// machine does meanwhile slows both.
package sides

import (
	"slices"
	"testing"
	"time"
)

// Compare runs both sides once in each round of b, and reports the median of the rounds' ratios, ours to theirs, with
// its quartiles. It also reports the median time of each side for one of n units. Each side returns what it took, so
// preparations need not count.
func Compare(b *testing.B, n int, ours, theirs func() time.Duration) {
	b.Helper()
	var first, second, ratios []float64
	for b.Loop() {
		var a, z time.Duration
		if len(ratios)%2 == 0 { // neither is always the one that finds the other's garbage
			a, z = ours(), theirs()
		} else {
			z, a = theirs(), ours()
		}
		first, second = append(first, float64(a)/float64(n)), append(second, float64(z)/float64(n))
		ratios = append(ratios, float64(a)/float64(z))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(first, 0.5), "ns-ours")
	b.ReportMetric(quantile(second, 0.5), "ns-theirs")
	b.ReportMetric(quantile(ratios, 0.5), "times")
	b.ReportMetric(quantile(ratios, 0.25), "times-q1")
	b.ReportMetric(quantile(ratios, 0.75), "times-q3")
}

// Took returns a side that does f and counts all of it.
func Took(f func()) func() time.Duration {
	return func() time.Duration {
		start := time.Now()
		f()
		return time.Since(start)
	}
}

func quantile(all []float64, q float64) float64 {
	slices.Sort(all)
	return all[int(q*float64(len(all)-1)+0.5)]
}
