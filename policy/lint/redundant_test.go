package lint_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

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
