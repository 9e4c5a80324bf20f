package lint_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// frequencies has the share of the 500 files of the shared corpus with a finding of a rule, in percent. The files were
// drawn in strata: in a collection of 4,231 real files, of which they are a part, long files and wildcards are rarer.
const frequencies = `
	RT004 2.6  RT005 0  RT006 0.8  RT007 51  RT008 6.8  RT011 1.8  RT012 3.4  RT013 1.4  RT015 0.2  RT101 0.2
	RT102 0.4  RT103 0  RT104 0.2  RT105 0.2  RT106 2.8  RT107 0  RT108 0  RT109 3.8  RT110 0  RT111 0.2  RT112 0
	RT114 0  RT201 0.2  RT202 4.6  RT203 22.2  RT204 2.8  RT205 2.6  RT206 6.2  RT207 5.4  RT208 6.4  RT209 2
	RT210 19  RT301 0.8  RT302 0  RT303 0.2  RT304 0.2  RT305 0  RT306 1  RT307 0  RT309 0.2  RT308 0.2  RT310 8.6
	RT401 0.2  RT402 11.2  RT403 11.2  RT404 5.6  RT407 1  RT408 0.2  RT409 0.6  RT411 0.6  RT412 0`

func TestFrequenciesOverTheCorpus(t *testing.T) {
	tier.Gate(t)
	long(t)
	files := vectors.Corpus(t)
	n := map[string]int{}
	for name, data := range files {
		check(t, name, data)
		seen := map[string]bool{}
		for _, f := range lint.File(data) {
			if !seen[f.ID] {
				seen[f.ID] = true
				n[f.ID]++
			}
		}
	}
	percent := func(id string) float64 { return 100 * float64(n[id]) / float64(len(files)) }
	for _, r := range lint.Rules() {
		if n[r.ID] > 0 {
			t.Logf("%s %-24s %5.1f%%", r.ID, r.Name, percent(r.ID))
		}
	}
	want := strings.Fields(frequencies)
	for i := 0; i < len(want); i += 2 {
		if got := strconv.FormatFloat(percent(want[i]), 'g', 3, 64); got != want[i+1] {
			t.Errorf("%s: got %s%% of the files, want %s%%", want[i], got, want[i+1])
		}
	}
}
