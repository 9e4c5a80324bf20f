package policy

import (
	"iter"
	"strings"
	"time"
)

// block is the rules of one group, at a position of the tab of p.
type block struct {
	p   *Policy
	pos uint32
}

// hit is a rule that matches, the zero hit none.
type hit struct {
	block
	rule       uint32 // its place in the block
	start, end uint32 // its pattern in text
	flags      uint32
	found      bool
}

func (b block) len() uint32   { return b.p.tab[b.pos+blockSize] >> 2 }
func (b block) indexed() bool { return b.p.tab[b.pos+blockSize]&blockIndexed != 0 }

// at returns a rule of the block as a hit.
func (b block) at(i uint32) hit {
	words := b.p.tab[b.pos+blockRules:]
	start := b.p.tab[b.pos+blockText]
	if i > 0 {
		start = words[i-1] >> rulePacked
	}
	return hit{b, i, start, words[i] >> rulePacked, words[i] & (1<<rulePacked - 1), true}
}

func (h hit) pattern() string { return h.p.text[h.start:h.end] }

// line returns the line number of the rule.
func (h hit) line() int {
	n, width := h.len(), uint32(h.p.lineWidth)
	at := h.p.tab[h.pos+blockRules+n-1]>>rulePacked + h.rule*width
	line := 0
	for i := range width {
		line |= int(h.p.text[at+i]) << (8 * i)
	}
	return line
}

// asRule returns the rule as it stands in the file.
func (h hit) asRule() Rule {
	r := Rule{Allow: h.flags&ruleAllow != 0, Pattern: h.pattern(), Line: h.line()}
	if h.flags&ruleDerived != 0 {
		for i := range h.len() {
			if o := h.at(i); o.flags&ruleDerived == 0 && o.line() == r.Line {
				r.Pattern = o.pattern()
			}
		}
	}
	return r
}

// precedes reports whether the rule h decides where o matches as well: it has
// more octets, or as many and allows (§2.2.2), or stands further up.
func (h hit) precedes(o hit) bool {
	if !o.found || !h.found {
		return h.found
	}
	if d := int(h.end-h.start) - int(o.end-o.start); d != 0 {
		return d > 0
	}
	if h.flags&ruleAllow != o.flags&ruleAllow {
		return h.flags&ruleAllow != 0
	}
	return h.line() < o.line()
}

// matches reports whether the rule matches the target (§2.2.2, §2.2.3).
func (h hit) matches(target string) bool {
	if h.flags&ruleWild != 0 {
		return matchWild(h.pattern(), target)
	}
	return strings.HasPrefix(target, h.pattern())
}

// find returns the rule of the block that decides about target.
func (b block) find(target string) hit {
	if b.indexed() {
		return b.search(target)
	}
	// The rules stand in the order of precedence: the first that matches decides.
	tab, text := b.p.tab, b.p.text
	words := tab[b.pos+blockRules:][:b.len()]
	start := tab[b.pos+blockText]
	for i, w := range words {
		end := w >> rulePacked
		pattern := text[start:end]
		if w&ruleWild != 0 {
			if matchWild(pattern, target) {
				return b.at(uint32(i))
			}
		} else if n := len(pattern); n <= len(target) && (n == 0 || target[n-1] == pattern[n-1]) && target[:n] == pattern {
			return b.at(uint32(i))
		}
		start = end
	}
	return hit{}
}

// search finds the deciding rule of a large block: the longest literal rule that
// target begins with, against the wildcard rules whose stem it begins with.
func (b block) search(target string) hit {
	var best hit
	literals, stems := b.indexes()
	if i := literals.under(target); i > 0 {
		best = b.at(i - 1)
	}
	var sig uint64
	for i := stems.under(target); i > 0; i = stems.parent(i - 1) {
		first, last := stems.rules(i - 1)
		for r := first; r < last; r++ {
			h := b.at(r)
			if best.found && h.end-h.start < best.end-best.start {
				break // the rules of a stem get shorter
			}
			if last-first > 8 {
				if sig == 0 {
					sig = signature(target, false)
				}
				if stems.signature(r)&^sig != 0 {
					continue
				}
			}
			if h.precedes(best) && matchWild(h.pattern(), target) {
				best = h
			}
		}
	}
	return best
}

// keys are the sorted patterns of the literal rules of a large block, or its stems.
type keys struct {
	block
	n     uint32
	at0   uint32 // position of the first key's words
	width uint32 // words per key: 1 for literals, 2 for stems
	first uint32 // first wildcard rule
	total uint32 // rules of the block
}

func (b block) indexes() (literals, stems keys) {
	total := b.len()
	at := b.pos + blockRules + total
	nl, ns := b.p.tab[at], b.p.tab[at+1]
	literals = keys{block: b, n: nl, at0: at + 2, width: 1}
	stems = keys{block: b, n: ns, at0: at + 2 + nl, width: 2, first: nl, total: total}
	return literals, stems
}

func (k *keys) key(i uint32) string {
	if k.width == 1 {
		return k.at(i).pattern()
	}
	p := k.at(k.p.tab[k.at0+2*i+1]).pattern()
	return p[:stemLen(p)]
}

func (k *keys) parent(i uint32) uint32 { return k.p.tab[k.at0+k.width*i] }

// rules returns the range of wildcard rules that have the i-th stem.
func (k *keys) rules(i uint32) (first, last uint32) {
	first, last = k.p.tab[k.at0+2*i+1], k.total
	if i+1 < k.n {
		last = k.p.tab[k.at0+2*i+3]
	}
	return first, last
}

func (k *keys) signature(rule uint32) uint64 {
	at := k.at0 + 2*k.n + 2*(rule-k.first)
	return uint64(k.p.tab[at]) | uint64(k.p.tab[at+1])<<32
}

// under returns 1 + the longest key that target begins with, or 0. All such keys
// are among the parents of the last key that does not sort after target.
func (k *keys) under(target string) uint32 {
	low, high := uint32(0), k.n
	for low < high {
		if mid := (low + high) / 2; k.key(mid) <= target {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0
	}
	common := commonPrefix(k.key(low-1), target)
	for low > 0 && len(k.key(low-1)) > common {
		low = k.parent(low - 1)
	}
	return low
}

// matchWild reports whether a pattern with "*" or a final "$" matches target
// (§2.2.3). Cut at its stars, the pieces of the pattern are looked for one after
// the other, each as far left as it goes: since "*" is the only operator, nothing
// is gained by going back, and the time is linear whatever the pattern.
func matchWild(pattern, target string) bool {
	anchored := pattern[len(pattern)-1] == '$'
	if anchored {
		pattern = pattern[:len(pattern)-1]
	}
	stem, pattern, star := strings.Cut(pattern, "*")
	if !strings.HasPrefix(target, stem) {
		return false
	}
	target = target[len(stem):]
	if !star {
		return !anchored || target == ""
	}
	for {
		piece, rest, star := strings.Cut(pattern, "*")
		if !star {
			if anchored {
				return strings.HasSuffix(target, piece)
			}
			return strings.Contains(target, piece)
		}
		i := strings.Index(target, piece)
		if i < 0 {
			return false
		}
		target, pattern = target[i+len(piece):], rest
	}
}

// signature returns a set of the pairs of octets that stand side by side in s.
// A pattern can match only if the set of its pairs is part of the target's.
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

// blocks yields the blocks of a name, counted from 1.
func (p *Policy) blocks(name uint32) iter.Seq[block] {
	return func(yield func(block) bool) {
		word := p.tab[2*name-1]
		if word&1 == 0 {
			yield(block{p, word >> 1})
			return
		}
		list := p.tab[word>>1:]
		for _, pos := range list[1 : 1+list[0]] {
			if !yield(block{p, pos}) {
				return
			}
		}
	}
}

// delay returns the Crawl-delay of the block.
func (b block) delay() (time.Duration, bool) {
	if b.p.tab[b.pos+blockSize]&blockDelay == 0 {
		return 0, false
	}
	return time.Duration(b.p.tab[b.pos-2]) | time.Duration(b.p.tab[b.pos-1])<<32, true
}

// groups returns the lines at which the groups of the block begin.
func (b block) groups() []uint32 {
	from, end := b.p.tab[b.pos+blockFrom], b.pos
	if from&1 == 0 {
		return []uint32{from >> 1}
	}
	if b.p.tab[b.pos+blockSize]&blockDelay != 0 {
		end -= 2
	}
	return b.p.tab[end-from>>1 : end]
}

// includes reports whether the group that begins at line is part of the block.
func (b block) includes(line int) bool {
	for _, l := range b.groups() {
		if int(l) == line {
			return true
		}
	}
	return false
}
