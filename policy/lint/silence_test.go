package lint_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/robotsgate/robotsgate/policy/lint"
)

func TestACommentSilencesARule(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // line and rule of the findings of RT007 and RT403
	}{
		{"none", "User-agent: *\nDisallow: /a*\nDisallow: /admin/\n", []string{"2 RT007", "3 RT403"}},
		{"its own line", "User-agent: *\nDisallow: /a* # robots-lint: ignore RT007\nDisallow: /b*\n", []string{"3 RT007"}},
		{"the next record", "User-agent: *\n# robots-lint: ignore RT007\nDisallow: /a*\nDisallow: /b*\n", []string{"4 RT007"}},
		{"past blank lines and comments", "User-agent: *\n# robots-lint: ignore RT007\n\n# why\nDisallow: /a*\n", nil},
		{"several comments for one record", "User-agent: *\n#robots-lint: ignore RT007\n# robots-lint: ignore RT403\nDisallow: /admin*\n", nil},
		{"the whole file, wherever it stands", "User-agent: *\nDisallow: /a*\nDisallow: /b*\n## robots-lint: ignore-file RT007", nil},
		{"several rules, and why", "User-agent: *\nDisallow: /admin* # robots-lint: ignore RT403, RT007 it is open anyway, says RT404\n", nil},
		{"other rules", "User-agent: *\nDisallow: /admin* # robots-lint: ignore RT403\n", []string{"2 RT007"}},
		{"no rule at all", "User-agent: *\nDisallow: /a* # robots-lint: ignore\n# robots-lint: ignore-file\n", []string{"2 RT007"}},
		{"what is no identifier ends the list", "User-agent: *\nDisallow: /a* # robots-lint: ignore RT99, RT007\n", []string{"2 RT007"}},
		{"another word", "User-agent: *\nDisallow: /a* # robots-lint: disable RT007\n", []string{"2 RT007"}},
	} {
		var got []string
		for _, f := range lint.File([]byte(c.text)) {
			if f.ID == "RT007" || f.ID == "RT403" {
				got = append(got, fmt.Sprint(f.Line, " ", f.ID))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTheFileAsAWholeIsSilencedToo(t *testing.T) {
	const text = "# robots-lint: ignore-file RT107\nUser-agent: *\nDisallow: /\x00a\n"
	if found := only(lint.File([]byte(text)), "RT107"); len(found) > 0 {
		t.Errorf("got %+v", found)
	}
}
