package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/temoto/robotstxt"
)

var (
	decision policy.Decision
	allowed  bool
)

// BenchmarkDecidePerFile asks each file the questions of the corpus, the crawler's
// group found before, and prints the distribution over the files. Beside it stands the floor: what
// temoto takes beside our answer from a file that has only the rule which decides.
func BenchmarkDecidePerFile(b *testing.B) {
	all := sites(b)
	var us, them, ratios, floors []float64
	for b.Loop() {
		us, them, ratios, floors = us[:0], them[:0], ratios[:0], floors[:0]
		for _, s := range all {
			groups := make([]policy.Group, len(s.questions))
			theirs := make([]*robotstxt.Group, len(s.questions))
			alone := make([]policy.Group, len(s.questions))
			for i, q := range s.questions {
				groups[i], theirs[i] = s.policy.Group(q.token), s.temoto.FindGroup(q.token)
				alone[i] = onlyRule(groups[i].Decide(q.target))
			}
			var r, x, y, f []float64
			for range 9 {
				const rounds = 20
				u := stopwatch(func() {
					for range rounds {
						for i, q := range s.questions {
							decision = groups[i].Decide(q.target)
						}
					}
				}) / rounds / float64(len(s.questions))
				v := stopwatch(func() {
					for range rounds {
						for i, q := range s.questions {
							allowed = theirs[i].Test(q.target)
						}
					}
				}) / rounds / float64(len(s.questions))
				w := stopwatch(func() {
					for range rounds {
						for i, q := range s.questions {
							decision = alone[i].Decide(q.target)
						}
					}
				}) / rounds / float64(len(s.questions))
				x, y, r, f = append(x, u), append(y, v), append(r, v/u), append(f, v/w)
			}
			us, them, ratios = append(us, median(x)), append(them, median(y)), append(ratios, median(r))
			floors = append(floors, median(f))
		}
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}} {
		b.ReportMetric(quantile(us, q.q), "ns-policy-"+q.name)
		b.ReportMetric(quantile(them, q.q), "ns-temoto-"+q.name)
		b.ReportMetric(quantile(ratios, q.q), "x-"+q.name)
		b.ReportMetric(quantile(floors, q.q), "x-one-rule-"+q.name)
	}
	b.ReportMetric(0, "ns/op")
}

// onlyRule is the group of a file that has the rule that decided and no other: the least that
// there is to do for the same answer.
func onlyRule(d policy.Decision) policy.Group {
	rule := "Disallow: " + d.Rule.Pattern
	if d.Rule.Allow {
		rule = "Allow: " + d.Rule.Pattern
	}
	return policy.Parse([]byte("User-agent: *\n" + rule + "\n")).Group("*")
}

// path77 is what the growth benchmarks ask for; no rule matches it.
var path77 = "/" + strings.Repeat("abcdefghi/", 7) + "x.html"

// BenchmarkDecideGrowth shows what a question costs as the rules become more.
func BenchmarkDecideGrowth(b *testing.B) {
	for _, shape := range []struct{ name, format string }{
		{"literal", "/section-%05d/page"},
		{"stem", "/dir%05d/*/x*.php"},
		{"leading", "/*?param%d="},
		{"suffix", "/*-p%d.html$"},
	} {
		for _, n := range []int{10, 100, 1_000, 10_000} {
			body := rules(n, shape.format)
			g := policy.Parse(body).Group("ExampleBot")
			data, err := robotstxt.FromBytes(body)
			if err != nil {
				b.Fatal(err)
			}
			theirs := data.FindGroup("ExampleBot")
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) { raceOne(b, g, theirs, path77) })
		}
	}
}

// BenchmarkDecideLargest asks the file of 31,843 rules.
func BenchmarkDecideLargest(b *testing.B) {
	g := policy.Parse(largest()).Group("ExampleBot")
	data, err := robotstxt.FromBytes(largest())
	if err != nil {
		b.Fatal(err)
	}
	theirs := data.FindGroup("ExampleBot")
	for _, target := range []string{"/10000/index.html", "/" + fmt.Sprintf("%05x", 7*20_000) + "/a?b=c"} {
		b.Run(target, func(b *testing.B) { raceOne(b, g, theirs, target) })
	}
}

func raceOne(b *testing.B, ours policy.Group, theirs *robotstxt.Group, target string) {
	const rounds, fewer = 2_000, 20
	var x, y, r []float64
	for b.Loop() {
		u := stopwatch(func() {
			for range rounds {
				decision = ours.Decide(target)
			}
		}) / rounds
		v := stopwatch(func() {
			for range fewer {
				allowed = theirs.Test(target)
			}
		}) / fewer
		x, y, r = append(x, u), append(y, v), append(r, v/u)
	}
	b.ReportMetric(median(x), "ns-policy")
	b.ReportMetric(median(y), "ns-temoto")
	b.ReportMetric(median(r), "x-temoto")
	b.ReportMetric(0, "ns/op")
}
