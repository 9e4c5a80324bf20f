package policy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// maxText bounds what is kept of one file: patterns grow to three times their length if
// all of their bytes must be escaped.
const maxText = 1 << 20

// maxKept bounds text and tab together. Including what a cache keeps with it, a file stays
// below 1.25 MiB.
const maxKept = 1180 << 10

// maxCopied bounds how many bytes of patterns are kept twice. Groups that share only some of
// their names are kept combined for those and alone for the others. Past the bound, such
// groups are searched one after the other instead.
const maxCopied = 32 << 10

// compiler writes the retained form of what its builder gathered.
type compiler struct {
	builder
	text   []byte
	tab    []uint32
	order  []uint64             // the rules of one block, as precedence returns them
	slots  slots                // of its index; a word for each
	counts []uint8              // of its grams
	width  int                  // bytes per line number
	copied int                  // bytes of patterns that are kept twice
	shared map[string]blockWord // of groups that were combined, by their numbers
}

// compilers keeps the scratch space of finished parses. With it a parse allocates little
// but the policy.
var compilers = sync.Pool{New: func() any { return new(compiler) }}

// release returns the scratch space, emptied: nothing may retain the file after the parse.
// The garbage collector takes what a rare huge file needed.
func (c *compiler) release() {
	*c = compiler{
		builder: builder{
			rules: c.rules[:0], names: c.names[:0], groups: c.groups[:0], extra: c.extra[:0], plain: c.plain[:0],
			records: recordWriter{stream: c.records.stream[:0]}, lists: c.lists[:0],
		},
		text: c.text[:0], tab: c.tab[:0], order: c.order[:0], slots: slots{words: c.slots.words[:0]}, counts: c.counts[:0],
	}
	compilers.Put(c)
}

func (c *compiler) compile() *Policy {
	if len(c.names) == 0 && len(c.records.stream) == 0 {
		return &empty
	}
	if n := len(c.rules); n > 0 {
		c.width = (bits.Len32(c.rules[n-1].line) + 7) / 8
	}
	names := c.compileNames()
	records := len(c.text)
	c.text = append(c.text, c.records.stream...)
	if len(c.text) > maxText || len(c.text)+4*len(c.tab) > maxKept {
		return &unreachable
	}
	p := retain(c.tab, c.text)
	p.names, p.records, p.dialect, p.lineWidth = uint32(names), uint32(records), c.dialect, uint8(c.width)
	if p.fields = c.records.fields; c.records.names != "" {
		p.lineWidth |= listsNames
	}
	p.star = p.find("*")
	return p
}

// retain returns a policy with copies of tab and text, side by side.
func retain(tab []uint32, text []byte) *Policy {
	words := make([]uint32, len(tab)+(len(text)+3)/4)
	p := &Policy{tab: words[:copy(words, tab)]} // text follows: nothing may be appended
	if len(text) > 0 {
		copied := unsafe.Slice((*byte)(unsafe.Pointer(&words[len(tab)])), len(text))
		copy(copied, text)
		p.text = view(copied) // never written to again
	}
	return p
}

// compileNames writes the names and all blocks, and returns how many names there are.
func (c *compiler) compileNames() int {
	slices.SortFunc(c.names, func(a, b nameLine) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Or(ascii.FoldCompare(c.nameOf(a), c.nameOf(b)), int(a.group)-int(b.group))
	})
	distinct := 0
	for rest := c.names; len(rest) > 0; distinct++ {
		n := c.sameName(rest)
		for _, name := range rest[:n] {
			c.groups[name.group].names++
		}
		rest = rest[n:]
	}
	c.tab = append(c.tab, make([]uint32, 2*distinct)...)
	i := 0
	for rest := c.names; len(rest) > 0; i++ {
		n := c.sameName(rest)
		name := c.nameOf(rest[0])
		c.tab[2*i] = uint32(newNameWord(len(c.text), len(name)))
		c.text = append(c.text, name...)
		if c.firstRecord {
			c.tab[2*i+1] = uint32(newBlockWord(c.alone(rest[0].group)))
		} else {
			c.tab[2*i+1] = uint32(c.combined(rest[:n]))
		}
		rest = rest[n:]
	}
	return distinct
}

func (c *compiler) nameOf(n nameLine) []byte { return c.body[n.off : n.off+n.n] }

// sameName returns how many of the sorted names are equal to the first.
func (c *compiler) sameName(names []nameLine) int {
	n := 1
	for n < len(names) && names[n].key == names[0].key && ascii.FoldEqual(c.nameOf(names[0]), c.nameOf(names[n])) {
		n++
	}
	return n
}

// alone returns the position of the block for a single group.
func (c *compiler) alone(group uint32) uint32 {
	g := &c.groups[group]
	if g.pos == 0 {
		g.pos = c.block([]uint32{group})
	}
	return g.pos
}

// combined returns where the groups of one name stand (§2.2.1: more than one group for a
// product token are combined into one).
func (c *compiler) combined(names []nameLine) blockWord {
	var buf [16]uint32
	groups := buf[:0]
	for _, n := range names {
		if len(groups) == 0 || groups[len(groups)-1] != n.group {
			groups = append(groups, n.group)
		}
	}
	if len(groups) == 1 {
		return newBlockWord(c.alone(groups[0]))
	}
	key := make([]byte, 0, 4*len(groups))
	for _, g := range groups {
		key = binary.LittleEndian.AppendUint32(key, g)
	}
	word, ok := c.shared[string(key)]
	if !ok {
		word = c.combine(groups)
		if c.shared == nil {
			c.shared = map[string]blockWord{}
		}
		c.shared[string(key)] = word
	}
	return word
}

func (c *compiler) combine(groups []uint32) blockWord {
	copies := 0
	for _, g := range groups {
		if c.groups[g].names > 1 {
			for _, r := range c.rules[c.groups[g].first:c.groups[g].last] {
				copies += int(r.n) + 16
			}
		}
	}
	if c.copied+copies <= maxCopied {
		c.copied += copies
		return newBlockWord(c.block(groups))
	}
	list := []uint32{uint32(len(groups))}
	for _, g := range groups {
		list = append(list, c.alone(g))
	}
	pos := uint32(len(c.tab))
	c.tab = append(c.tab, list...)
	return newListWord(pos)
}

// block writes the rules of the groups as one block and returns its position.
func (c *compiler) block(groups []uint32) uint32 {
	delay, hasDelay := c.gather(groups)
	size, from := sizeWord(len(c.order)<<sizeBits), newLineWord(c.groups[groups[0]].line)
	if len(groups) > 1 {
		from = newGroupsWord(len(groups))
		for _, g := range groups {
			c.tab = append(c.tab, c.groups[g].line)
		}
	}
	if hasDelay {
		size |= blockDelay
		c.tab = append(c.tab, uint32(delay), uint32(delay>>32))
	}
	if len(c.order) > smallBlock {
		size |= blockIndexed
	}
	pos := uint32(len(c.tab))
	c.tab = append(c.tab, uint32(size), uint32(from), 0, uint32(newEndWord(uint32(len(c.text)), 0, 0)))
	c.writeRules(int(pos))
	if size&blockIndexed != 0 {
		c.tab = append(c.tab, make([]uint32, indexSize(uint32(len(c.order))))...) // written when it pays
	}
	return pos
}

// gather brings the rules of the groups in order and returns the longest Crawl-delay.
func (c *compiler) gather(groups []uint32) (delay time.Duration, hasDelay bool) {
	c.order = c.order[:0]
	for _, g := range groups {
		g := c.groups[g]
		for i := g.first; i < g.last; i++ {
			c.order = append(c.order, c.precedence(i))
		}
		delay, hasDelay = max(delay, g.delay), hasDelay || g.hasDelay
	}
	slices.Sort(c.order)
	return delay, hasDelay
}

// precedence returns a number by which rules sort as they decide (§2.2.2): the most octets
// first, allow before disallow, then as in the file. Its lower half is the place of the rule.
func (c *compiler) precedence(rule uint32) uint64 {
	if c.literal {
		return uint64(rule) // the first in the file decides
	}
	r := c.rules[rule]
	key := uint64(maxText-r.n)<<33 | uint64(rule)
	if r.flags&ruleAllow == 0 {
		key |= 1 << 32
	}
	return key
}

// writeRules writes the rules of the block at pos in order.
func (c *compiler) writeRules(pos int) {
	size, next, seen := sizeWord(0), uint32(0), len(robots)
	for _, o := range c.order {
		r := c.rules[uint32(o)]
		p := c.pattern(r)
		c.text = append(c.text, p...)
		stem := len(p)
		if r.flags&(ruleWild|ruleExtra) != 0 {
			p, stem = c.compared(r)
		}
		if r.flags&ruleExtra != 0 {
			r.rare = kindsOf(view(p[min(stem, 2, len(p)):])).rarest()
		}
		k := keyAnywhere | r.rare
		switch {
		case stem < 2:
			size |= blockOpen
		case k > keyAnywhere|kinds['u'].key():
			k = kinds[p[1]].key()
			fallthrough
		default:
			next |= 1 << (p[1] & 31)
		}
		c.tab = append(c.tab, uint32(newEndWord(uint32(len(c.text)), k, r.flags)))
		if seen = max(seen, stem); r.flags&ruleWild != 0 {
			seen = maxSeen + 1
		}
	}
	for _, o := range c.order {
		for i, line := 0, c.rules[uint32(o)].line; i < c.width; i, line = i+1, line>>8 {
			c.text = append(c.text, byte(line))
		}
	}
	if seen <= maxSeen {
		size |= sizeWord(seen) << seenBits
	}
	c.tab[pos+blockSize] |= uint32(size)
	c.tab[pos+blockNext] = next
}

// compared returns what of a pattern is compared, with stars, but without a final "$", and how
// many bytes precede its first star.
func (c *compiler) compared(r ruleLine) (p []byte, stem int) {
	if p = c.pattern(r); r.flags&ruleWild == 0 {
		return p, len(p)
	}
	if r.flags&ruleTwofold != 0 {
		p = c.plainPattern(r)
	}
	if p[len(p)-1] == '$' {
		p = p[:len(p)-1]
	}
	if i := bytes.IndexByte(p, '*'); i >= 0 {
		return p, i
	}
	return p, len(p)
}
