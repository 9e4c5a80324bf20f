package policy

import (
	"iter"
	"sort"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// This file searches the rules of a policy. The layout of text and tab is in layout.go.

// block is the rules of one group, at a position of the tab of p.
type block struct {
	p   *Policy
	pos uint32
}

func (b block) size() sizeWord { return sizeWord(b.p.tab[b.pos+blockSize]) }
func (b block) len() uint32    { return b.size().rules() }

// hit is a rule of a block. The zero hit is none. It has no more than four fields: larger
// structs are not passed in registers.
type hit struct {
	block
	rule  uint32  // its place in the block
	start uint32  // of its pattern in text
	word  endWord // of the pattern
}

func (b block) at(i uint32) hit {
	ends := b.p.tab[b.pos+blockEnds+i:][:2]
	return hit{b, i, endWord(ends[0]).end(), endWord(ends[1])}
}

func (h hit) found() bool     { return h.p != nil }
func (h hit) end() uint32     { return h.word.end() }
func (h hit) octets() uint32  { return h.end() - h.start }
func (h hit) pattern() string { return h.p.text[h.start:h.end()] }
func (h hit) allow() bool     { return h.word&ruleAllow != 0 }
func (h hit) derived() bool   { return h.word&ruleDerived != 0 }

func (h hit) line() int {
	width := uint32(h.p.lineWidth &^ listsNames)
	at := endWord(h.p.tab[h.pos+blockEnds+h.len()]).end() + h.rule*width
	line := 0
	for i := at + width; i > at; i-- {
		line = line<<8 | int(h.p.text[i-1])
	}
	return line
}

// asRule returns the rule as the file has it.
func (h hit) asRule() Rule {
	if h.derived() {
		h = h.source()
	}
	return Rule{Allow: h.allow(), Pattern: h.pattern(), Line: h.line()}
}

// source returns the rule of the same line that a derived one comes from.
func (h hit) source() hit {
	for i := range h.len() {
		if o := h.at(i); !o.derived() && o.line() == h.line() {
			return o
		}
	}
	return h
}

// precedes reports whether h decides if o matches too. It does if it has more octets, or as
// many and allows (§2.2.2), or else stands further up.
func (h hit) precedes(o hit) bool {
	switch {
	case !o.found() || !h.found():
		return h.found()
	case h.octets() != o.octets():
		return h.octets() > o.octets()
	case h.allow() != o.allow():
		return h.allow()
	}
	return h.line() < o.line()
}

// misses reports whether no rule can match a target, for its second byte. The rest need not be
// in normal form.
func (b block) misses(target string) bool {
	words := b.p.tab[b.pos:]
	return sizeWord(words[blockSize])&blockOpen == 0 && len(target) > 1 && words[blockNext]>>(target[1]&31)&1 == 0 &&
		kinds[target[1]]&isChanged == 0 && target != robots
}

// A question is a target in normal form, as far as rules see it, and what is known of it.
type question struct {
	target string
	second kindSet // the kind of its second byte
	all    kindSet // the kinds of all bytes
	*effort
}

// newQuestion returns the question for a target whose bytes are of the kinds in all.
func newQuestion(target string, all kindSet, e *effort) question {
	q := question{target: target, all: all, effort: e}
	if len(target) > 1 {
		q.second = kinds[target[1]]
	}
	return q
}

// has reports whether the target has what the key of a rule says.
func (q *question) has(word endWord) bool {
	set := q.second
	if word>>flagBits&endWord(keyAnywhere) != 0 {
		set = q.all
	}
	return set>>(word>>flagBits&63)&1 != 0
}

func (q *question) matches(pattern string, word endWord) bool {
	if word&ruleWild != 0 {
		return q.matchesWild(pattern, word)
	}
	return strings.HasPrefix(q.target, pattern)
}

// matchesWild is matches for a rule with ruleWild.
func (q *question) matchesWild(pattern string, word endWord) bool {
	if word&ruleTwofold != 0 {
		return q.matchTwofold(pattern)
	}
	return q.matchWild(pattern)
}

// matchWild reports whether a pattern with "*" or a final "$" matches (§2.2.3). It searches
// the pieces between the stars one after the other, each as far left as it goes. Since "*" is
// the only operator, going back gains nothing: the time is linear for any pattern.
func (q *question) matchWild(pattern string) bool {
	target := q.target
	at := 0
	for ; pattern[at] != '*'; at++ {
		switch {
		case at == len(pattern)-1: // "$"
			return len(target) == at
		case at == len(target) || pattern[at] != target[at]:
			return false
		}
	}
	pattern = pattern[at+1:]
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
		i := q.index(pattern[:star], at)
		if i < 0 {
			return false
		}
		pattern, at = pattern[star+1:], i+star
	}
	if anchored {
		return strings.HasSuffix(target[at:], pattern)
	}
	return pattern == "" || q.index(pattern, at) >= 0
}

// matchTwofold is matchWild for a pattern with escapes that are one with what they stand
// for (§2.2.2, figure 4), with or without special characters. In the target such bytes
// are decoded.
//
// The first "?" of a pattern begins the query, and what stands before the first star is in
// the path. A piece after a star and before a "?" may be in either: "/*%2Fa" matches the
// path /x%2Fa, and the query of /x?u=/a, where "/" and its escape are one. The path is
// searched first, then the query. ("/" and "?" themselves need no second search: the query
// holds no escapes of them.)
func (q *question) matchTwofold(pattern string) bool {
	buf := buffers.Get().(*[3 * 8 << 10]byte)
	defer buffers.Put(buf)
	target := q.target
	query := len(target) // where it begins
	if i := strings.IndexByte(target, '?'); i >= 0 {
		query = i + 1
	}
	longest := 1 + 3*len(target) // a piece that is longer matches nothing, even if it is all escapes
	piece, pattern, more := strings.Cut(pattern, "*")
	if len(piece) > longest {
		return false
	}
	stem := view(appendCompared(buf[:0], piece, false, false))
	if whole, ok := strings.CutSuffix(stem, "$"); ok && !more {
		return target == whole
	}
	if !strings.HasPrefix(target, stem) {
		return false
	}
	for at := len(stem); more; {
		piece, pattern, more = strings.Cut(strings.TrimLeft(pattern, "*"), "*")
		if len(piece) > longest {
			return false
		}
		compared := appendCompared(buf[:0], piece, false, false)
		end := q.after(view(compared), at, more)
		if n := len(compared); end < 0 {
			if compared = appendCompared(buf[:0], piece, true, false); len(compared) < n {
				end = q.after(view(compared), max(at, query), more)
			}
		}
		if at = end; end < 0 {
			return false
		}
	}
	return true
}

// after returns the end of the first match of piece in the target that begins at or behind
// at, or -1. The last piece, if there are no more, may end in "$".
func (q *question) after(piece string, at int, more bool) int {
	target := q.target
	if n := len(piece) - 1; !more && n >= 0 && piece[n] == '$' {
		if strings.HasSuffix(target[at:], piece[:n]) {
			return len(target)
		}
		return -1
	}
	i := q.index(piece, at)
	if i < 0 {
		return -1
	}
	return i + len(piece)
}

// blockWord returns where the blocks of a name, counted from 1, stand.
func (p *Policy) blockWord(name uint32) blockWord { return blockWord(p.tab[2*name-1]) }

// blocks yields the blocks of a name, counted from 1; of 0 there are none.
func (p *Policy) blocks(name uint32) iter.Seq[block] {
	return func(yield func(block) bool) { p.eachBlock(name, yield) } // inlined, it takes no memory
}

func (p *Policy) eachBlock(name uint32, yield func(block) bool) {
	if name == 0 {
		return
	}
	word := p.blockWord(name)
	if !word.isList() {
		yield(block{p, word.pos()})
		return
	}
	list := p.tab[word.pos():]
	for _, pos := range list[1 : 1+list[0]] {
		if !yield(block{p, pos}) {
			return
		}
	}
}

// begin returns the line at which the first group of a name begins.
func (p *Policy) begin(name uint32) (line uint32) {
	for b := range p.blocks(name) {
		line, _ := b.groups() // both are in the order of the file
		return line
	}
	return 0
}

func (b block) delay() (time.Duration, bool) {
	if b.size()&blockDelay == 0 {
		return 0, false
	}
	return time.Duration(b.p.tab[b.pos-2]) | time.Duration(b.p.tab[b.pos-1])<<32, true
}

// groups returns the line at which the first group of the block begins and, if there are several, the lines of all.
func (b block) groups() (first uint32, several []uint32) {
	from, end := fromWord(b.p.tab[b.pos+blockFrom]), b.pos
	if !from.isGroups() {
		return from.number(), nil
	}
	if b.size()&blockDelay != 0 {
		end -= 2
	}
	several = b.p.tab[end-from.number() : end]
	return several[0], several
}

// appendGroups appends the lines at which the groups of the block begin.
func (b block) appendGroups(lines []uint32) []uint32 {
	first, several := b.groups()
	if several == nil {
		return append(lines, first)
	}
	return append(lines, several...)
}

// find returns the name that stands for token, counted from 1, or 0. Names are sorted, without
// regard to case.
func (p *Policy) find(token string) uint32 {
	// The empty token is part of every name, and "*" asks for the default group.
	r := p.dialect.reading()
	parts := r.substring && token != "" && token != "*"
	if i, ok := sort.Find(int(p.names), func(i int) int { return ascii.FoldCompare(token, p.nameAt(uint32(i))) }); ok && !(parts && r.firstRecord) {
		return uint32(i) + 1
	}
	if parts {
		return p.findPart(token)
	}
	return 0
}

// findPart returns the name that contains token and stands first in the file.
func (p *Policy) findPart(token string) (name uint32) {
	line := uint32(0)
	for i := range p.names {
		if foldContains(p.nameAt(i), token) {
			if l := p.begin(i + 1); name == 0 || l < line { // names are not in the order of the file
				name, line = i+1, l
			}
		}
	}
	return name
}

func (p *Policy) nameAt(i uint32) string {
	word := nameWord(p.tab[2*i])
	return p.text[word.at():][:word.len()]
}
