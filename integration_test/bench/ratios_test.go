package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/temoto/robotstxt"
)

// BenchmarkRatios prints what questions cost as ratios of two sides that took turns: the
// median, and as p10 and p90 how far the rounds lie apart. DecidePerFile prints that of real
// files.
func BenchmarkRatios(b *testing.B) {
	ten := rules(10, "/section-%05d/page")
	theirs, err := robotstxt.FromBytes(ten)
	if err != nil {
		b.Fatal(err)
	}
	peer, ours := theirs.FindGroup("ExampleBot"), policy.Parse(ten).Group("ExampleBot")
	b.Run("peer/ten plain rules", func(b *testing.B) {
		ratio(b, func() { allowed = peer.Test(path77) }, func() { decision = ours.Decide(path77) })
	})
	for _, c := range []struct{ name, format, target string }{
		{"literal", "/section-%05d/page", path77},
		{"literal, nearly", "/section-%05d/page", "/section-00004/pages/of/a/long/path/that/goes/on/and/on"},
		{"stem", "/dir%05d/*/x*.php", path77},
		{"leading", "/*?param%d=", path77},
		{"leading, nearly", "/*?param%d=", "/search/of/some/kind?param=4&param12345=6&sort=up&other=param3"},
		{"suffix", "/*-p%d.html$", path77},
		{"suffix, nearly", "/*-p%d.html$", "/articles/of-the-year/a-long-title-of-some-words-p12345.htm"},
	} {
		few, many := policy.Parse(rules(10, c.format)).Group("a"), policy.Parse(rules(10_000, c.format)).Group("a")
		b.Run("10,000 to 10/"+c.name, func(b *testing.B) {
			ratio(b, func() { decision = many.Decide(c.target) }, func() { decision = few.Decide(c.target) })
		})
	}
	worst := policy.Parse(worstFile()).Group("a")
	b.Run("16 to 8 KiB/worst file", func(b *testing.B) {
		long, short := worstTarget(16<<10), worstTarget(8<<10)
		var x, y, r []float64
		for b.Loop() {
			u, v := stopwatch(func() { decision = worst.Decide(long) }), stopwatch(func() { decision = worst.Decide(short) })
			x, y, r = append(x, u), append(y, v), append(r, u/v)
		}
		report(b, x, y, r)
	})
}

// ratio reports how many times as long first takes as second.
func ratio(b *testing.B, first, second func()) {
	const rounds = 2_000
	var x, y, r []float64
	for b.Loop() {
		u := stopwatch(func() {
			for range rounds {
				first()
			}
		}) / rounds
		v := stopwatch(func() {
			for range rounds {
				second()
			}
		}) / rounds
		x, y, r = append(x, u), append(y, v), append(r, u/v)
	}
	report(b, x, y, r)
}

func report(b *testing.B, x, y, r []float64) {
	b.ReportMetric(median(x), "ns-first")
	b.ReportMetric(median(y), "ns-second")
	b.ReportMetric(median(r), "x-p50")
	b.ReportMetric(quantile(r, 0.1), "x-p10")
	b.ReportMetric(quantile(r, 0.9), "x-p90")
	b.ReportMetric(0, "ns/op")
}

// worstFile and worstTarget are the worst that a search for it found: see
// TestTheWorstQuestion of package policy.
func worstFile() []byte {
	b := bytes.NewBufferString("user-agent:*\n")
	for i := 0; b.Len() < 500<<10-200; i++ {
		b.WriteString("allow:*a")
		for n, j := i, 0; j < 11 || n > 0; j++ {
			b.WriteByte("aab"[n%3])
			n /= 3
		}
		b.WriteString("c\n")
	}
	return b.Bytes()
}

func worstTarget(n int) string {
	const unit, end = "aaaaaaaabaaaaaaaaaabababbaaaabbababaabbaabaababaaababbbabacabaabaab", "aaabbaa"
	return fmt.Sprintf("/%s%s", strings.Repeat(unit, n/len(unit)+1)[:n-1-len(end)], end)
}
