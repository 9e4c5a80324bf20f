package policy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"
)

// A Policy is held in three objects without inner pointers, so that a crawler
// with a million of them is not slowed by its garbage collector:
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
//	blockText  offset of the first pattern in text
//	blockSize  number of rules<<2, and the bits below
//	blockFrom  the line at which its group begins<<1, or the number of groups<<1|1
//	blockRules for each rule: end of its pattern in text<<3 | flags
//
// Up to smallBlock rules stand in the order of precedence, the first that
// matches decides, and there is nothing more. Larger blocks have their literal
// rules first, sorted by pattern, then those with wildcards, sorted by what
// precedes the first of them (the stem) and then by precedence. After the rules:
//
//	number of literal rules, number of stems
//	for each literal rule: 1 + the longest other one that it begins with, or 0
//	for each stem: the same among the stems, and its first rule
//	for each wildcard rule: its signature, two words
const (
	blockText = iota
	blockSize
	blockFrom
	blockRules

	blockDelay   = 1 // bit of blockSize: has a Crawl-delay
	blockIndexed = 2 // bit of blockSize: more than smallBlock rules

	smallBlock = 32
)

// maxText bounds what is kept of one file: patterns grow to three times their
// length if all of their octets must be escaped.
const maxText = 1 << 20

// maxCopied bounds how many octets of patterns are kept twice because groups that
// share some of their names are combined for some and not for others. Past it
// such groups are searched one after the other.
const maxCopied = 32 << 10

// compiler writes the retained form of what a builder gathered.
type compiler struct {
	*builder
	text   []byte
	tab    []uint32
	sorted []sortedRule // scratch of one block
	width  int
	copied int
	shared map[string]uint32 // name word of groups combined before, by their numbers
}

// sortedRule is a rule on its way to its place in a block.
type sortedRule struct {
	key  uint64 // the first octets of the pattern that tell patterns apart
	rule uint32 // in builder.rules
}

func (b *builder) compile() *Policy {
	if len(b.names) == 0 && len(b.records.stream) == 0 {
		return &empty
	}
	var (
		text   [1024]byte
		tab    [128]uint32
		sorted [64]sortedRule
	)
	c := compiler{builder: b, text: text[:0], tab: tab[:0], sorted: sorted[:0]}
	if n := len(b.rules); n > 0 {
		c.width = (bits.Len32(b.rules[n-1].line) + 7) / 8
	}
	names := c.compileNames()
	records := len(c.text)
	c.text = append(c.text, b.records.stream...)
	if len(c.text) > maxText {
		return Unreachable()
	}
	return &Policy{
		text: string(c.text), tab: slices.Clone(c.tab),
		names: uint32(names), records: uint32(records), dialect: b.dialect, lineWidth: uint8(c.width),
	}
}

// compileNames writes the names and all blocks, and returns how many names there are.
func (c *compiler) compileNames() int {
	slices.SortFunc(c.names, func(a, b nameLine) int {
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
	for n < len(names) && foldEqual(c.nameOf(names[0]), c.nameOf(names[n])) {
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
	c.tab = append(c.tab, uint32(len(c.text)), size, from)
	literals := c.arrange()
	if len(c.sorted) > smallBlock && !c.literal {
		size |= blockIndexed
	}
	c.tab[pos+blockSize] = size | uint32(len(c.sorted))<<2
	c.writeRules()
	if size&blockIndexed != 0 {
		c.writeIndex(literals)
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

// arrange brings the rules of a block in order, leaves out repetitions (§2.2.2
// permits it) and returns how many are literal.
func (c *compiler) arrange() (literals int) {
	switch {
	case c.literal:
		return len(c.sorted)
	case len(c.sorted) <= smallBlock:
		slices.SortFunc(c.sorted, c.byPrecedence)
		c.dropRepeated(func(a, b ruleLine) bool { return a.n == b.n && a.flags&ruleAllow == b.flags&ruleAllow })
		return len(c.sorted)
	}
	c.setKeys()
	slices.SortFunc(c.sorted, c.byStem)
	c.sorted = slices.CompactFunc(c.sorted, func(a, b sortedRule) bool {
		return a.key == b.key && c.same(c.rules[a.rule], c.rules[b.rule])
	})
	for literals < len(c.sorted) && c.sorted[literals].key>>63 == 0 {
		literals++
	}
	return literals
}

// byPrecedence: the most octets first, allow before disallow, then as in the file.
func (c *compiler) byPrecedence(a, b sortedRule) int {
	x, y := &c.rules[a.rule], &c.rules[b.rule]
	return cmp.Or(int(y.n)-int(x.n), int(y.flags&ruleAllow)-int(x.flags&ruleAllow), int(a.rule)-int(b.rule))
}

// dropRepeated removes rules that repeat an earlier one of the same run.
func (c *compiler) dropRepeated(run func(a, b ruleLine) bool) {
	kept := c.sorted[:0]
	for _, s := range c.sorted {
		repeated := false
		for i := len(kept) - 1; i >= 0 && !repeated && run(c.rules[kept[i].rule], c.rules[s.rule]); i-- {
			repeated = c.same(c.rules[kept[i].rule], c.rules[s.rule])
		}
		if !repeated {
			kept = append(kept, s)
		}
	}
	c.sorted = kept
}

func (c *compiler) same(a, b ruleLine) bool {
	return a.n == b.n && (a.flags^b.flags)&^ruleExtra == 0 && bytes.Equal(c.pattern(a), c.pattern(b))
}

// setKeys gives each rule a key that sorts like its stem as far as it goes: the
// top bit for wildcards, then seven octets after what all stems have in common.
// Comparing words instead of texts halves the time of a large file.
func (c *compiler) setKeys() {
	first, _ := c.stem(c.rules[c.sorted[0].rule])
	skip := len(first)
	for _, s := range c.sorted {
		stem, _ := c.stem(c.rules[s.rule])
		skip = commonPrefix(first[:skip], stem)
	}
	for i := range c.sorted {
		s := &c.sorted[i]
		stem, wild := c.stem(c.rules[s.rule])
		var octets [8]byte
		copy(octets[1:], stem[skip:])
		s.key = binary.BigEndian.Uint64(octets[:])
		if wild {
			s.key |= 1 << 63
		}
	}
}

// stem returns what precedes the first special character of a pattern.
func (c *compiler) stem(r ruleLine) (stem []byte, wild bool) {
	p := c.pattern(r)
	if r.flags&ruleWild == 0 {
		return p, false
	}
	return p[:stemLen(p)], true
}

// stemLen returns where the first special character of a wildcard pattern stands.
func stemLen[S string | []byte](p S) int {
	for i := range len(p) {
		if p[i] == '*' {
			return i
		}
	}
	return len(p) - 1
}

// byStem orders the rules of a large block: literal ones by pattern, disallow
// first, so that the last of equal patterns is the one that counts; then wildcard
// rules by stem, the most octets first.
func (c *compiler) byStem(a, b sortedRule) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	x, y := c.rules[a.rule], c.rules[b.rule]
	xs, wild := c.stem(x)
	ys, _ := c.stem(y)
	if !wild {
		return cmp.Or(bytes.Compare(xs, ys), int(x.flags&ruleAllow)-int(y.flags&ruleAllow), int(a.rule)-int(b.rule))
	}
	return cmp.Or(bytes.Compare(xs, ys), int(y.n)-int(x.n), bytes.Compare(c.pattern(x), c.pattern(y)),
		int(y.flags&^ruleExtra)-int(x.flags&^ruleExtra), int(a.rule)-int(b.rule))
}

// writeIndex writes what follows the rules of a large block.
func (c *compiler) writeIndex(literals int) {
	head := len(c.tab)
	c.tab = append(c.tab, uint32(literals), 0)
	pattern := func(i int) []byte { return c.pattern(c.rules[c.sorted[i].rule]) }
	stem := func(i int) []byte { s, _ := c.stem(c.rules[c.sorted[i].rule]); return s }

	parents := head + 2
	c.tab = append(c.tab, make([]uint32, literals)...)
	for i := 1; i < literals; i++ {
		c.tab[parents+i] = parentOf(uint32(i), pattern(i), func(j uint32) ([]byte, uint32) {
			return pattern(int(j)), c.tab[parents+int(j)]
		})
	}
	stems, n := len(c.tab), uint32(0)
	for i := literals; i < len(c.sorted); i++ {
		if i > literals && bytes.Equal(stem(i-1), stem(i)) {
			continue
		}
		parent := uint32(0)
		if n > 0 {
			parent = parentOf(n, stem(i), func(j uint32) ([]byte, uint32) {
				return stem(int(c.tab[stems+2*int(j)+1])), c.tab[stems+2*int(j)]
			})
		}
		c.tab = append(c.tab, parent, uint32(i))
		n++
	}
	c.tab[head+1] = n
	for i := literals; i < len(c.sorted); i++ {
		s := signature(pattern(i), true)
		c.tab = append(c.tab, uint32(s), uint32(s>>32))
	}
}

// parentOf returns 1 + the longest of the sorted keys before the n-th that key
// begins with, or 0. It is the key before, or among that one's parents.
func parentOf(n uint32, key []byte, at func(uint32) (key []byte, parent uint32)) uint32 {
	for link := n; link > 0; {
		k, parent := at(link - 1)
		if bytes.HasPrefix(key, k) {
			return link
		}
		link = parent
	}
	return 0
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
