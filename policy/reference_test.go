package policy

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// This file keeps the search that came before keys and indexes: every rule in its order, with
// the matching of its time. The search must decide alike.

var differences = flag.Int("differences", 200_000, "how many questions TestTheSearchDecidesAsBefore asks")

// oldFind returns the place of the rule that decides about a target in normal form, or none.
func oldFind(b block, target string) uint32 {
	for i := range b.len() {
		switch h := b.at(i); {
		case h.word&ruleTwofold != 0:
			if oldMatchTwofold(h.pattern(), target) {
				return i
			}
		case h.word&ruleWild != 0:
			if oldMatchWild(h.pattern(), target) {
				return i
			}
		case strings.HasPrefix(target, h.pattern()):
			return i
		}
	}
	return none
}

// oldOrder reports whether the rules of a block stand in the order of precedence.
func oldOrder(b block) bool {
	for i := range max(b.len(), 1) - 1 {
		if !b.at(i).precedes(b.at(i + 1)) {
			return false
		}
	}
	return true
}

// inventor makes up files and targets that reach the index and its limits.
type inventor struct {
	*rand.Rand
	words []string // of which patterns and targets consist
}

func newInventor(r *rand.Rand) inventor {
	sets := []string{
		"a b ab / * aab",
		"/ page item ?id= &x= .html .php - _ 1 2 3 4 5 6 7 8 9 0 A Q * %2F %2f %3A : %61 %7e ~ ? %3F %c3%a9 \u30c4 | % $ %24 %2A",
		"/section- /dir -p ?param 0 1 2 3 4 5 6 7 8 9 = / .html * x",
		"a aa aaa aaaa b * / %41 %3D = & ?",
	}
	return inventor{Rand: r, words: strings.Fields(sets[r.IntN(len(sets))])}
}

func (v inventor) text(n int) string {
	var b strings.Builder
	for range v.IntN(n + 1) {
		b.WriteString(v.words[v.IntN(len(v.words))])
	}
	return b.String()
}

// file returns a file of one group and its patterns.
func (v inventor) file() (string, []string) {
	var b strings.Builder
	b.WriteString("user-agent: *\n")
	var patterns []string
	prefix, indexed := "/"+v.text(v.IntN(5)), v.IntN(2) == 0
	for range 1 + v.IntN([]int{10, 96, 200, 600, 5_000}[[]int{0, 1, 1, 2, 2, 2, 2, 3, 3, 4}[v.IntN(10)]]) {
		pattern := []string{"/", "/", "/*", prefix, prefix, "*", ""}[v.IntN(7)] + v.text(8)
		if indexed && v.IntN(30) > 0 { // nearly all have four bytes of their own, or an index is of no use
			pattern = []string{"/", "/*", prefix}[v.IntN(3)] + fmt.Sprintf("%04x", v.IntN(1<<16)) + v.text(8)
		}
		switch v.IntN(10) {
		case 0:
			pattern += "$"
		case 1:
			pattern += "/index.html"
		case 2:
			pattern += strings.Repeat(v.text(4), v.IntN(30))
		}
		b.WriteString([]string{"allow: ", "disallow: "}[v.IntN(2)] + pattern + "\n")
		patterns = append(patterns, pattern)
	}
	return b.String(), patterns
}

// target returns a target that a pattern matches, or nearly; one in a thousand is long.
func (v inventor) target(patterns []string) string {
	var b strings.Builder
	if len(patterns) > 0 && v.IntN(6) > 0 {
		for _, c := range []byte(strings.TrimSuffix(patterns[v.IntN(len(patterns))], "$")) {
			switch {
			case c == '*':
				b.WriteString(v.text(3))
			case v.IntN(25) > 0:
				b.WriteByte(c)
			}
		}
	}
	if v.IntN(2) == 0 {
		b.WriteString(v.text(6))
	}
	if v.IntN(1000) == 0 {
		b.WriteString(strings.Repeat(v.text(20), v.IntN(400)))
	}
	target := b.String()
	if !strings.HasPrefix(target, "/") && v.IntN(20) > 0 {
		target = "/" + target
	}
	return target[:min(len(target), 16<<10)]
}

// TestTheSearchDecidesAsBefore asks random questions about random files. It takes a target to
// its normal form in a way of its own too: whole, and always.
func TestTheSearchDecidesAsBefore(t *testing.T) {
	dialects := []Dialect{RFC9309, Google, Yandex, Bing, Original}
	for i, d := range dialects {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(14, uint64(i)))
			const each = 500
			files, indexed := max(1, *differences/len(dialects)/each), 0
			for range files {
				v := newInventor(r)
				file, patterns := v.file()
				if compareSearches(t, d, file, v, patterns, each) {
					indexed++
				}
			}
			if indexed < files/10 {
				t.Errorf("%d of %d files have an index", indexed, files)
			}
		})
	}
}

// compareSearches reports whether an index was searched.
func compareSearches(t *testing.T, d Dialect, file string, v inventor, patterns []string, each int) bool {
	p := d.Parse([]byte(file))
	b := block{p, p.blockWord(p.star).pos()}
	if d != Original && !oldOrder(b) {
		t.Fatalf("not in the order of precedence:\n%s", file)
	}
	for range each {
		target := v.target(patterns)
		normal := string(d.reading().escape.appendTarget(nil, originForm(target)))
		want := place{b.pos, oldFind(b, normal)}
		if normal == robots {
			want = place{}
		}
		if got, _ := (Group{p, p.star}).lookup(target); got != want {
			t.Fatalf("%q: got %v, want %v\n%s", target, describe(b, got), describe(b, want), file)
		}
	}
	return b.size()&blockIndexed != 0 && b.index()[indexAsked] == indexWritten
}

// TestEachRuleIsFound asks for the last rules of blocks whose indexes are laid out differently.
func TestEachRuleIsFound(t *testing.T) {
	for _, n := range []int{smallBlock, smallBlock + 1, halfRules - 1, halfRules, halfRules + 1, 20_000} {
		var file strings.Builder
		file.WriteString("user-agent: *\n")
		for i := range n {
			fmt.Fprintf(&file, "disallow: /%05x\n", i)
		}
		g := RFC9309.Parse([]byte(file.String())).Group("*")
		for i := max(0, n-2_000); i < n; i++ {
			target := fmt.Sprintf("/%05x/index.html", i)
			if d := g.Decide(target); d.Allowed || d.Rule.Line != i+2 {
				t.Fatalf("%d rules: %s: got %v, want it disallowed by line %d", n, target, d, i+2)
			}
		}
	}
}

func describe(b block, at place) string {
	if at.block == 0 || at.rule == none {
		return fmt.Sprint(at)
	}
	return fmt.Sprintf("%v %q", at, b.at(at.rule).asRule())
}

// oldMatchWild reports whether a pattern with "*" or a final "$" matches target (§2.2.3). It
// searches the pieces between the stars one oldAfter the other, each as far left as it goes.
// Since "*" is the only operator, going back gains nothing: the time is linear for any
// pattern.
func oldMatchWild(pattern, target string) bool {
	i := 0
	for ; pattern[i] != '*'; i++ {
		switch {
		case i == len(pattern)-1: // "$"
			return len(target) == i
		case i == len(target) || pattern[i] != target[i]:
			return false
		}
	}
	pattern, target = pattern[i+1:], target[i:]
	anchored := strings.HasSuffix(pattern, "$")
	if anchored {
		pattern = pattern[:len(pattern)-1]
	}
	const stars = "****************"
	for {
		for strings.HasPrefix(pattern, stars) {
			pattern = pattern[len(stars):]
		}
		star := strings.IndexByte(pattern, '*')
		if star < 0 {
			break
		}
		at := strings.Index(target, pattern[:star])
		if at < 0 {
			return false
		}
		pattern, target = pattern[star+1:], target[at+star:]
	}
	if anchored {
		return strings.HasSuffix(target, pattern)
	}
	return strings.Contains(target, pattern)
}

// oldMatchTwofold is oldMatchWild for a pattern with escapes that are one with what they stand
// for (§2.2.2, figure 4), with or without special characters. In the target such bytes
// are decoded.
//
// The first "?" of a pattern begins the query, and what stands before the first star is in
// the path. A piece oldAfter a star and before a "?" may be in either: "/*%2Fa" matches the
// path /x%2Fa, and the query of /x?u=/a, where "/" and its escape are one. The path is
// searched first, then the query. ("/" and "?" themselves need no second search: the query
// holds no escapes of them.)
func oldMatchTwofold(pattern, target string) bool {
	i, at, query := 0, 0, false
	for ; i < len(pattern) && pattern[i] != '*'; i++ {
		c := pattern[i]
		switch c {
		case '$':
			return at == len(target)
		case '?':
			query = true
		case '%':
			if d, _ := ascii.Unescape(pattern[i+1:]); isOne(d, query) {
				c, i = d, i+2
			}
		}
		if at == len(target) || c != target[at] {
			return false
		}
		at++
	}
	switch pattern = pattern[i:]; {
	case pattern == "":
		return true
	case len(pattern) <= 256:
		return oldMatchPiecesShort(pattern, target, at)
	}
	return oldMatchPiecesLong(pattern, target, at)
}

//go:noinline
func oldMatchPiecesShort(pattern, target string, at int) bool {
	var buf [256]byte
	return oldMatchPieces(buf[:0], pattern, target, at)
}

// oldMatchPiecesLong is oldMatchPiecesShort with a buffer that takes longer to clear, for
// pieces as long as the targets of lookupLong.
//
//go:noinline
func oldMatchPiecesLong(pattern, target string, at int) bool {
	var buf [3 * 8 << 10]byte
	return oldMatchPieces(buf[:0], pattern, target, at)
}

// oldMatchPieces continues oldAfter the first star of a twofold pattern. Target is matched up to
// at.
func oldMatchPieces(buf []byte, pattern, target string, at int) bool {
	query := len(target) // where it begins
	if i := strings.IndexByte(target, '?'); i >= 0 {
		query = i + 1
	}
	for {
		pattern = strings.TrimLeft(pattern, "*")
		piece, more := pattern, false
		if star := strings.IndexByte(pattern, '*'); star >= 0 {
			piece, pattern, more = pattern[:star], pattern[star:], true
		}
		end := -1
		if len(piece) <= 1+3*len(target) { // else it is too long, even if it is all escapes
			compared := appendCompared(buf, piece, false, false)
			end = oldAfter(target, at, view(compared), more)
			if n := len(compared); end < 0 {
				if compared = appendCompared(buf, piece, true, false); len(compared) < n {
					end = oldAfter(target, max(at, query), view(compared), more)
				}
			}
		}
		if end < 0 || !more {
			return end >= 0
		}
		at = end
	}
}

// oldAfter returns the end of the first match of piece in target that begins at or behind at,
// or -1. The last piece, if there are no more, may end in "$".
func oldAfter(target string, at int, piece string, more bool) int {
	if n := len(piece) - 1; !more && n >= 0 && piece[n] == '$' {
		if strings.HasSuffix(target[at:], piece[:n]) {
			return len(target)
		}
		return -1
	}
	i := strings.Index(target[at:], piece)
	if i < 0 {
		return -1
	}
	return at + i + len(piece)
}
