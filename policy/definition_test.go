package policy_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
)

var (
	questions = flag.Int("questions", 100_000, "how many questions TestDecisionsFollowTheDefinition asks")
	each      = flag.Int("each", 100, "how many of them it asks about one file")
)

// TestDecisionsFollowTheDefinition compares random questions about random files with a
// matcher that tries every rule, byte by byte.
func TestDecisionsFollowTheDefinition(t *testing.T) {
	for i, d := range dialects {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			w := writer{rand.New(rand.NewPCG(9309, uint64(i)))}
			for range *questions / len(dialects) / *each {
				file, rules := w.file()
				g := d.Parse([]byte(file)).Group("a")
				definition := define(d, rules)
				for range *each {
					target := w.target(rules)
					want, got := definition.decide(target), g.Decide(target)
					if got.Rule.Line != want.Line || got.Allowed != (want.Line == 0 || want.Allow) {
						t.Fatalf("%q: got %v (line %d), want %v (line %d)\n%s", target, got, got.Rule.Line, want, want.Line, file)
					}
				}
			}
		})
	}
}

// writer makes up files and targets.
type writer struct{ *rand.Rand }

// text returns up to n of the words.
func (w writer) text(words string, n int) string {
	var b strings.Builder
	all := strings.Fields(words)
	for range w.IntN(n + 1) {
		b.WriteString(all[w.IntN(len(all))])
	}
	return b.String()
}

// Words of patterns and targets: few, so that rules meet targets and each other. None is a
// digit of an escape.
const (
	fewWords = "a a a b b / * *"
	manyWord = "a b / page item ?id= &x= .html .php q r s t * * " +
		"%2F %2f %3A : %61 %7e ~ ? %3F %c3%a9 %E3 \u30c4 | % $ %24 %2A"
)

// file returns a file of one group and its rules.
func (w writer) file() (string, []policy.Rule) {
	rules := []policy.Rule{{Pattern: "/page/item", Line: 2}}
	file := "user-agent: *\n" + rules[0].String() + "\n"
	words, most := fewWords, 10
	if w.IntN(3) > 0 {
		words, most = manyWord, 8
	}
	for range 1 + w.IntN([]int{10, 40, 150}[w.IntN(3)]) {
		pattern := []string{"/", "/", "/", "/page", "*", ""}[w.IntN(6)] + w.text(words, most)
		switch w.IntN(8) {
		case 0:
			pattern += "$"
		case 1:
			pattern += "/index.html"
		}
		if pattern != "" {
			r := policy.Rule{Allow: w.IntN(2) == 0, Pattern: pattern, Line: len(rules) + 2}
			rules, file = append(rules, r), file+r.String()+"\n"
		}
	}
	return file, rules
}

// target returns a target that one of the rules matches, or nearly.
func (w writer) target(rules []policy.Rule) string {
	var b strings.Builder
	for _, c := range []byte(strings.TrimSuffix(rules[w.IntN(len(rules))].Pattern, "$")) {
		switch {
		case c == '*':
			b.WriteString(w.text(manyWord, 3))
		case w.IntN(20) > 0:
			b.WriteByte(c)
		}
	}
	if w.IntN(2) == 0 {
		b.WriteString(w.text(manyWord, 4))
	}
	if !strings.HasPrefix(b.String(), "/") {
		return "/" + b.String()
	}
	return b.String()
}

// definition holds rules as they are compared.
type definition struct {
	dialect policy.Dialect
	rules   []defined
}

type defined struct {
	policy.Rule
	signs  []sign
	octets int
}

func define(d policy.Dialect, rules []policy.Rule) (f definition) {
	f.dialect = d
	for _, r := range rules {
		signs, octets := f.signs(r.Pattern, true)
		for _, s := range signs {
			if d == policy.Yandex && (s.any || s.end) { // which counts literal bytes alone
				octets--
			}
		}
		f.rules = append(f.rules, defined{r, signs, octets})
		i := max(strings.LastIndexByte(r.Pattern, '/'), 0)
		if d == policy.Google && r.Allow && strings.HasPrefix(r.Pattern[i:], "/index.htm") {
			signs, octets := f.signs(r.Pattern[:i+1]+"$", true)
			f.rules = append(f.rules, defined{r, signs, octets})
		}
	}
	return f
}

var escapeOrHigh = regexp.MustCompile(`%[0-9a-fA-F]{2}|[^\x00-\x7f]`)

// signs returns a pattern or target as the dialect compares it, and its octets.
func (f definition) signs(s string, pattern bool) (all []sign, octets int) {
	switch f.dialect {
	case policy.Google: // as given, but for what a pattern may be escaped in
		if pattern {
			s = escapeOrHigh.ReplaceAllStringFunc(s, func(s string) string {
				if s[0] == '%' {
					return strings.ToUpper(s)
				}
				return escaped(s)
			})
		}
		for i := range len(s) {
			all = append(all, sign{c: s[i], any: pattern && s[i] == '*', end: pattern && s[i] == '$' && i == len(s)-1})
		}
		return all, len(s)
	case policy.Original: // no wildcards; "/" and its escape differ wherever they stand
		all, octets = signs(s, false)
		for i := range all {
			all[i].escaped, all[i].query = all[i].escaped && all[i].c == '/', false
		}
		return all, octets
	}
	return signs(s, pattern)
}

// escaped returns the bytes of s as escapes.
func escaped(s string) (e string) {
	for _, c := range []byte(s) {
		e += fmt.Sprintf("%%%02X", c)
	}
	return e
}

// decide is §2.2.2: the most octets, then allow, then the rule further up; or, in the
// Original dialect, the first.
func (f definition) decide(target string) policy.Rule {
	signs, _ := f.signs(target, false)
	var best defined
	for _, r := range f.rules {
		better := best.Line == 0 || r.octets > best.octets || r.octets == best.octets && r.Allow && !best.Allow
		if f.dialect == policy.Original {
			better = best.Line == 0
		}
		if better && reaches(r.signs, signs) {
			best = r
		}
	}
	return best.Rule
}

// reaches is §2.2.3.
func reaches(pattern, target []sign) bool {
	switch {
	case len(pattern) == 0:
		return true
	case pattern[0].end:
		return len(target) == 0
	case pattern[0].any:
		return reaches(pattern[1:], target) || len(target) > 0 && reaches(pattern, target[1:])
	}
	return len(target) > 0 && pattern[0].equal(target[0]) && reaches(pattern[1:], target[1:])
}
