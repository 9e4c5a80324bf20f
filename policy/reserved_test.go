package policy_test

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
)

// sign is one byte of a pattern or target as §2.2.2 compares it.
type sign struct {
	c       byte
	escaped bool
	query   bool // of a target: stands in the query, behind the "?" that begins it
	any     bool // of a pattern: "*"
	end     bool // of a pattern: a final "$"
}

// signs reads a pattern or a target.
func signs(s string, pattern bool) (all []sign, bytes int) {
	query := false
	for i := 0; i < len(s); i++ {
		switch escape, err := url.PathUnescape(s[i:min(i+3, len(s))]); {
		case s[i] == '%' && err == nil:
			all = append(all, sign{c: escape[0], escaped: true, query: query})
			i += 2
			bytes += 3
			if strings.IndexByte(unreserved, escape[0]) >= 0 {
				bytes -= 2
			}
		case pattern && s[i] == '*':
			all = append(all, sign{any: true})
			bytes++
		case pattern && s[i] == '$' && i == len(s)-1:
			all = append(all, sign{end: true})
			bytes++
		default:
			all = append(all, sign{c: s[i], query: query})
			query = query || s[i] == '?'
			bytes++
			if strings.IndexByte(unreserved+":/?[]@!&'()+,;=", s[i]) < 0 {
				bytes += 2 // is escaped
			}
		}
	}
	return all, bytes
}

const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"

// equal is the definition: a byte and its escape are one, but for "/" in the path and the
// "?" that begins the query.
func (p sign) equal(t sign) bool {
	separates := !t.query && (t.c == '/' || t.c == '?')
	return p.c == t.c && (p.escaped == t.escaped || !separates)
}

// reservedMatch is naiveMatch for signs.
func reservedMatch(pattern, target []sign) bool {
	var shorter []bool // whether pattern[i+1:] matches target[j:]
	for i := len(pattern); i >= 0; i-- {
		matches := make([]bool, len(target)+1)
		for j := len(target); j >= 0; j-- {
			switch {
			case i == len(pattern):
				matches[j] = true
			case pattern[i].end:
				matches[j] = j == len(target)
			case pattern[i].any:
				matches[j] = shorter[j] || j < len(target) && matches[j+1]
			default:
				matches[j] = j < len(target) && pattern[i].equal(target[j]) && shorter[j+1]
			}
		}
		shorter = matches
	}
	return shorter[0]
}

// reservedWords are what patterns and targets of the tests below consist of.
var reservedWords = [...]string{
	"/", "%2F", "%2f", "?", "%3F", "a", "%61", ":", "%3A", "*", "%2A", "$", "%24", "(", "%28", "%", "%25", "|", "\u30c4", "%E3", "~",
}

func reservedText(choices []byte) string {
	var b strings.Builder
	for _, c := range choices {
		b.WriteString(reservedWords[int(c)%len(reservedWords)])
	}
	return b.String()
}

// checkReserved holds the forms of a policy to the definition.
func checkReserved(t *testing.T, lines, targets []string) {
	t.Helper()
	file := "user-agent: *\n"
	for i, pattern := range lines {
		file += policy.Rule{Allow: i%2 == 1, Pattern: pattern}.String() + "\n"
	}
	p := policy.Parse([]byte(file))
	text := policy.Parse([]byte(p.String()))
	if text.String() != p.String() {
		t.Fatalf("canonical text %q became %q", p, text)
	}
	forms := map[string]policy.Group{"file": p.Group("a"), "text": text.Group("a"), "copy": p.Combined("a")}
	for _, target := range targets {
		line, bytes, allow := naiveReserved(lines, target)
		for form, g := range forms {
			d := g.Decide(target)
			if d.Rule.Line != line || d.Allowed != (line == 0 || allow) {
				t.Fatalf("%s: %q: got %v, want line %d\n%s", form, target, d, line, file)
			}
			if form == "text" && line > 0 && len(d.Rule.Pattern) != bytes {
				t.Fatalf("%s: %q: got %v, want %d bytes\n%s", form, target, d, bytes, file)
			}
		}
	}
}

// naiveReserved is naive for patterns of which every second one allows, below one line.
func naiveReserved(patterns []string, target string) (line, bytes int, allow bool) {
	targetSigns, _ := signs(target, false)
	for i, pattern := range patterns {
		p, n := signs(pattern, true)
		allows := i%2 == 1
		better := line == 0 || n > bytes || n == bytes && allows && !allow
		if better && reservedMatch(p, targetSigns) {
			line, bytes, allow = i+2, n, allows
		}
	}
	return line, bytes, allow
}

func TestReservedBytesAndTheirEscapesAreOne(t *testing.T) {
	random := rand.New(rand.NewPCG(3986, 9309))
	texts := func(n, most int) []string {
		all := make([]string, n)
		for i := range all {
			choices := make([]byte, random.IntN(most))
			for i := range choices {
				choices[i] = byte(random.IntN(256))
			}
			all[i] = "/" + reservedText(choices)
		}
		return all
	}
	// Of one stem, the rule with more forms has fewer bytes that count.
	checkReserved(t, []string{"/none", "/abcde:", "/*%3A", "/none", "/*abcde:"}, []string{"/abcde:"})
	for range 5_000 {
		checkReserved(t, texts(2+random.IntN(8), 8), texts(10, 12))
	}
}

// FuzzReserved looks on where TestReservedBytesAndTheirEscapesAreOne ends.
func FuzzReserved(f *testing.F) {
	f.Add([]byte("\x00\x09\x01\xff\x09\x03"), []byte("\x03\x01"))
	f.Fuzz(func(t *testing.T, patterns, target []byte) {
		if len(patterns) > 200 || len(target) > 100 {
			return
		}
		var lines []string
		for choices := range strings.SplitSeq(string(patterns), "\xff") {
			lines = append(lines, "/"+reservedText([]byte(choices)))
		}
		checkReserved(t, lines, []string{"/" + reservedText(target)})
	})
}

// A rule holds for a URL whichever way Go writes it: what net/url and url.Values escape
// and what they leave.
func TestRulesHoldForWhatGoSends(t *testing.T) {
	const special = "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~ -._\u00e9"
	for _, c := range special {
		// What the site writes, where the grammar lets it, and its escapes.
		escaped := url.QueryEscape(string(c))
		if c == ' ' {
			escaped = "%20"
		}
		spellings := []string{escaped, strings.ToLower(escaped)}
		if !strings.ContainsRune("#*$%/?", c) { // "/" and "?" separate in a path, "%" is taken for a stray one
			spellings = append(spellings, string(c))
		}
		u := url.URL{Path: "/a" + string(c) + "b"}
		targets := []string{u.RequestURI(), "/a" + url.PathEscape(string(c)) + "b"}
		if c == '/' { // u.Path cannot tell
			targets = targets[1:]
		}
		for _, pattern := range spellings {
			p := policy.Parse([]byte("user-agent: *\ndisallow: /a" + pattern + "b\n"))
			for _, target := range targets {
				if p.Decide("a", target).Allowed {
					t.Errorf("%s is sent in spite of Disallow: /a%sb", target, pattern)
				}
			}
			if c == ' ' {
				continue // "+" in a query of url.Values, which is no escape
			}
			p = policy.Parse([]byte("user-agent: *\ndisallow: /s?q=a" + pattern + "b\n"))
			for _, target := range []string{"/s?" + url.Values{"q": {"a" + string(c) + "b"}}.Encode(), "/s?q=a" + escaped + "b"} {
				if p.Decide("a", target).Allowed {
					t.Errorf("%s is sent in spite of Disallow: /s?q=a%sb", target, pattern)
				}
			}
		}
	}
}

// Google compares as written, and goes on to.
func TestGoogleTellsReservedBytesFromTheirEscapes(t *testing.T) {
	p := policy.Google.Parse([]byte("user-agent: *\ndisallow: /a(b)\ndisallow: /q?u=%3a\n"))
	for target, allowed := range map[string]bool{"/a(b)": false, "/a%28b%29": true, "/q?u=:": true, "/q?u=%3A": false} {
		if got := p.Decide("a", target).Allowed; got != allowed {
			t.Errorf("%s: got allowed %v, want %v", target, got, allowed)
		}
	}
}
