package lint_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
		file := []byte("User-agent: *\n" + numbered("Disallow: /p%05d/*\n", n))
		if got, want := strings.Join(messages(lint.File(file), "RT007"), "; "), fmt.Sprintf("(likewise %d more lines: ", n-1); !strings.Contains(got, want) {
			t.Errorf("%d lines: got %q", n, got)
		}
		fixed, applied := lint.Fix(file, nil)
		if len(applied) != n || bytes.Contains(fixed, []byte("/*")) {
			t.Errorf("%d lines: applied %d", n, len(applied))
		}
		// What stars cost is not taken from other findings.
		got := only(lint.File([]byte("User-agent: *\n"+numbered("Disallow: /a%d*\n", n))), "RT311")
		if more := n - 10 - lint.MaxPerRule; len(got) != lint.MaxPerRule+1 || got[lint.MaxPerRule].More != more ||
			got[lint.MaxPerRule].Message != fmt.Sprintf("and perhaps %d more, the first of them here", more) { // the others were not judged
			t.Errorf("%d lines: got %+v", n, got)
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

func TestAReplacementThatIsNotJudgedIsNotOffered(t *testing.T) {
	file := []byte("User-agent: *\n" + numbered("Disallow: /%d\n", 20_000) + numbered("Disalow: /%d\n", 10))
	unjudged := 0
	for _, f := range only(lint.File(file), "RT102") {
		said := strings.HasSuffix(f.Message, "; the replacement could not be judged, the file is too long")
		if said {
			unjudged++
		}
		if said != (f.Replacement == "") || f.Changes != "" {
			t.Errorf("got %+v", f)
		}
	}
	if unjudged == 0 {
		t.Error("all were judged: try a longer file")
	}
}

// Groups of many names take no longer than others, and misspelt ones that are mended together.
func TestAllOfALongFileIsMended(t *testing.T) {
	for _, c := range []struct{ agent, rule string }{{"User-agent", "Disallow"}, {"Useragent", "Disalow"}} {
		var file strings.Builder
		for g := range 300 {
			fmt.Fprintf(&file, "%s: bot%d\n%s\n", c.agent, g, numbered(c.rule+": /g%d/*\n", 20))
		}
		if _, applied := lint.Fix([]byte(file.String()), nil); len(applied) != 6000 {
			t.Errorf("%s: applied %d", c.agent, len(applied))
		}
	}
}
