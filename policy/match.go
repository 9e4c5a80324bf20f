package policy

import (
	"iter"
	"strings"
	"time"
)

// This file searches the rules of a policy. The layout of text and tab is in compile.go.

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

// at returns a rule of the block.
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

// line returns the line number of the rule.
func (h hit) line() int {
	width := uint32(h.p.lineWidth)
	at := endWord(h.p.tab[h.pos+blockEnds+h.len()]).end() + h.rule*width
	line := 0
	for i := range width {
		line |= int(h.p.text[at+i]) << (8 * i)
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

// none is the place of no rule.
const none = ^uint32(0)

// find returns the place of the rule that decides about target, or none.
func (b block) find(target string) uint32 {
	size := b.size()
	if size&blockIndexed != 0 {
		return b.search(target)
	}
	// The rules stand in the order of precedence: the first that matches decides.
	text := b.p.text
	ends := b.p.tab[b.pos+blockEnds:][:1+size.rules()]
	start := endWord(ends[0]).end()
	for i, word := range ends[1:] {
		end := endWord(word).end()
		if word&ruleWild != 0 {
			if word&ruleTwofold != 0 {
				if matchTwofold(text[start:end], target) {
					return uint32(i)
				}
			} else if matchWild(text[start:end], target) {
				return uint32(i)
			}
		} else if n := int(end - start); n <= len(target) {
			// Most patterns differ from the target in their last byte.
			if n == 0 || text[end-1] == target[n-1] && text[start:end] == target[:n] {
				return uint32(i)
			}
		}
		start = end
	}
	return none
}

// search finds the deciding rule of a large block. It compares the longest literal rule that
// target begins with and the wildcard rules whose stem target begins with.
func (b block) search(target string) uint32 {
	text, tab := b.p.text, b.p.tab[b.pos:]
	total := b.len()
	index := tab[blockEnds+1+total:]
	literals, stems := index[0], index[1]
	parents := index[2:][:literals]
	index = index[2+literals:]

	best := hit{rule: none}
	if i := under(target, text, tab[blockEnds:], parents, 1, literals); i > 0 {
		best = b.at(i - 1)
	}
	if stems == 0 {
		return best.rule
	}
	// All rules that begin with a wildcard share one stem. Most of them contain a pair of
	// bytes that target lacks, which a signature shows at once. Target's own signature is
	// worth computing only if there are some rules to try.
	const some = 8
	var pairs uint64
	signatures := index[stemWords*stems:]
	for i := under(target, text, index, index[stemParent:], stemWords, stems); i > 0; {
		stem := index[stemWords*(i-1):][:stemWords]
		first, last := stem[stemFirst], total
		if i < stems {
			last = index[stemWords*i+stemFirst]
		}
		if pairs == 0 && last-first > some {
			pairs = signature(target, false)
		}
		for r := first; r < last; r++ {
			if at := 2 * (r - literals); pairs != 0 && (uint64(signatures[at])|uint64(signatures[at+1])<<32)&^pairs != 0 {
				continue
			}
			h := b.at(r)
			if best.found() && h.octets() < best.octets() {
				break // the rules of a stem get shorter
			}
			if h.precedes(best) && h.matches(target) {
				best = h
			}
		}
		i = stem[stemParent]
	}
	return best.rule
}

// under returns 1 + the longest of n sorted keys that target begins with, or 0.
// All such keys are among the parents of the last key that does not sort after
// target. A key is what lies in text between two words of ends; the words of one
// key stand stride apart from those of the next, as do the parents.
func under(target, text string, ends, parents []uint32, stride, n uint32) uint32 {
	low, high := uint32(0), n
	for low < high {
		mid := (low + high) / 2
		if begin, end := between(ends[mid*stride:]); text[begin:end] <= target {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0
	}
	begin, end := between(ends[(low-1)*stride:])
	common := uint32(commonPrefix(text[begin:end], target))
	for low > 0 {
		if begin, end := between(ends[(low-1)*stride:]); end-begin <= common {
			break
		}
		low = parents[(low-1)*stride]
	}
	return low
}

// between returns where the text between two words begins and ends.
func between(ends []uint32) (begin, end uint32) {
	return endWord(ends[0]).end(), endWord(ends[1]).end()
}

// matches reports whether a rule with ruleWild matches target.
func (h hit) matches(target string) bool {
	if h.word&ruleTwofold != 0 {
		return matchTwofold(h.pattern(), target)
	}
	return matchWild(h.pattern(), target)
}

// matchWild reports whether a pattern with "*" or a final "$" matches target (§2.2.3). It
// searches the pieces between the stars one after the other, each as far left as it goes.
// Since "*" is the only operator, going back gains nothing: the time is linear for any
// pattern.
func matchWild(pattern, target string) bool {
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

// matchTwofold is matchWild for a pattern with escapes that are one with what they stand
// for (§2.2.2, figure 4), with or without special characters. In the target such bytes
// are decoded.
//
// The first "?" of a pattern begins the query, and what stands before the first star is in
// the path. A piece after a star and before a "?" may be in either: "/*%2Fa" matches the
// path /x%2Fa, and the query of /x?u=/a, where "/" and its escape are one. The path is
// searched first, then the query. ("/" and "?" themselves need no second search: the query
// holds no escapes of them.)
func matchTwofold(pattern, target string) bool {
	i, at, query := 0, 0, false
	for ; i < len(pattern) && pattern[i] != '*'; i++ {
		c := pattern[i]
		switch c {
		case '$':
			return at == len(target)
		case '?':
			query = true
		case '%':
			if d := unhex(pattern[i+1])<<4 | unhex(pattern[i+2]); isOne(d, query) {
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
		return matchPiecesShort(pattern, target, at)
	}
	return matchPiecesLong(pattern, target, at)
}

//go:noinline
func matchPiecesShort(pattern, target string, at int) bool {
	var buf [256]byte
	return matchPieces(buf[:0], pattern, target, at)
}

// matchPiecesLong is matchPiecesShort with a buffer that takes longer to clear, for
// pieces as long as the targets of lookupLong.
//
//go:noinline
func matchPiecesLong(pattern, target string, at int) bool {
	var buf [3 * 8 << 10]byte
	return matchPieces(buf[:0], pattern, target, at)
}

// matchPieces continues after the first star of a twofold pattern. Target is matched up to
// at.
func matchPieces(buf []byte, pattern, target string, at int) bool {
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
			compared := appendCompared(buf, piece, false)
			end = after(target, at, view(compared), more)
			if n := len(compared); end < 0 {
				if compared = appendCompared(buf, piece, true); len(compared) < n {
					end = after(target, max(at, query), view(compared), more)
				}
			}
		}
		if end < 0 || !more {
			return end >= 0
		}
		at = end
	}
}

// after returns the end of the first match of piece in target that begins at or behind at,
// or -1. The last piece, if there are no more, may end in "$".
func after(target string, at int, piece string, more bool) int {
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

// signature returns the set of adjacent pairs of bytes in s, as hashes. A pattern can match
// only if its set is part of the target's.
func signature[S string | []byte](s S, pattern bool) (set uint64) {
	if pattern && s[len(s)-1] == '$' {
		s = s[:len(s)-1]
	}
	for i := 1; i < len(s); i++ {
		if a, b := s[i-1], s[i]; !pattern || a != '*' && b != '*' {
			set |= 1 << ((uint32(a)<<8 | uint32(b)) * 2654435761 >> 26)
		}
	}
	return set
}

// blockWord returns where the blocks of a name, counted from 1, stand.
func (p *Policy) blockWord(name uint32) blockWord { return blockWord(p.tab[2*name-1]) }

// blocks yields the blocks of a name, counted from 1.
func (p *Policy) blocks(name uint32) iter.Seq[block] {
	return func(yield func(block) bool) {
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
}

// begin returns the line at which the first group of a name begins.
func (p *Policy) begin(name uint32) (line uint32) {
	for b := range p.blocks(name) {
		return b.groups()[0] // both are in the order of the file
	}
	return 0
}

// delay returns the Crawl-delay of the block.
func (b block) delay() (time.Duration, bool) {
	if b.size()&blockDelay == 0 {
		return 0, false
	}
	return time.Duration(b.p.tab[b.pos-2]) | time.Duration(b.p.tab[b.pos-1])<<32, true
}

// groups returns the lines at which the groups of the block begin.
func (b block) groups() []uint32 {
	from, end := fromWord(b.p.tab[b.pos+blockFrom]), b.pos
	if !from.isGroups() {
		return []uint32{from.number()}
	}
	if b.size()&blockDelay != 0 {
		end -= 2
	}
	return b.p.tab[end-from.number() : end]
}
