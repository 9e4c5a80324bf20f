package lint_test

import (
	"math"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// frequencies has the share of files with a finding, in percent: in a collection of 4,231 real files, as it was
// counted once by other means, and in the 500 files of the shared corpus, which are a part of it.
//
// The 500 were drawn in strata, so that the two are not expected to be equal: 356 of 500 have wildcards and 252 a '?'
// in a rule, 34 are pages, 16 have a byte order mark, files are long, and trivial ones (empty, or of one rule) are
// rare. Longer files have more of everything that can happen in any line. With one file being 0.2 %, whatever is
// below 0.3 % in the whole is here once or not at all by chance. Other differences have a note.
var frequencies = []struct {
	id          string
	whole, here float64
	note        string
}{
	{"RT004", 1.6, 2.6, "longer files"},
	{"RT005", 0.05, 0, ""},
	{"RT006", 1.5, 0.8, "names without scheme, 4 in groups that are not for *; 9 more are RT011"},
	{"RT007", 28, 51, "drawn for wildcards: 71 % have some"},
	{"RT008", 3.3, 6.8, "34 pages were drawn"},
	{"RT011", 0, 1.8, "not counted in the whole; the 9 Host lines in groups for *"},
	{"RT012", 6.3, 3.4, "the whole: 1.8 % without any rule and 4.5 % with an empty last group; groups that a record joins are RT202"},
	{"RT013", 2.5, 1.4, "the whole also counts URLs and names, here RT301 and RT003"},
	{"RT015", 0.14, 0.2, ""},
	{"RT101", 0.1, 0.2, ""},
	{"RT102", 0.2, 0.4, ""},
	{"RT103", 0.9, 0, "pages are not searched for fields"},
	{"RT104", 0.2, 0.2, "one file begins with remarks in the manner of HTML; pages are not searched for prose"},
	{"RT105", 0.2, 0.2, ""},
	{"RT106", 1.6, 2.8, "16 were drawn, 2 of them pages"},
	{"RT107", 0.07, 0, ""},
	{"RT108", 0.3, 0, "2 were drawn: in one of them only a comment is not UTF-8, the other is a page"},
	{"RT109", 0.3, 3.8, "the whole counts bare CR, which 2 files here have (0.4 %); 17 more mix LF and CRLF"},
	{"RT110", 0.07, 0, "none was drawn above 480 KB"},
	{"RT111", 0.26, 0.2, ""},
	{"RT112", 0.02, 0, ""},
	{"RT114", 0.9, 0, "none was drawn"},
	{"RT201", 0.2, 0.2, ""},
	{"RT202", 4, 4.6, ""},
	{"RT203", 22, 22.2, "the whole: 8.9 % before the rules and 13 % among them, not disjoint; here 10.6 % and 18.4 %"},
	{"RT204", 2.5, 2.8, ""},
	{"RT205", 1.6, 2.6, "longer files, with more groups; names in the form of a User-Agent header do not count"},
	{"RT206", 4.6, 6.2, "longer files"},
	{"RT207", 5.8, 5.4, "a version in front of the blank is RT206"},
	{"RT208", 9.2, 6.4, "the whole also counts the digits of versions and of names with blanks"},
	{"RT209", 0.1, 2, "the whole counts a leading *, here 0.2 %; the rest is Mediapartners-Google* and its like"},
	{"RT210", 9.2, 19, "longer files, with more groups; AdsBot-Google and Mediapartners-Google do not count; the whole counts groups that close something"},
	{"RT301", 0.7, 0.8, "two of the four files name a host without a scheme"},
	{"RT302", 0.2, 0, "the four here begin a name"},
	{"RT303", 0.2, 0.2, ""},
	{"RT304", 0.1, 0.2, ""},
	{"RT305", 0.02, 0, ""},
	{"RT306", 0.5, 1, "5 were drawn"},
	{"RT307", 1.4, 0, "the whole counts each comment after a rule, which 10 files here have (2 %)"},
	{"RT309", 0.1, 0.2, ""},
	{"RT308", 0, 0.2, "not counted in the whole"},
	{"RT310", 7.6, 8.6, "longer files; in four, the other rule is of another group for some reader, or for a User-Agent header"},
	{"RT401", 1.2, 0.2, "files of one rule are rare; two more let named crawlers in"},
	{"RT402", 1.7, 11.2, "longer files; directories such as /css/ and those of widespread systems count, too"},
	{"RT403", 22.6, 11.2, "the whole counts /admin/ and /wp-admin/ of Drupal's and WordPress' own files"},
	{"RT404", 3.9, 5.6, "longer files"},
	{"RT407", 0.8, 1, ""},
	{"RT408", 0, 0.2, "not counted in the whole; a directory of data, closed to Googlebot alone"},
	{"RT409", 1.77, 0.6, "long delays for crawlers that keep them do not count; the whole: 0.6 % no numbers, 1.1 % above 30 s, 0.07 % above 300 s"},
	{"RT411", 0.4, 0.6, ""},
	{"RT412", 0.1, 0, ""},
}

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
	for _, f := range frequencies {
		if got := percent(f.id); math.Abs(got-f.here) > 0.05 {
			t.Errorf("%s: got %.1f%% of the files, want %.1f%% (of all files %.2f%%; %s)", f.id, got, f.here, f.whole, f.note)
		}
	}
}
