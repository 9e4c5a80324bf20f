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

// A Policy is two pieces of memory: itself, and one without pointers that holds all it keeps
// of the file. A garbage collector is not slowed by a million of them, and a question about
// one that has left the processor's cache waits for few loads. The second piece has two parts:
//
//	tab   for each name, in folded order, a nameWord and a blockWord; then the blocks
//	text  the names; for each block its patterns, end to end, and then the line
//	      numbers of its rules, lineWidth bytes each; last the records
//
// A block holds the rules of one group, or of several that are combined:
//
//	before     the lines at which its groups begin, if there is more than one;
//	           the Crawl-delay, if there is one, as two words
//	blockSize  a sizeWord
//	blockFrom  a fromWord
//	blockNext  the second bytes of patterns, as a set of their five lower bits
//	blockEnds  an endWord for where the first pattern begins, then one for each rule
//
// The rules stand in the order of precedence: the first that matches decides. More than
// smallBlock are followed by an index: see index.go.
const (
	blockSize = iota
	blockFrom
	blockNext
	blockEnds

	smallBlock = 96
)

// A nameWord tells where a name stands in text: its offset above, its length in maxName.
type nameWord uint32

const nameBits = 12

func newNameWord(at, n int) nameWord { return nameWord(at<<nameBits | n) }
func (w nameWord) at() uint32        { return uint32(w) >> nameBits }
func (w nameWord) len() uint32       { return uint32(w) & maxName }

// A blockWord tells where in tab the rules of a name stand: in a block, or in the blocks of
// a list, which is their number and then their positions.
type blockWord uint32

func newBlockWord(pos uint32) blockWord { return blockWord(pos << 1) }
func newListWord(pos uint32) blockWord  { return blockWord(pos<<1 | 1) }
func (w blockWord) pos() uint32         { return uint32(w >> 1) }
func (w blockWord) isList() bool        { return w&1 != 0 }

// A sizeWord is the number of rules of a block, above three flags, and above it, if all rules
// are literal, how many bytes of a target matter.
type sizeWord uint32

const (
	blockDelay   sizeWord = 1 << iota // has a Crawl-delay
	blockIndexed                      // has more than smallBlock rules
	blockOpen                         // has a rule without a second byte that a target must have

	sizeBits = iota
	seenBits = sizeBits + placeBits
	maxSeen  = 1<<(32-seenBits) - 1
)

func (w sizeWord) rules() uint32 { return uint32(w>>sizeBits) & (1<<placeBits - 1) }

// seen returns the part of a target that rules can see. Only that part need be in normal
// form.
func (w sizeWord) seen(target string) string {
	if n := int(w >> seenBits); n != 0 && n < len(target) {
		return target[:n]
	}
	return target
}

// A fromWord is the line at which the only group of a block begins, or how many groups it
// combines.
type fromWord uint32

func newLineWord(line uint32) fromWord { return fromWord(line << 1) }
func newGroupsWord(n int) fromWord     { return fromWord(n<<1 | 1) }
func (w fromWord) number() uint32      { return uint32(w >> 1) }
func (w fromWord) isGroups() bool      { return w&1 != 0 }

// An endWord is the offset in text at which the pattern of a rule ends, what a target must
// have in any case (a key), and flags of the rule: the lowest flagBits of them.
type endWord uint32

func newEndWord(end uint32, k key, flags uint8) endWord {
	return endWord(end<<(keyBits+flagBits)) | endWord(k)<<flagBits | endWord(flags&(1<<flagBits-1))
}
func (w endWord) end() uint32  { return uint32(w >> (keyBits + flagBits)) }
func (w endWord) flags() uint8 { return uint8(w & (1<<flagBits - 1)) }

// A key is the number of a kind of bytes that a target must have if the rule matches: as its
// second byte, or, from keyAnywhere, at any place. All targets begin with "/".
type key uint8

const (
	keyBits     = 7
	keyAnywhere = key(1 << (keyBits - 1))
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
	p.fields, p.listsNames = c.records.fields, c.records.names != ""
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
			r.rare = rarest(p[min(stem, 2, len(p)):])
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

// rarest returns the key of the rarest kind in a piece of a pattern, or else of "/". Stars are of the same
// kind as "%", which they must not pass for.
func rarest(p []byte) key {
	set := kindsOf(view(p))
	if set&isChanged != 0 && bytes.IndexByte(p, '%') < 0 {
		set &^= isChanged
	}
	return (set | kinds['/']).key()
}
