package lint_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// redundant are the rules whose findings say that a line changes nothing.
var redundant = []string{"RT310", "RT311", "RT015"}

// withoutRedundant empties the lines that lint calls redundant, and returns how many there were. Emptied, not removed: an
// empty Disallow matches nothing and keeps the groups as they are.
func withoutRedundant(text string) (string, int) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lines := strings.Split(text, "\n")
	n := 0
	for _, f := range lint.File([]byte(text)) {
		for _, id := range redundant {
			if f.ID == id && f.More == 0 {
				lines[f.Line-1] = "Disallow:"
				n++
			}
		}
	}
	return strings.Join(lines, "\n"), n
}

func TestRedundantRulesOfRealFilesChangeNoVerdict(t *testing.T) {
	tier.Gate(t)
	files := vectors.Corpus(t)
	type pair struct{ whole, less *policy.Policy }
	parsed := map[string]pair{}
	emptied := 0
	for name, data := range files {
		less, n := withoutRedundant(string(data))
		if n > 0 {
			parsed[name] = pair{policy.Google.Parse(data), policy.Google.Parse([]byte(less))}
			emptied += n
		}
	}
	asked := 0
	for _, q := range vectors.Queries(t) {
		p, ok := parsed[q.File]
		if !ok {
			continue
		}
		for _, token := range q.Agents {
			asked++
			url, _, _ := strings.Cut(q.URL, "#")
			_, path, _ := strings.Cut(strings.TrimPrefix(url[strings.Index(url, "://")+1:], "//"), "/")
			target := "/" + path
			if with, without := p.whole.Decide(token, target), p.less.Decide(token, target); with.Allowed != without.Allowed {
				t.Errorf("%s: %s for %s: allowed %v by line %d, but %v by line %d without the redundant rules",
					q.File, target, token, with.Allowed, with.Rule.Line, without.Allowed, without.Rule.Line)
			}
		}
	}
	if emptied < 500 || asked < 2000 {
		t.Errorf("emptied only %d lines and asked only %d questions", emptied, asked)
	}
}

// Readers that take the first match are policy.Original. Without wildcards, a file says the same to them exactly if
// no rule is reported as order-dependent.
func TestOrderMattersExactlyWhereItIsReported(t *testing.T) {
	tier.Gate(t)
	random := rand.New(rand.NewPCG(1994, 1996))
	same, different := 0, 0
	for range 3000 {
		text := "User-agent: *\n"
		var paths []string
		for range 2 + random.IntN(6) {
			path := "/"
			for range random.IntN(4) {
				path += string("ab/"[random.IntN(3)])
			}
			paths = append(paths, path)
			text += [...]string{"Allow", "Disallow"}[random.IntN(2)] + ": " + path + "\n"
		}
		findings := lint.File([]byte(text))
		if len(only(slices.Clone(findings), "RT015")) > 0 {
			continue // the tie goes to allow for some, to the first for others
		}
		longest, first := policy.RFC9309.Parse([]byte(text)), policy.Original.Parse([]byte(text))
		differs := ""
		for _, path := range paths {
			if longest.Decide("x", path).Allowed != first.Decide("x", path).Allowed {
				differs = path
			}
		}
		reported := len(only(findings, "RT312")) > 0
		if reported != (differs != "") {
			t.Fatalf("reported %v, but %q is decided in two ways by\n%s", reported, differs, text)
		}
		if reported {
			different++
		} else {
			same++
		}
	}
	if same < 200 || different < 200 {
		t.Errorf("only %d files are the same and %d different", same, different)
	}
}
