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

// A Policy is held in one piece of memory, or two if it is large, without pointers in
// what is read of the file, so that a crawler with a million of them is not slowed by
// its garbage collector, and a question about one that has not been asked for a while
// waits for memory once:
//
//	text  the names; for each block its patterns, end to end, and then the line
//	      numbers of its rules, lineWidth octets each; last the records
//	tab   for each name, in folded order, two words: offset<<12 | length of the
//	      name in text, and position<<1 in tab of the block with its rules, or
//	      position<<1|1 of a list of blocks (number, positions)
//
// A block holds the rules of one group, or of several that are combined:
//
//	before     the lines at which its groups begin, if there is more than one;
//	           the Crawl-delay, if there is one, as two words
//	blockSize  number of rules<<2, and the bits below
//	blockFrom  the line at which its group begins<<1, or the number of groups<<1|1
//	blockEnds  offset of the first pattern in text<<4; then for each rule the end
//	           of its pattern<<4 | flags
//
// Up to smallBlock rules stand in the order of precedence, the first that
// matches decides, and there is nothing more. Larger blocks have their literal
// rules first, sorted by pattern, then those with wildcards, sorted by what
// precedes the first of them (the stem) and then by precedence. After the rules:
//
//	number of literal rules, number of stems
//	for each literal rule: 1 + the longest other one that it begins with, or 0
//	for each stem: its begin and its end in text<<4, its parent among the stems,
//	found in the same way, and its first rule
//	for each wildcard rule: its signature, two words
const (
	blockSize = iota
	blockFrom
	blockEnds

	blockDelay   = 1 // bit of blockSize: has a Crawl-delay
	blockIndexed = 2 // bit of blockSize: more than smallBlock rules

	smallBlock = 32
)

// The words of a stem begin with where it lies in text.
const (
	stemParent = 2 + iota
	stemFirst
	stemWords
)

// maxText bounds what is kept of one file: patterns grow to three times their
// length if all of their octets must be escaped.
const maxText = 1 << 20

// maxKept bounds text and tab together: short wildcard rules, each with a stem of its own,
// take more than twice their file. With what a cache keeps beside it, a file stays below
// 1.25 MiB.
const maxKept = 1180 << 10

// maxCopied bounds how many octets of patterns are kept twice because groups that
// share some of their names are combined for some and not for others. Past it
// such groups are searched one after the other.
const maxCopied = 32 << 10

// compiler writes the retained form of what its builder gathered.
type compiler struct {
	builder
	text   []byte
	tab    []uint32
	sorted []sortedRule      // the rules of one block
	keys   []uint64          // by which they are sorted
	width  int               // octets per line number
	copied int               // octets of patterns that are kept twice
	shared map[string]uint32 // name words of groups that were combined, by their numbers
}

// compilers keeps the scratch space of parses that are over: with it a parse
// allocates the policy and nothing else.
var compilers = sync.Pool{New: func() any { return new(compiler) }}

// release gives the scratch space back, emptied: neither the file nor anything
// that points into it may outlive the parse. What a rare huge file needed goes
// with the next garbage collections.
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

// sortedRule is a rule on its way to its place in a block. The keys sort before
// anything else is compared: comparing words instead of texts more than halves
// the time that a large file takes.
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
	p.star = p.find("*")
	return p
}

// retain returns a policy with copies of tab and text, side by side.
func retain(tab []uint32, text []byte) *Policy {
	const word = int(unsafe.Sizeof(tab[0]))
	n := len(tab) + (len(text)+word-1)/word
	p, words := (*Policy)(nil), []uint32(nil)
	i, _ := slices.BinarySearchFunc(layouts, n, func(l layout, n int) int { return cmp.Compare(l.words, n) })
	if i < len(layouts) {
		p, words = layouts[i].alloc()
	} else {
		p, words = new(Policy), make([]uint32, n)
	}
	p.tab = words[:copy(words, tab)] // text follows: nothing may be appended
	if len(text) > 0 {
		octets := unsafe.Slice((*byte)(unsafe.Pointer(&words[len(tab)])), len(text))
		copy(octets, text)
		p.text = view(octets) // nobody writes to it again
	}
	return p
}

// layout allocates a Policy with so many words behind it.
type layout struct {
	words int
	alloc func() (*Policy, []uint32)
}

func layoutOf[Words any]() layout {
	type whole struct {
		p     Policy
		words Words
	}
	n := int(unsafe.Sizeof(whole{}.words) / unsafe.Sizeof(uint32(0)))
	return layout{n, func() (*Policy, []uint32) {
		w := new(whole)
		return &w.p, unsafe.Slice((*uint32)(unsafe.Pointer(&w.words)), n)
	}}
}

// layouts fill the sizes in which Go's allocator hands out memory, up to the largest
// that is worth it. They are never written to.
var layouts = []layout{
	layoutOf[[(96 - head) / 4]uint32](), layoutOf[[(112 - head) / 4]uint32](), layoutOf[[(128 - head) / 4]uint32](), layoutOf[[(144 - head) / 4]uint32](),
	layoutOf[[(160 - head) / 4]uint32](), layoutOf[[(176 - head) / 4]uint32](), layoutOf[[(192 - head) / 4]uint32](), layoutOf[[(208 - head) / 4]uint32](),
	layoutOf[[(224 - head) / 4]uint32](), layoutOf[[(240 - head) / 4]uint32](), layoutOf[[(256 - head) / 4]uint32](), layoutOf[[(288 - head) / 4]uint32](),
	layoutOf[[(320 - head) / 4]uint32](), layoutOf[[(352 - head) / 4]uint32](), layoutOf[[(384 - head) / 4]uint32](), layoutOf[[(416 - head) / 4]uint32](),
	layoutOf[[(448 - head) / 4]uint32](), layoutOf[[(480 - head) / 4]uint32](), layoutOf[[(512 - head) / 4]uint32](), layoutOf[[(576 - headLarge) / 4]uint32](),
	layoutOf[[(640 - headLarge) / 4]uint32](), layoutOf[[(704 - headLarge) / 4]uint32](), layoutOf[[(768 - headLarge) / 4]uint32](), layoutOf[[(896 - headLarge) / 4]uint32](),
	layoutOf[[(1024 - headLarge) / 4]uint32](), layoutOf[[(1152 - headLarge) / 4]uint32](), layoutOf[[(1280 - headLarge) / 4]uint32](), layoutOf[[(1408 - headLarge) / 4]uint32](),
	layoutOf[[(1536 - headLarge) / 4]uint32](), layoutOf[[(1792 - headLarge) / 4]uint32](), layoutOf[[(2048 - headLarge) / 4]uint32](), layoutOf[[(2304 - headLarge) / 4]uint32](),
	layoutOf[[(2688 - headLarge) / 4]uint32](), layoutOf[[(3072 - headLarge) / 4]uint32](), layoutOf[[(3200 - headLarge) / 4]uint32](), layoutOf[[(3456 - headLarge) / 4]uint32](),
	layoutOf[[(4096 - headLarge) / 4]uint32](),
}

// What is no room for words: the Policy, and above 512 octets a word of the allocator.
const (
	head      = unsafe.Sizeof(Policy{})
	headLarge = head + 8
)

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
		c.tab[2*i] = uint32(len(c.text))<<12 | uint32(len(name))
		c.text = append(c.text, name...)
		if c.firstRecord {
			c.tab[2*i+1] = c.alone(rest[0].group)
		} else {
			c.tab[2*i+1] = c.combined(rest[:n])
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

// alone returns the name word for a single group.
func (c *compiler) alone(group uint32) uint32 {
	g := &c.groups[group]
	if g.pos == 0 {
		g.pos = c.block([]uint32{group})
	}
	return g.pos << 1
}

// combined returns the name word for the groups of one name (§2.2.1: more than
// one group for a product token are combined into one).
func (c *compiler) combined(names []nameLine) uint32 {
	var buf [16]uint32
	groups := buf[:0]
	for _, n := range names {
		if len(groups) == 0 || groups[len(groups)-1] != n.group {
			groups = append(groups, n.group)
		}
	}
	if len(groups) == 1 {
		return c.alone(groups[0])
	}
	key := make([]byte, 0, 4*len(groups))
	for _, g := range groups {
		key = binary.LittleEndian.AppendUint32(key, g)
	}
	word, ok := c.shared[string(key)]
	if !ok {
		word = c.combine(groups)
		if c.shared == nil {
			c.shared = map[string]uint32{}
		}
		c.shared[string(key)] = word
	}
	return word
}

func (c *compiler) combine(groups []uint32) uint32 {
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
		return c.block(groups) << 1
	}
	list := []uint32{uint32(len(groups))}
	for _, g := range groups {
		list = append(list, c.alone(g)>>1)
	}
	pos := uint32(len(c.tab))
	c.tab = append(c.tab, list...)
	return pos<<1 | 1
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
	size, from := uint32(0), c.groups[groups[0]].line<<1
	if len(groups) > 1 {
		from = uint32(len(groups))<<1 | 1
		for _, g := range groups {
			c.tab = append(c.tab, c.groups[g].line)
		}
	}
	if hasDelay {
		size |= blockDelay
		c.tab = append(c.tab, uint32(delay), uint32(delay>>32))
	}
	pos := uint32(len(c.tab))
	c.tab = append(c.tab, size, from, uint32(len(c.text))<<rulePacked)
	indexed := len(c.sorted) > smallBlock && !c.literal
	if indexed {
		size |= blockIndexed
	}
	literals := c.arrange(indexed)
	c.tab[pos+blockSize] = size | uint32(len(c.sorted))<<2
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
		c.tab = append(c.tab, uint32(len(c.text))<<rulePacked|uint32(r.flags&(1<<rulePacked-1)))
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

// setKeys gives each rule of a large block keys that sort like its stem as far as
// they go: the top bit for wildcards, then fifteen octets after what all stems
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
		start := c.tab[int(pos)+blockEnds+i] >> rulePacked
		c.tab = append(c.tab, start<<rulePacked, (start+uint32(len(stem)))<<rulePacked, link, uint32(i))
		c.tab[head+1]++
	}
	for _, s := range c.sorted[literals:] {
		pairs := signature(c.plainPattern(c.rules[s.rule]), true)
		c.tab = append(c.tab, uint32(pairs), uint32(pairs>>32))
	}
}

// commonPrefix returns how many octets a and b have in common at their beginning.
func commonPrefix[A, B string | []byte](a A, b B) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
