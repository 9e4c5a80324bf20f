package lint_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

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
