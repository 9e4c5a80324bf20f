package policy

import (
	"bytes"
	"iter"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// This file finds the few rules of a large block that a target can match. Each rule is found
// by one gram: four bytes of its pattern without a wildcard. A gram before the first wildcard
// is fixed: the target must have it at the same place. Any other gram floats: the target may
// have it anywhere. So the time depends on the length of the target, not on the number of
// rules.
//
// The index stands behind the words of the rules, where Parse keeps room for it:
//
//	how many questions came before it was written, or indexWritten
//	the places at which fixed grams begin, a set of two words
//	the kinds of the bytes with which floating grams begin, a set of two words
//	the number of rules that have no gram of their own: all targets try them
//	room for the places of mostCommon of these rules
//	a hash table of links to the others: see slots
//
// It is written by the question that it pays for, as crawlers ask most files once: over 500 real
// files, to write an index takes as long as some twenty questions without it (7 where patterns
// begin with a wildcard, hundreds where nearly all rules are passed over by a byte that the target
// has not). All other words of a policy are never written to.
const (
	indexAsked  = 0
	indexPlaces = 1
	indexFirsts = 3
	indexCommon = 5
	indexRules  = 6

	indexPays    = 20      // questions
	indexWritten = 1 << 31 // more than any number of callers could add

	gramSize = 4
	maxFixed = 64 // fixed grams begin before it
	maxGrams = 32 // bytes of a pattern in which a gram is sought
	maxProbe = 16 // slots in which a link may stand
)

// mostCommon is how many of the rules of an index may have no gram of their own. With more, none is written. The
// indexes of 500 real files need 3 % at most.
func mostCommon(rules uint32) uint32 { return min(rules/16, patience) }

// indexSize is how many words the index of so many rules takes.
func indexSize(rules uint32) uint32 {
	s := newSlots(rules)
	return indexRules + mostCommon(rules) + (s.n+s.half)>>s.half
}

// slots is a hash table of links. A link is 0, or from the lowest bit: linkMore, a tag of the
// hash of the gram, 1 + the place of a rule, and more of the tag. Most other grams of the same
// slot have another tag. In the index of fewer than halfRules, only the lower half of a link is
// kept: two of them share a word.
type slots struct {
	words []uint32
	n     uint32
	half  uint32 // 1 if only halves are kept
}

const (
	linkMore  = 1 // links of this slot, or of one before it, stand in the next one
	linkPlace = 6 // the bit at which the place begins
	linkTag   = ^uint32((1<<placeBits-1)<<linkPlace | linkMore)
	halfRules = 1 << (16 - linkPlace)
)

// newSlots returns the slots of so many rules, without links.
func newSlots(rules uint32) slots {
	s := slots{n: rules + rules/2 + maxProbe}
	if rules < halfRules {
		s.half = 1
	}
	return s
}

// first returns the first of maxProbe slots in which a link may stand.
func (s *slots) first(hash uint32) uint32 { return uint32(uint64(hash) * uint64(s.n-maxProbe) >> 32) }

func newLink(hash, rule uint32) uint32 {
	return (hash^hash<<placeBits)&linkTag | (rule+1)<<linkPlace
}

// placeOf returns the place of the rule of a link, or none.
func placeOf(link uint32) uint32 { return link>>linkPlace&(1<<placeBits-1) - 1 }

func gramAt(s string, i int) uint32 {
	s = s[i : i+gramSize]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// gramHash hashes a gram. For one that floats, where is 0; for a fixed one, 1 + its place. The
// lower bits are the tag; the upper ones choose the slot.
func gramHash(gram uint32, where int) uint32 {
	return uint32((uint64(gram) | uint64(where)<<32) * 0x9E3779B97F4A7C15 >> 32)
}

// A set of kinds or places takes two words of the index.
func setAt(words []uint32) uint64 { return uint64(words[0]) | uint64(words[1])<<32 }

func addTo(words []uint32, set uint64) {
	words[0] |= uint32(set)
	words[1] |= uint32(set >> 32)
}

func (b block) index() []uint32 { return b.p.tab[b.pos+blockEnds+1+b.len():] }

// mayIndex reports whether the index can be searched. It counts the questions until it pays to write the index,
// and then writes it, unless it would be of no use.
func (b block) mayIndex() bool {
	asked := &b.index()[indexAsked]
	if n := atomic.LoadUint32(asked); n >= indexPays {
		return n >= indexWritten
	}
	if atomic.AddUint32(asked, 1) != indexPays {
		return false
	}
	written := b.writeIndex()
	if written {
		atomic.StoreUint32(asked, indexWritten)
	}
	return written
}

// writeIndex writes the index. It reports false if too many rules have no gram of their own.
func (b block) writeIndex() bool {
	c := compilers.Get().(*compiler)
	defer c.release()
	c.body = unsafe.Slice(unsafe.StringData(b.p.text), len(b.p.text)) // only to read
	for i := range b.len() {
		h := b.at(i)
		c.rules = append(c.rules, ruleLine{off: h.start, n: h.octets(), flags: h.word.flags()})
	}
	words := c.slots.words[:0]
	c.slots = newSlots(b.len())
	c.slots.words = append(words, make([]uint32, c.slots.n)...)
	c.countGrams()
	index, most := b.index(), mostCommon(b.len())
	for i, r := range c.rules {
		g, ok := c.gram(index, r)
		switch common := index[indexCommon]; {
		case !ok && common == most:
			return false
		case !ok:
			index[indexRules+common] = uint32(i)
			index[indexCommon]++
			continue
		case g.where == 0:
			addTo(index[indexFirsts:], uint64(g.first))
		default:
			addTo(index[indexPlaces:], 1<<(g.where-1))
		}
		links := c.slots.words[c.slots.first(g.hash):]
		for at := range g.probes {
			links[at] |= linkMore
		}
		links[g.probes] = newLink(g.hash, uint32(i))
	}
	half, links := c.slots.half, index[indexRules+most:]
	for i, link := range c.slots.words {
		if half&uint32(i) == 1 {
			links[i>>1] = links[i>>1]&0xFFFF | link<<16
		} else {
			links[i>>half] = link
		}
	}
	return true
}

// grams yields the places of a pattern at which grams begin, and each time its where, as in
// gramHash.
func grams(p []byte, stem int) iter.Seq2[int, int] {
	return func(yield func(i, where int) bool) {
		for i := 0; i <= min(stem-gramSize, maxFixed-1); i += 1 + min(i/8, gramSize-1) {
			if !yield(i, i+1) {
				return
			}
		}
		for i := stem + 1; i <= min(len(p), stem+maxGrams)-gramSize; i++ {
			if star := bytes.LastIndexByte(p[i:i+gramSize], '*'); star >= 0 {
				i += star
			} else if !yield(i, 0) {
				return
			}
		}
	}
}

// countFull is the count of a gram whose slots are all taken.
const countFull = 255

// countGrams counts which grams how many rules of the block have. Grams may share a count.
func (c *compiler) countGrams() {
	n := min(bits.Len(uint(len(c.rules)))+3, 18)
	c.counts = append(c.counts[:0], make([]uint8, 1<<n)...)
	for _, r := range c.rules {
		p, stem := c.compared(r)
		for i, where := range grams(p, stem) {
			if at := c.countOf(gramHash(gramAt(view(p), i), where)); *at < countFull-1 {
				*at++
			}
		}
	}
}

func (c *compiler) countOf(hash uint32) *uint8 { return &c.counts[int(hash)&(len(c.counts)-1)] }

// gram is one by which a rule can be found.
type gram struct {
	hash   uint32
	where  int     // as in gramHash
	first  kindSet // of its first byte
	probes int     // slots that are taken already
	cost   int     // of finding the rule by it
}

// What it costs to find a rule by a gram.
const (
	costShared = 32 // for each other rule that has it: it may be tried in vain
	costOpen   = 16 // if none begins at the same place, or with the same byte: one more to look at
	costProbe  = 1  // for each slot that is taken
	costLittle = 4  // no other gram is sought
	costAll    = 1 << 30
)

// gram returns a gram of a pattern that costs little, if there is one with a slot that is free.
func (c *compiler) gram(index []uint32, r ruleLine) (best gram, ok bool) {
	p, stem := c.compared(r)
	best.cost = costAll
	for i, where := range grams(p, stem) {
		g := gram{hash: gramHash(gramAt(view(p), i), where), where: where, first: kinds[p[i]]}
		count := c.countOf(g.hash)
		g.cost = costShared * int(*count-1)
		if *count == countFull || g.cost >= best.cost {
			continue // else a file of rules that are all alike would be slow
		}
		open := uint64(g.first) & setAt(index[indexFirsts:])
		if where > 0 {
			open = 1 << i & setAt(index[indexPlaces:])
		}
		if open == 0 {
			g.cost += costOpen
		}
		links := c.slots.words[c.slots.first(g.hash):]
		for g.probes < maxProbe && links[g.probes] != 0 && g.cost < best.cost {
			g.probes++
			g.cost += costProbe
		}
		if g.probes == maxProbe {
			*count = countFull
		} else if g.cost < best.cost {
			best = g
		}
		if best.cost <= costLittle {
			break
		}
	}
	return best, best.cost < costAll
}

// search returns the place of the rule that decides. It gives up if there is no index, or if the
// target has the grams of more than a few rules.
func (b block) search(q *question) (rule uint32, ok bool) {
	if !b.mayIndex() {
		return none, false
	}
	index := b.index()
	s := searched{block: b, best: none, slots: newSlots(b.len())}
	s.words = index[indexRules+mostCommon(b.len()):]
	for _, i := range index[indexRules:][:index[indexCommon]] {
		s.try(i, q)
	}
	places := setAt(index[indexPlaces:])
	if len(q.target) < 2 || b.p.tab[b.pos+blockNext]>>(q.target[1]&31)&1 == 0 {
		places = 0
	}
	for set := places; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if i+gramSize > len(q.target) {
			break
		}
		s.probe(gramHash(gramAt(q.target, i), i+1), q)
	}
	if firsts := kindSet(setAt(index[indexFirsts:])); firsts&q.all != 0 {
		for i := range len(q.target) - gramSize + 1 {
			if firsts&kinds[q.target[i]] != 0 {
				s.probe(gramHash(gramAt(q.target, i), 0), q)
			}
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
	slots
	best  uint32 // the first rule that matches, or none
	tried int
}

// probe tries the rules with the gram of a hash.
func (s *searched) probe(hash uint32, q *question) {
	words, half := s.words, s.half&1
	kept := ^uint32(0) >> (16 * half)
	tag := newLink(hash, none)
	for i := s.first(hash); ; i++ {
		link := words[i>>half] >> (16 * (i & half)) & kept
		if (link^tag)&kept&linkTag == 0 && s.tried <= patience {
			s.try(placeOf(link), q)
		}
		if link&linkMore == 0 {
			return
		}
	}
}

func (s *searched) try(rule uint32, q *question) {
	if rule < s.best {
		s.tried++
		if h := s.at(rule); q.has(h.word) && q.matches(h.pattern(), h.word) {
			s.best = rule
		}
	}
}

// find returns the place of the rule that decides, or none. The rules stand in the order of
// precedence: the first that matches decides.
func (b block) find(q *question) uint32 {
	if b.size()&blockIndexed != 0 {
		if rule, ok := b.search(q); ok {
			return rule
		}
	}
	text, ends := b.p.text, b.p.tab[b.pos+blockEnds:][:1+b.len()]
	for i, word := range ends[1:] {
		if !q.has(endWord(word)) {
			continue
		}
		pattern := text[endWord(ends[i]).end():endWord(word).end()]
		if word&ruleWild != 0 {
			if q.matchesWild(pattern, endWord(word)) {
				return uint32(i)
			}
		} else if n := len(pattern); n <= len(q.target) && pattern == q.target[:n] {
			return uint32(i)
		}
	}
	return none
}
