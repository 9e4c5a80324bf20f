package lint_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// messages returns what the findings of a rule say.
func messages(findings []lint.Finding, id string) (all []string) {
	for _, f := range only(findings, id) {
		all = append(all, f.Message)
	}
	return all
}

func TestCountsOfLongFilesAreTrue(t *testing.T) {
	for _, n := range []int{40, 200, 2000} {
		file := []byte("User-agent: *\n" + numbered("DISALLOW: /p%05d/\n", n))
		if got, want := strings.Join(messages(lint.File(file), "RT009"), "; "), fmt.Sprintf("(likewise %d more lines: ", n-1); !strings.Contains(got, want) {
			t.Errorf("%d lines: got %q, want %q", n, got, want)
		}
		fixed, applied := lint.Fix(file, nil)
		if len(applied) != n || bytes.Contains(fixed, []byte("DIS")) {
			t.Errorf("%d lines: applied %d", n, len(applied))
		}
	}
}

func TestAnUnknownCountIsNotSaidAsKnown(t *testing.T) {
	file := []byte("User-agent: *\n" + numbered("Disallow: /p%05d/*\n", 500) + numbered("Allow: /q%05d\nDisallow: /q%05[1]d*\n", 500))
	got := messages(lint.File(file), "RT007")
	if len(got) != 1 || !strings.Contains(got[0], "(likewise at least ") {
		t.Errorf("got %q", got)
	}
}

// Groups of many names take no longer than others.
func TestAllOfALongFileIsMended(t *testing.T) {
	tier.Gate(t)
	for _, c := range []struct{ agent, rule string }{{"User-agent", "DISALLOW"}, {"USER-AGENT", "Disallow"}} {
		var file strings.Builder
		for g := range 300 {
			fmt.Fprintf(&file, "%s: bot%d\n%s\n", c.agent, g, numbered(c.rule+": /g%d/\n", 20))
		}
		fixed, _ := lint.Fix([]byte(file.String()), nil)
		if bytes.Contains(fixed, []byte("DIS")) || bytes.Contains(fixed, []byte("USER")) {
			t.Errorf("%s, %s: got %.200s", c.agent, c.rule, fixed)
		}
	}
}
