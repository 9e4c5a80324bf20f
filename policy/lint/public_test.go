package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// TestPublicCases holds lint to files of public bug reports: which findings, or severities, there have to be.
func TestPublicCases(t *testing.T) {
	type row struct {
		ID, Kind, Robots string
		Has, Lacks       []string
	}
	asked := 0
	for _, r := range vectors.Read[row](t, "found/public-cases.jsonl", strings.Fields("agent agents allowed answers at_least body exit expect flags has_line headers lacks_line profile reason retry_after seconds source status url verdict why")...) {
		if r.Kind != "lint" {
			continue
		}
		asked++
		var said []string
		for _, f := range lint.File([]byte(r.Robots)) {
			said = append(said, f.ID, f.Severity.String())
		}
		for _, want := range r.Has {
			if !slices.Contains(said, want) {
				t.Errorf("%s: got %v, want %s\n%s", r.ID, said, want, r.Robots)
			}
		}
		for _, no := range r.Lacks {
			if slices.Contains(said, no) {
				t.Errorf("%s: got %v, want no %s\n%s", r.ID, said, no, r.Robots)
			}
		}
	}
	if asked < 28 {
		t.Errorf("asked %d, want 28", asked)
	}
}
