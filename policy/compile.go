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
//	blockEnds  an endWord for where the first pattern begins, then one for each rule
//
// Up to smallBlock rules stand in the order of precedence: the first that matches decides.
// A larger block has its literal rules first, sorted by pattern. Its wildcard rules follow,
// sorted by what precedes the first wildcard (the stem) and then by precedence. After the
// rules stands an index:
//
//	number of literal rules, number of stems
//	for each literal rule: 1 + the longest other one that it begins with, or 0
//	for each stem: its begin and its end as endWords, its parent among the stems,
//	found in the same way, and its first rule
//	for each wildcard rule: its signature, two words
const (
	blockSize = iota
	blockFrom
	blockEnds

	smallBlock = 32
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

// A sizeWord is the number of rules of a block, above two bits.
type sizeWord uint32

const (
	blockDelay   sizeWord = 1 << iota // has a Crawl-delay
	blockIndexed                      // has more than smallBlock rules

	sizeBits = iota
)

func (w sizeWord) rules() uint32 { return uint32(w >> sizeBits) }

// A fromWord is the line at which the only group of a block begins, or how many groups it
// combines.
type fromWord uint32

func newLineWord(line uint32) fromWord { return fromWord(line << 1) }
func newGroupsWord(n int) fromWord     { return fromWord(n<<1 | 1) }
func (w fromWord) number() uint32      { return uint32(w >> 1) }
func (w fromWord) isGroups() bool      { return w&1 != 0 }

// An endWord is the offset in text at which the pattern of a rule ends, and flags of the
// rule: the lowest flagBits of them.
type endWord uint32

func newEndWord(end uint32, flags uint8) endWord {
	return endWord(end<<flagBits | uint32(flags)&(1<<flagBits-1))
}
func (w endWord) end() uint32  { return uint32(w >> flagBits) }
func (w endWord) flags() uint8 { return uint8(w & (1<<flagBits - 1)) }

// The words of a stem begin with where it lies in text.
const (
	stemParent = 2 + iota
	stemFirst
	stemWords
)

// maxText bounds what is kept of one file: patterns grow to three times their length if
// all of their bytes must be escaped.
const maxText = 1 << 20

// maxKept bounds text and tab together: short wildcard rules, each with a stem of its own,
// take more than twice their file. Including what a cache keeps with it, a file stays below
// 1.25 MiB.
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
	sorted []sortedRule         // the rules of one block
	keys   []uint64             // by which they are sorted
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
			records: recordWriter{stream: c.records.stream[:0]},
		},
		text: c.text[:0], tab: c.tab[:0], sorted: c.sorted[:0], keys: c.keys[:0],
	}
	compilers.Put(c)
}

// sortedRule is a rule on its way to its place in a block. Keys are compared first:
// comparing words instead of texts more than halves the time that a large file takes.
type sortedRule struct {
	high, low uint64 // of a large block
	rule      uint32 // in builder.rules
	stem      uint32 // length of what precedes the first special character
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
	p.fields = c.records.fields
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
		return cmp.Or(foldCompare(c.nameOf(a), c.nameOf(b)), int(a.group)-int(b.group))
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
	for n < len(names) && names[n].key == names[0].key && foldEqual(c.nameOf(names[0]), c.nameOf(names[n])) {
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
	c.sorted = c.sorted[:0]
	delay, hasDelay := time.Duration(0), false
	for _, g := range groups {
		g := c.groups[g]
		for i := g.first; i < g.last; i++ {
			c.sorted = append(c.sorted, sortedRule{rule: i})
		}
		delay, hasDelay = max(delay, g.delay), hasDelay || g.hasDelay
	}
	size, from := sizeWord(0), newLineWord(c.groups[groups[0]].line)
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
	pos := uint32(len(c.tab))
	c.tab = append(c.tab, 0, uint32(from), uint32(newEndWord(uint32(len(c.text)), 0)))
	indexed := len(c.sorted) > smallBlock && !c.literal
	if indexed {
		size |= blockIndexed
	}
	literals := c.arrange(indexed)
	c.tab[pos+blockSize] = uint32(size) | uint32(len(c.sorted))<<sizeBits
	c.writeRules()
	if indexed {
		c.writeIndex(pos, literals)
	}
	return pos
}

func (c *compiler) writeRules() {
	for _, s := range c.sorted {
		r := c.rules[s.rule]
		c.text = append(c.text, c.pattern(r)...)
		c.tab = append(c.tab, uint32(newEndWord(uint32(len(c.text)), r.flags)))
	}
	for _, s := range c.sorted {
		for i, line := 0, c.rules[s.rule].line; i < c.width; i, line = i+1, line>>8 {
			c.text = append(c.text, byte(line))
		}
	}
}

// arrange brings the rules of a block in order and returns how many are literal.
// Where there is an index, it leaves out repetitions, as §2.2.2 permits.
func (c *compiler) arrange(indexed bool) (literals int) {
	if c.literal {
		return len(c.sorted) // as in the file
	}
	if !indexed {
		c.keys = c.keys[:0]
		for _, s := range c.sorted {
			c.keys = append(c.keys, precedence(c.rules[s.rule], s.rule))
		}
		slices.Sort(c.keys)
		for i, key := range c.keys {
			c.sorted[i].rule = uint32(key)
		}
		return len(c.sorted)
	}
	c.setKeys()
	slices.SortFunc(c.sorted, c.byStem)
	c.sorted = slices.CompactFunc(c.sorted, func(a, b sortedRule) bool {
		return a.high == b.high && a.low == b.low && c.same(c.rules[a.rule], c.rules[b.rule])
	})
	for literals < len(c.sorted) && c.sorted[literals].high&keyWild == 0 {
		literals++
	}
	return literals
}

// precedence returns a number by which rules sort as they decide (§2.2.2): the
// most octets first, allow before disallow, then as in the file. Its lower half is
// the place of the rule.
func precedence(r ruleLine, place uint32) uint64 {
	key := uint64(maxText-r.n)<<33 | uint64(place)
	if r.flags&ruleAllow == 0 {
		key |= 1 << 32
	}
	return key
}

func (c *compiler) same(a, b ruleLine) bool {
	return a.n == b.n && (a.flags^b.flags)&^ruleExtra == 0 && bytes.Equal(c.pattern(a), c.pattern(b))
}

// keyWild sorts wildcard rules behind literal ones.
const keyWild = 1 << 63

// setKeys gives each rule of a large block keys that sort like its stem, as far as
// they go: the top bit for wildcards, then fifteen bytes after what all stems
// have in common.
func (c *compiler) setKeys() {
	first := c.pattern(c.rules[c.sorted[0].rule])
	skip := len(first)
	for i := range c.sorted {
		s := &c.sorted[i]
		r := c.rules[s.rule]
		p := c.pattern(r)
		s.stem = r.n
		if r.flags&ruleWild != 0 {
			s.stem = uint32(stemLen(c.plainPattern(r)))
		}
		skip = commonPrefix(first[:skip], p[:s.stem])
	}
	for i := range c.sorted {
		s := &c.sorted[i]
		var octets [16]byte
		copy(octets[1:], c.stem(*s)[skip:])
		s.high, s.low = binary.BigEndian.Uint64(octets[:]), binary.BigEndian.Uint64(octets[8:])
		if c.rules[s.rule].flags&ruleWild != 0 {
			s.high |= keyWild
		}
	}
}

func (c *compiler) stem(s sortedRule) []byte { return c.pattern(c.rules[s.rule])[:s.stem] }

// stemLen returns where the first special character of a wildcard pattern stands.
func stemLen(p []byte) int {
	if i := bytes.IndexByte(p, '*'); i >= 0 {
		return i
	}
	return len(p) - 1
}

// byStem orders the rules of a large block: literal ones by pattern, disallow
// first, so that the last of equal patterns is the one that counts; then wildcard
// rules by stem, the most octets first.
func (c *compiler) byStem(a, b sortedRule) int {
	switch {
	case a.high != b.high:
		return cmp.Compare(a.high, b.high)
	case a.low != b.low:
		return cmp.Compare(a.low, b.low)
	}
	if d := bytes.Compare(c.stem(a), c.stem(b)); d != 0 {
		return d
	}
	x, y := c.rules[a.rule], c.rules[b.rule]
	if a.high&keyWild == 0 {
		return cmp.Or(int(x.flags&ruleAllow)-int(y.flags&ruleAllow), int(a.rule)-int(b.rule))
	}
	return cmp.Or(int(y.n)-int(x.n), bytes.Compare(c.pattern(x), c.pattern(y)),
		int(y.flags&^ruleExtra)-int(x.flags&^ruleExtra), int(a.rule)-int(b.rule))
}

// writeIndex writes what follows the rules of the large block at pos.
func (c *compiler) writeIndex(pos uint32, literals int) {
	head := len(c.tab)
	c.tab = append(c.tab, uint32(literals), 0)
	for i := range literals {
		stem := c.stem(c.sorted[i])
		link := uint32(i)
		for link > 0 && !bytes.HasPrefix(stem, c.stem(c.sorted[link-1])) {
			link = c.tab[head+1+int(link)]
		}
		c.tab = append(c.tab, link)
	}
	stems := len(c.tab)
	for i := literals; i < len(c.sorted); i++ {
		stem := c.stem(c.sorted[i])
		if i > literals && bytes.Equal(stem, c.stem(c.sorted[i-1])) {
			continue
		}
		link := c.tab[head+1]
		for words := []uint32(nil); link > 0; link = words[stemParent] {
			words = c.tab[stems+stemWords*int(link-1):]
			if bytes.HasPrefix(stem, c.stem(c.sorted[words[stemFirst]])) {
				break
			}
		}
		start := endWord(c.tab[int(pos)+blockEnds+i]).end()
		c.tab = append(c.tab, uint32(newEndWord(start, 0)), uint32(newEndWord(start+uint32(len(stem)), 0)), link, uint32(i))
		c.tab[head+1]++
	}
	for _, s := range c.sorted[literals:] {
		pairs := signature(c.plainPattern(c.rules[s.rule]), true)
		c.tab = append(c.tab, uint32(pairs), uint32(pairs>>32))
	}
}

// commonPrefix returns how many bytes a and b have in common at their beginning.
func commonPrefix[A, B string | []byte](a A, b B) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
