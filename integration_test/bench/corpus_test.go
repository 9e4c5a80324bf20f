package bench

import (
	"bytes"
	"cmp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/temoto/robotstxt"
)

// site is a file of the corpus with the questions about it.
type site struct {
	name      string
	body      []byte
	html      bool
	questions []question
	policy    *policy.Policy
	temoto    *robotstxt.RobotsData
}

type question struct{ token, target string }

// sites returns the files of the corpus that temoto reads at all, by size.
func sites(tb testing.TB) []*site {
	byName := map[string]*site{}
	var all []*site
	for name, body := range vectors.Corpus(tb) {
		t, err := robotstxt.FromBytes(body)
		if err != nil {
			continue
		}
		s := &site{name: name, body: body, html: isHTML(body), policy: policy.Parse(body), temoto: t}
		all, byName[name] = append(all, s), s
	}
	for _, f := range vectors.Queries(tb) {
		if s := byName[f.File]; s != nil && len(f.Agents) == 1 {
			s.questions = append(s.questions, question{f.Agents[0], vectors.Target(f.URL)})
		}
	}
	slices.SortFunc(all, func(a, b *site) int {
		return cmp.Or(len(a.body)-len(b.body), strings.Compare(a.name, b.name))
	})
	return all
}

// isHTML reports whether a file has no user-agent line or opens as a page does.
func isHTML(body []byte) bool {
	return !bytes.Contains(bytes.ToLower(body), []byte("user-agent")) || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// race measures ours and theirs in turns and reports the medians.
func race(b *testing.B, ours, theirs func()) {
	b.Helper()
	var us, them, ratio []float64
	for b.Loop() {
		runtime.GC() // the garbage of one side is none of the other's business
		x := stopwatch(ours)
		runtime.GC()
		y := stopwatch(theirs)
		us, them, ratio = append(us, x), append(them, y), append(ratio, y/x)
	}
	b.ReportMetric(median(us), "ns-policy")
	b.ReportMetric(median(them), "ns-temoto")
	b.ReportMetric(median(ratio), "x-temoto")
	b.ReportMetric(slices.Min(them)/slices.Min(us), "x-best")
	b.ReportMetric(0, "ns/op") // of both sides together: says nothing
}

func stopwatch(f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start))
}

func median(s []float64) float64 { return quantile(s, 0.5) }

func quantile(s []float64, q float64) float64 {
	s = slices.Sorted(slices.Values(s))
	return s[int(q*float64(len(s)-1))]
}
