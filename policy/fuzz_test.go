package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

var dialects = []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// seeds returns the files and questions of testdata/decide.
func seeds(tb testing.TB) (all []vector) {
	for _, v := range vectors.Cases(tb, "testdata/decide", parseVector) {
		all = append(all, v)
	}
	return all
}

// FuzzParse holds every dialect to what is true of any file: nothing panics, the
// canonical text decides as the file does and is its own canonical text, and a
// copy of a group decides as the group does.
func FuzzParse(f *testing.F) {
	for _, v := range seeds(f) {
		f.Add(v.body, v.asks[0].token, v.asks[0].target)
	}
	f.Add([]byte("\xff\xfeu\x00s\x00e\x00r\x00-\x00a\x00g\x00e\x00n\x00t\x00:\x00*\x00\n\x00d\x00i\x00s\x00a\x00l\x00l\x00o\x00w\x00:\x00/\x00"), "a", "/x")
	f.Add([]byte("user-agent:a\ruser-agent:A/1 b;c\r\ndisallow:/%zz$$*\x00\n\rallow:\xff#x\nx:y\n"), "a", "https://h/%41?\xff")
	f.Fuzz(func(t *testing.T, file []byte, token, target string) {
		for _, d := range dialects {
			p := d.Parse(file)
			text := p.String()
			if len(text) > 10_000 || d == policy.Yandex && slices.ContainsFunc(strings.Split(text, "\n"), tooLongForYandex) {
				continue // may grow beyond the limit of lines or of the file
			}
			q := d.Parse([]byte(text))
			if again := q.String(); again != text {
				t.Errorf("%v: canonical text %q of %q became %q, want it again", d, text, file, again)
			}
			for _, token := range []string{token, "*", "a"} {
				want := p.Decide(token, target)
				if again := p.Group(token); again != p.Group(token, token) {
					t.Errorf("%v: %q gets %q when it asks again\nfile %q", d, token, again.Token(), file)
				}
				if copied := p.Combined(token).Decide(target); copied != want {
					t.Errorf("%v: %q asks for %q: got %v of a copied group, want %v\nfile %q", d, token, target, copied, want, file)
				}
				if got, want := p.Group(token).Matching(target), matchingAlone(p, token, target, d); !slices.Equal(got, want) {
					t.Errorf("%v: %q asks for %q: %v match, want %v\nfile %q", d, token, target, got, want, file)
				}
				delay, _ := p.Group(token).CrawlDelay()
				for form, g := range map[string]policy.Group{"canonical text": q.Group(token), "copied group": p.Combined(token)} {
					if got, _ := g.CrawlDelay(); got != delay {
						t.Errorf("%v: %q: got %v from the %s, want %v\nfile %q\ntext %q", d, token, got, form, delay, file, text)
					}
				}
				got := q.Decide(token, target)
				got.Rule.Line, want.Rule.Line = 0, 0
				got.Rule.Pattern, want.Rule.Pattern = "", "" // in normal form, and as written
				if got != want {
					t.Errorf("%v: %q asks for %q: got %v from the canonical text, want %v\nfile %q\ntext %q", d, token, target, got, want, file, text)
				}
			}
		}
	})
}

// tooLongForYandex reports whether a rule in normal form may be longer than the 1,024 characters that count.
func tooLongForYandex(line string) bool { return len(line) > 1024 }

// matchingAlone asks a file of its own for each rule.
func matchingAlone(p *policy.Policy, token, target string, d policy.Dialect) (matching []policy.Rule) {
	for r := range p.Group(token).Rules() {
		alone := d.Parse([]byte("User-agent: *\n" + r.String() + "\n"))
		if alone.Decide("*", target).Reason == policy.ReasonRule {
			matching = append(matching, r)
		}
	}
	return matching
}

// FuzzDecide compares decisions with a matcher that is too simple to be
// wrong: every rule is tried, byte by byte.
func FuzzDecide(f *testing.F) {
	for _, v := range seeds(f) {
		for _, a := range v.asks {
			f.Add(string(v.body), a.target)
		}
	}
	f.Add("+/a\n-/a*\n+/*b$\n-/ab\n-/aab\n-*\n+/a*a*b", "/aaab")
	f.Fuzz(func(t *testing.T, lines, target string) {
		if len(lines) > 2_000 || len(target) > 200 {
			return // the reference takes as long as all their bytes multiplied
		}
		var rules []policy.Rule
		file := "user-agent: *\n"
		for line := range strings.Lines(lines) {
			pattern := strings.Map(plain, line)
			if pattern != "" {
				rules = append(rules, policy.Rule{Allow: line[0]%2 == 1, Pattern: pattern, Line: len(rules) + 2})
				file += rules[len(rules)-1].String() + "\n"
			}
		}
		target = "/" + strings.Map(plain, target)
		want := naive(rules, target)
		// Google compares as given, so that the reference needs no normal form.
		d := policy.Google.Parse([]byte(file)).Decide("a", target)
		if d.Rule != want || d.Allowed != (want.Line == 0 || want.Allow) {
			t.Errorf("%q: got %v, want %v (line %d)\n%s", target, d, want, want.Line, file)
		}
	})
}

// plain keeps bytes that mean nothing outside of matching; most become a or b,
// so that patterns meet targets.
func plain(r rune) rune {
	switch {
	case r == '*' || r == '$' || r == '/':
		return r
	case r == '\n' || r == '\r':
		return -1
	}
	return 'a' + r%3
}

func naive(rules []policy.Rule, target string) (best policy.Rule) {
	for _, r := range rules {
		longer := len(r.Pattern) > len(best.Pattern) || len(r.Pattern) == len(best.Pattern) && r.Allow && !best.Allow
		if (best.Line == 0 || longer) && naiveMatch(r.Pattern, target) {
			best = r
		}
	}
	return best
}

// naiveMatch is the definition of §2.2.3, written down, for every end of the pattern and
// every end of the target: from the shortest, so that none is answered twice.
func naiveMatch(pattern, target string) bool {
	var shorter []bool // whether pattern[i+1:] matches target[j:]
	for i := len(pattern); i >= 0; i-- {
		matches := make([]bool, len(target)+1)
		for j := len(target); j >= 0; j-- {
			switch {
			case i == len(pattern):
				matches[j] = true
			case pattern[i:] == "$":
				matches[j] = j == len(target)
			case pattern[i] == '*':
				matches[j] = shorter[j] || j < len(target) && matches[j+1]
			default:
				matches[j] = j < len(target) && target[j] == pattern[i] && shorter[j+1]
			}
		}
		shorter = matches
	}
	return shorter[0]
}

// FuzzMonotone: one more Disallow line never allows what was refused. The line
// joins a group that has rules already: it cannot begin or end one.
func FuzzMonotone(f *testing.F) {
	for _, v := range seeds(f) {
		f.Add(v.body, "/x", v.asks[0].token, v.asks[0].target)
	}
	f.Fuzz(func(t *testing.T, file []byte, pattern, token, target string) {
		if strings.ContainsAny(pattern, "\r\n") {
			return
		}
		if len(file) > 100_000 {
			return // not near the limits, where a line pushes out another
		}
		for _, d := range []policy.Dialect{policy.RFC9309, policy.Google, policy.Bing} {
			lines := slices.Collect(lint.Lines(d, file))
			for i, l := range lines {
				if l.Kind != lint.LineDisallow && l.Kind != lint.LineAllow {
					continue
				}
				more := slices.Clone(lines)
				extra := lint.Line{Kind: lint.LineDisallow, Field: "Disallow", Value: pattern}
				before, after := join(lines), join(slices.Insert(more, i, extra))
				if !d.Parse(before).Decide(token, target).Allowed && d.Parse(after).Decide(token, target).Allowed {
					t.Errorf("%v: Disallow: %q above line %d allows %q to %q in\n%s", d, pattern, l.Number, target, token, before)
				}
				break
			}
		}
	})
}

// join writes lines as a file again.
func join(lines []lint.Line) []byte {
	var b strings.Builder
	for _, l := range lines {
		if l.Field != "" {
			b.WriteString(l.Field + ":" + l.Value)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// FuzzLines: the lines that tools show are the lines of the file.
func FuzzLines(f *testing.F) {
	for _, v := range seeds(f) {
		f.Add(v.body)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 100_000 || strings.HasPrefix(string(file), "\xff\xfe") || strings.HasPrefix(string(file), "\xfe\xff") {
			return
		}
		ends := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(file))
		want := 1 + strings.Count(ends, "\n")
		for _, d := range dialects {
			n := 0
			for l := range lint.Lines(d, file) {
				if n++; l.Number != n || l.Kind == 0 || (l.Field == "") != (l.Kind <= lint.LineComment || l.Kind == lint.LineInvalid) {
					t.Errorf("%v: line %d of %q: got %+v", d, n, file, l)
				}
			}
			if n != want {
				t.Errorf("%v: %q: got %d lines, want %d", d, file, n, want)
			}
		}
	})
}

// FuzzProductToken: a token is a part of the User-Agent it is from and its own token.
func FuzzProductToken(f *testing.F) {
	for userAgent := range productTokens {
		f.Add(userAgent)
	}
	f.Fuzz(func(t *testing.T, userAgent string) {
		token := policy.ProductToken(userAgent)
		if !strings.Contains(userAgent, token) || policy.ProductToken(token) != token {
			t.Errorf("%q: got %q, want a part of it that is its own token", userAgent, token)
		}
	})
}
