package lint_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// hostile are files of about 500 KiB that a careless check reads many times over.
var hostile = []struct {
	name string
	data string
}{
	{"groups", numbered("User-agent: a%d\nDisallow: /\n", 20_000)},
	{"agents of one group", numbered("User-agent: a%d\n", 28_000) + "Disallow: /\n"},
	{"rules", numbered("Allow: /%d\n", 20_000) + numbered("Disallow: /%d\n", 20_000)},
	{"short rules", "User-agent: *\n" + strings.Repeat("allow:/\n", 57_000)},
	{"nested rules", "User-agent: *\n" + nested(950)},
	{"named groups beside a long one for all", "User-agent: *\n" + numbered("Disallow: /%d\n", 13_000) + numbered("User-agent: b%d\nDisallow: /x\n", 9_000)},
	{"rules for everybody", "User-agent: *\n" + numbered("Disallow: /%d\n", 36_000)},
	{"groups for everybody", numbered("User-agent: *\nDisallow: /%d/css/\n", 14_000) + numbered("Sitemap: http://h/%d\n", 5_000)},
	{"unknown fields", numbered("disalow%d: x\n", 35_000)},
	{"near fields", strings.Repeat("dissalllow: x\n", 36_000)},
	{"blank lines", "User-agent: *\n" + strings.Repeat("\n", 500<<10)},
	{"carriage returns", strings.Repeat("\r", 500<<10)},
	{"one line", strings.Repeat("a", 500<<10)},
	{"one path", "User-agent: *\nDisallow: /" + strings.Repeat("a", 500<<10)},
	{"one path of stars", "User-agent: *\nDisallow: /" + strings.Repeat("*", 500<<10)},
	{"one path of percent signs", "User-agent: *\nDisallow: /" + strings.Repeat("%", 500<<10)},
	{"one path of blanks", "User-agent: *\nDisallow: /" + strings.Repeat(" /", 250<<10)},
	{"one agent of commas", "User-agent: a" + strings.Repeat(",", 500<<10)},
	{"one usage", "User-agent: *\nContent-Usage: " + strings.Repeat("a=y,", 125<<10)},
	{"one signal", "User-agent: *\nContent-Signal: " + strings.Repeat("search=yes,", 45<<10)},
	{"usages", "User-agent: *\n" + numbered("Allow: /%d\n", 15_000) + strings.Repeat("Content-Usage: /x train-ai=y\n", 9_000)},
	{"sitemaps", "User-agent: *\nDisallow: /*a*a*a*b\n" + numbered("Sitemap: http://h/%daaaa\n", 20_000)},
	{"delays", "User-agent: " + strings.Repeat("x", 1000) + "\n" + strings.Repeat("Crawl-delay: x\n", 30_000)},
	{"delays of many agents", numbered("User-agent: a%d\n", 14_000) + strings.Repeat("Crawl-delay: 5\n", 14_000)},
	{"NUL bytes", strings.Repeat("\x00", 500<<10)},
	{"no UTF-8", strings.Repeat("\xFF:\xFF\n", 125<<10)},
	{"prose without UTF-8", strings.Repeat("\xFF0", 195)}, // each byte grows to three
	{"pages", strings.Repeat("<a href=x:y>\n", 38<<10)},
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// nested returns n rules of which each begins with the one before, from the longest to the shortest.
func nested(n int) string {
	var b strings.Builder
	for i := n; i > 0; i-- {
		kind := "allow"
		if i%2 == 0 {
			kind = "disallow"
		}
		b.WriteString(kind + ":/" + strings.Repeat("a", i) + "\n")
	}
	return b.String()
}

func TestFindingsAreBoundedWhateverTheFile(t *testing.T) {
	tier.Gate(t)
	for _, h := range hostile {
		took := proc.CPUTime(func() { check(t, h.name, []byte(h.data)) })
		if tier.AtNight() && !proc.UnderRace() && took > 2*time.Second {
			t.Errorf("%s: took %v, want 2s at most", h.name, took)
		}
	}
}

// check verifies what holds for every file.
func check(t *testing.T, name string, data []byte) {
	t.Helper()
	findings := lint.File(data)
	lines := 2 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r"))
	listed := map[string]int{}
	for _, f := range findings {
		if f.More > 0 {
			if listed[f.ID] != lint.MaxPerRule {
				t.Errorf("%s: %s says there are %d more after %d", name, f.ID, f.More, listed[f.ID])
			}
		} else if listed[f.ID]++; listed[f.ID] > lint.MaxPerRule {
			t.Errorf("%s: more than %d findings of %s", name, lint.MaxPerRule, f.ID)
		}
		if f.Line < 0 || f.Line > lines || f.Column < 0 || f.Line == 0 && f.Column > 0 {
			t.Errorf("%s: %s at %d:%d of a file of %d lines", name, f.ID, f.Line, f.Column, lines)
		}
		if f.Message == "" || f.Suggestion == "" || len(f.Message) > 2000 || len(f.Suggestion+f.Replacement) > 600 || len(f.Replacement) > 400 {
			t.Errorf("%s: %s has a message of %d bytes, a suggestion of %d and a replacement of %d",
				name, f.ID, len(f.Message), len(f.Suggestion), len(f.Replacement))
		}
		if !utf8.ValidString(f.Message + f.Suggestion + f.Replacement) {
			t.Errorf("%s: %s is not UTF-8: %q %q %q", name, f.ID, f.Message, f.Suggestion, f.Replacement)
		}
		if strings.ContainsFunc(f.Message, func(r rune) bool { return r < ' ' || r == 0x7F }) {
			t.Errorf("%s: %s has control characters in %q", name, f.ID, f.Message)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /m\xd5\xd5\xd5\xd5\xd5aps/api/js?\n")) // longer in lower case
	for _, cases := range ruleCases(f) {
		for _, c := range cases {
			f.Add([]byte(short(string(c.answer.Body))))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, "fuzz", data)
		a := lint.Answer{URL: string(data), StatusCode: 200, ContentType: string(data), Redirects: []string{string(data)}, Body: data}
		a.Findings()
	})
}

// A remark for which there is no room any more is counted, and stands in no other finding's message.
func TestARemarkBeyondTheLimitIsCounted(t *testing.T) {
	found := only(lint.File([]byte(numbered("User-agent: bot%d/1\nDisallow: /x\n", lint.MaxPerRule)+
		strings.Repeat("User-agent: Mozilla/5.0 (x)\nDisallow: /x\n", 2))), "RT206")
	if last := found[len(found)-1]; len(found) != lint.MaxPerRule+1 || last.More != 2 || strings.Contains(found[len(found)-2].Message, "likewise") {
		t.Errorf("got %d findings, %q and %q at the end, want %d, and 2 more", len(found), found[len(found)-2].Message, last.Message, lint.MaxPerRule+1)
	}
}
