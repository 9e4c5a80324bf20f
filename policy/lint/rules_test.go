package lint_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy/lint"
)

func TestRelativeSitemapIsCompletedIfTheFilesURLIsKnown(t *testing.T) {
	for body, want := range map[string]string{
		"Sitemap: /s.xml":                     "Sitemap: https://example.com:8443/s.xml",
		"Sitemap: s.xml":                      "Sitemap: https://example.com:8443/s.xml",
		"Sitemap: //cdn.example/s.xml":        "Sitemap: https://cdn.example/s.xml",
		"Sitemap: %zz":                        "none",
		"Sitemap:":                            "none",
		"Sitemap: https://cdn.example/s.xml":  "",
		"Sitemap: https://cdn.example/a b%zz": "",
	} {
		got := ""
		for _, f := range only(lint.Answer{URL: "https://example.com:8443/robots.txt", StatusCode: 200, Body: []byte(body)}.Findings(), "RT407") {
			got += cmp.Or(f.Replacement, f.Example, "none")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

// Package fetch reads these statuses so.
func TestAStatusOpensOrClosesTheSite(t *testing.T) {
	for status, want := range map[int]string{302: "open", 308: "open", 401: "opens", 503: "closes", 300: "closed", 304: "closed", 600: "closed", 102: "closed"} {
		got := only(lint.Answer{URL: "https://example.com/robots.txt", StatusCode: status}.Findings(), "RT414")
		if len(got) != 1 || !slices.Contains(strings.FieldsFunc(got[0].Message, func(c rune) bool { return c == ' ' || c == ',' }), want) {
			t.Errorf("status %d: %v, want that the site is %s", status, got, want)
		}
	}
}

// The cases cover the registry: this finds a misspelt ID in the code, and a rule that is never reported.
func TestEveryRuleIsEitherCheckedOrSaysWhyNot(t *testing.T) {
	all := ruleCases(t)
	previous := ""
	for _, r := range lint.Rules() {
		if r.ID <= previous {
			t.Errorf("%s stands after %s", r.ID, previous)
		}
		previous = r.ID
		if covered := len(all[r.ID]) > 0; covered == (r.Unchecked != "") {
			t.Errorf("%s: has cases %v, unchecked because %q", r.ID, covered, r.Unchecked)
		}
		if r.Name == "" || r.Summary == "" || r.Advice == "" || r.Engines == "" {
			t.Errorf("%s: incomplete: %+v", r.ID, r)
		}
	}
	if n := len(lint.Rules()); n != 85 {
		t.Errorf("got %d rules, want 85", n)
	}
}

func TestNameIsJudgedByItsLastElement(t *testing.T) {
	for name, want := range map[string]string{
		"robots.txt": "", "site/robots.txt": "", "draft.txt": "", "": "", "Robots.txt/x": "",
		"site/Robots.txt": "RT001", `C:\site\ROBOTS.TXT`: "RT001", "robot.txt": "RT002", "/Robot.TXT": "RT002",
	} {
		got := ""
		for _, f := range lint.Name(name) {
			got += f.ID
		}
		if got != want {
			t.Errorf("Name(%q): got %q, want %q", name, got, want)
		}
	}
}

func only(findings []lint.Finding, id string) []lint.Finding {
	return slices.DeleteFunc(findings, func(f lint.Finding) bool { return f.ID != id })
}

func short(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}

// A Content-Usage line ends the list of names for Content-Usage alone: RT202 tells so, also
// where another record stands in front of it, and not where there is none between the names.
func TestFusionTellsOfContentUsage(t *testing.T) {
	const told = "what Content-Usage permits is for the names directly above it alone"
	for between, want := range map[string]bool{
		"Content-Usage: train-ai=n": true, "Crawl-delay: 5\ncontent-usage: train-ai=n": true,
		"Crawl-delay: 5": false, "Content-Signal: ai-train=no": false,
	} {
		found := only(lint.File([]byte("User-agent: a\n"+between+"\nUser-agent: b\nContent-Usage: search=y\nDisallow: /x\n")), "RT202")
		if len(found) != 1 || strings.Contains(found[0].Message, told) != want || !strings.Contains(found[0].Message, "does not end a group") {
			t.Errorf("%q: got %v, want told %t", between, found, want)
		}
	}
}

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
		t.Errorf("got %+v, want none", found)
	}
}

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
		if fixed := (lint.Answer{Body: file}).Fix(nil); bytes.Contains(fixed, []byte("DIS")) {
			t.Errorf("%d lines: became %.200q", n, fixed)
		}
	}
}

func TestAnUnknownCountIsNotSaidAsKnown(t *testing.T) {
	file := []byte("User-agent: *\n" + numbered("Disallow: /p%05d/*\n", 500) + numbered("Allow: /q%05d\nDisallow: /q%05[1]d*\n", 500))
	got := messages(lint.File(file), "RT007")
	if len(got) != 1 || !strings.Contains(got[0], "(likewise at least ") {
		t.Errorf("got %q, want one, with likewise", got)
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
		fixed := lint.Answer{Body: []byte(file.String())}.Fix(nil)
		if bytes.Contains(fixed, []byte("DIS")) || bytes.Contains(fixed, []byte("USER")) {
			t.Errorf("%s, %s: got %.200s, want no line in capitals", c.agent, c.rule, fixed)
		}
	}
}
