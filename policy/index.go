package policy

import (
	"bytes"
	"math/bits"
)

// This file finds the few rules of a large block that a target can match. Each rule is found
// by one gram: four bytes of its pattern without a wildcard. A gram before the first wildcard
// is fixed: the target must have it at the same place. Any other gram floats: the target may
// have it anywhere. So the time depends on the length of the target, not on the number of
// rules.
//
// The index follows the words of the rules:
//
//	the set of the second bytes of the rules, four words
//	the set of the places at which fixed grams begin, two words
//	1 if there are floating grams
//	the number of rules that have no gram of their own: all targets try them
//	links to these rules
//	a hash table of links to the others: see indexSlots
const (
	indexSeconds  = 0
	indexFixed    = iota + 3
	indexFloating = iota + 4
	indexCommon
	indexLinks

	gramSize = 4
	maxFixed = 64  // fixed grams begin before it
	near     = 16  // bytes in which a fixed gram is sought first
	maxGrams = 256 // bytes of a pattern in which a gram is sought
	maxProbe = 8   // slots in which a link may stand
)

// A link is 0, or 1 + the place of a rule, and above it linkMore and the tag of the hash of
// its gram. Most other grams of the same slot have another tag.
type link uint32

const (
	placeBits = 17 // a file has at most 500 KiB / len("allow:\n") rules

	// linkMore: links of this slot, or of one before it, stand in the next one.
	linkMore = link(1 << placeBits)
	linkTag  = ^(linkMore<<1 - 1)
)

func newLink(hash, rule uint32) link { return link(hash)&linkTag | link(rule+1) }
func (l link) rule() uint32          { return uint32(l)&(1<<placeBits-1) - 1 } // none for 0

// gramAt returns the gram of s at a place.
func gramAt(s string, i int) uint32 {
	s = s[i : i+gramSize]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// gramHash hashes a gram. Where is 0 if it floats, else 1 + its place. The upper bits are the
// tag; of the lower ones, as many as are needed are the slot.
func gramHash(gram uint32, where int) uint32 {
	return uint32((uint64(gram) | uint64(where)<<32) * 0x9E3779B97F4A7C15 >> 32)
}

// indexSlots returns how many slots the index of so many rules has: more than rules, if they
// are not as many as only a hostile file has.
func indexSlots(rules uint32) uint32 { return 1 << min(bits.Len32(rules+rules/2), placeBits-1) }

// writeIndex writes the index of the block whose rules were written last.
func (c *compiler) writeIndex() {
	head := len(c.tab)
	c.tab = append(c.tab, make([]uint32, indexLinks)...)
	for _, end := range c.tab[head-len(c.order) : head] {
		second := endWord(end) & secondMask >> flagBits
		c.tab[head+indexSeconds+int(second/32)] |= 1 << (second % 32)
	}
	n := int(indexSlots(uint32(len(c.order))))
	c.slots = append(c.slots[:0], make([]link, n)...)
	for i, o := range c.order {
		g, ok := c.gram(c.rules[uint32(o)])
		if !ok {
			c.tab = append(c.tab, uint32(newLink(0, uint32(i))))
			c.tab[head+indexCommon]++
			continue
		}
		if g.where == 0 {
			c.tab[head+indexFloating] = 1
		} else {
			c.tab[head+indexFixed+(g.where-1)/32] |= 1 << ((g.where - 1) % 32)
		}
		at := int(g.hash)
		for range g.probes {
			c.slots[at&(n-1)] |= linkMore
			at++
		}
		c.slots[at&(n-1)] = newLink(g.hash, uint32(i))
	}
	for _, l := range c.slots {
		c.tab = append(c.tab, uint32(l))
	}
}

// gram is one by which a rule can be found.
type gram struct {
	hash   uint32
	where  int // as in gramHash
	probes int // slots that are taken already
	shared int // of them, by rules that are found by the same gram
}

// gram returns a gram of a pattern that no other rule is found by, or else one that the fewest
// are, if there is any. The last of those near the beginning comes first: a question looks only
// at places at which a fixed gram begins, and most targets with this one have those before it.
func (c *compiler) gram(r ruleLine) (best gram, ok bool) {
	p := c.plainPattern(r)
	stem := len(p)
	if r.flags&ruleWild != 0 {
		p, stem = splitStem(p)
	}
	first := min(stem, near) - gramSize
	for i := range min(len(p), maxGrams) - gramSize + 1 {
		if i <= first {
			i = first - i
		}
		where := 0
		if i+gramSize <= stem {
			where = i + 1
		} else if bytes.IndexByte(p[max(i, stem):i+gramSize], '*') >= 0 {
			continue
		}
		if where > maxFixed {
			continue
		}
		word := gramAt(view(p), i)
		g := gram{hash: gramHash(word, where), where: where}
		for ; g.probes < maxProbe; g.probes++ {
			l := c.slots[(int(g.hash)+g.probes)&(len(c.slots)-1)]
			if l == 0 {
				break
			}
			if (l^link(g.hash))&linkTag == 0 {
				g.shared++
			}
		}
		if g.probes < maxProbe && (!ok || g.shared < best.shared) {
			best, ok = g, true
		}
		if ok && best.shared == 0 {
			break
		}
	}
	return best, ok
}

// search returns the place of the rule that decides. It gives up if the target has the grams
// of more than a few rules.
func (b block) search(target string, e *effort) (rule uint32, ok bool) {
	index := b.p.tab[b.pos+blockEnds+1+b.len():]
	common := index[indexLinks:][:index[indexCommon]]
	if len(common) > patience {
		return none, false
	}
	slots := index[indexLinks+len(common):][:indexSlots(b.len())]
	s := searched{block: b, best: none, slots: slots}
	for _, l := range common {
		s.try(link(l).rule(), target, e)
	}
	mask := uint32(len(slots) - 1)
	for set := uint64(index[indexFixed]) | uint64(index[indexFixed+1])<<32; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if i+gramSize > len(target) {
			break
		}
		h := gramHash(gramAt(target, i), i+1)
		if l := link(slots[h&mask]); (l^link(h))&linkTag == 0 || l&linkMore != 0 {
			s.probe(h, target, e)
		}
	}
	if index[indexFloating] == 0 {
		return s.best, s.tried <= patience
	}
	for i := range len(target) - gramSize + 1 {
		h := gramHash(gramAt(target, i), 0)
		if l := link(slots[h&mask]); (l^link(h))&linkTag == 0 || l&linkMore != 0 {
			s.probe(h, target, e)
		}
	}
	return s.best, s.tried <= patience
}

// patience is how many rules a search tries before it gives up. It may try a rule again for
// each gram of the target.
const patience = 64

// searched is what a search found.
type searched struct {
	block
	slots []uint32
	best  uint32 // the first rule that matches, or none
	tried int
}

// probe tries the rules with the gram of a hash.
func (s *searched) probe(hash uint32, target string, e *effort) {
	for i := range uint32(maxProbe) {
		l := link(s.slots[(hash+i)&uint32(len(s.slots)-1)])
		if (l^link(hash))&linkTag == 0 && s.tried <= patience {
			s.try(l.rule(), target, e)
		}
		if l&linkMore == 0 {
			return
		}
	}
}

func (s *searched) try(rule uint32, target string, e *effort) {
	if rule < s.best {
		if s.tried++; s.at(rule).matches(target, e) {
			s.best = rule
		}
	}
}
