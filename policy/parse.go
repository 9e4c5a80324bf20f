package policy

import (
	"bytes"
	"cmp"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// Parse reads a robots.txt file as RFC 9309 specifies: it is RFC9309.Parse(data).
func Parse(data []byte) *Policy { return RFC9309.Parse(data) }

// Parse reads a robots.txt file as the dialect does. It cannot fail: lines that make no
// sense are skipped (RFC 9309 §2.3.1.5). It reads at most 500 KiB (§2.5) and drops the line
// that this limit cuts. The Policy does not retain data.
//
// Two kinds of files are judged whole. In the Yandex dialect, a file above 500 KiB permits
// everything, as Unavailable does. A file whose rules take more than 1 MiB
// percent-encoded, or more than 1,180 KiB with their index, disallows everything, as
// Unreachable does: no server sends one in good faith.
func (d Dialect) Parse(data []byte) *Policy {
	r := d.reading()
	if r.oversizeOK && len(data) > scan.Limit {
		return Unavailable()
	}
	c := compilers.Get().(*compiler)
	c.dialect, c.reading = d, r
	c.read(data)
	p := c.compile()
	c.release()
	return p
}

// builder gathers what a file says, in the order of the file, for the compiler.
type builder struct {
	dialect Dialect
	*reading

	body    []byte // the file
	extra   []byte // bytes of patterns whose normal form differs from the file
	plain   []byte // scratch space of plainPattern
	rules   []ruleLine
	names   []nameLine
	groups  []fileGroup
	records recordWriter
	lists   []nameList

	inAgents bool // the last line that counts was a user-agent line
	inGroup  bool
	counted  int // rules that are not empty
}

// ruleLine is one rule; its pattern is builder.pattern.
type ruleLine struct {
	off, n uint32 // in body, or in extra
	line   uint32
	flags  uint8
	rare   key // rarest of its pattern behind the second byte, if ruleWild and ruleExtra are not set
}

// Flags of a rule.
const (
	ruleAllow   = 1 << iota
	ruleWild    // "*" or a final "$" in the pattern is special
	ruleDerived // stands in no line of its own (Google's index.html)
	ruleTwofold // has escapes that are one with what they stand for; then ruleWild is set too
	ruleExtra   // the pattern is in builder.extra

	flagBits = 4 // of the flags that the compiled form keeps
)

// nameLine says that a group has a name.
type nameLine struct {
	key    uint64 // the first eight bytes, folded, to sort by before anything else
	off, n uint32 // in body
	group  uint32 // in groups
}

// nameList has the names that a Content-Usage record stands under, as a range of
// builder.names: those since the last rule or Content-Usage record.
type nameList struct{ line, group, first, last uint32 }

// fileGroup is a group of the file.
type fileGroup struct {
	line        uint32 // of its first user-agent line; identifies it
	first, last uint32 // its rules, as a range of builder.rules
	firstName   uint32 // in builder.names
	names       uint32 // how many names it has
	delay       time.Duration
	hasDelay    bool
	pos         uint32 // where it is compiled alone, if it is
}

func (b *builder) read(data []byte) {
	s := scan.New(b.lines, data)
	b.body = s.Data
	for s.Next() {
		switch s.Kind {
		case scan.UserAgent:
			b.userAgent(&s)
		case scan.Allow:
			b.rule(&s, ruleAllow)
		case scan.Disallow:
			b.rule(&s, 0)
		case scan.Sitemap, scan.Record:
			b.record(&s)
		case scan.Blank:
			if b.blankEnds {
				b.endGroup()
			}
		}
	}
	b.endGroup()
	for _, l := range b.lists {
		var names []byte
		for _, n := range b.names[l.first:l.last] {
			names = append(append(names, b.body[n.off:n.off+n.n]...), '\n')
		}
		b.records.addNames(int(l.line), cmp.Or(string(names), "\n"))
	}
}

// userAgent begins a group, or adds a name to the one that has no rules yet.
// Only rules part the two: other records must not end a group (§2.2.4).
func (b *builder) userAgent(s *scan.Scanner) {
	if !b.inAgents {
		b.endGroup()
		b.groups = append(b.groups, fileGroup{
			line: uint32(s.Number), first: uint32(len(b.rules)), firstName: uint32(len(b.names)),
		})
		b.inAgents, b.inGroup = true, true
	}
	value, at := s.Value(), s.ValueAt
	switch {
	case namesAll(value):
		b.name(at, 1)
	case b.leading:
		b.name(at, len(leadingToken(value)))
	default:
		b.name(at, len(value))
		b.name(at, len(wholeToken(value)))
	}
}

// maxName is the longest name kept. No real product token is as long.
const maxName = 1<<nameBits - 1

func (b *builder) name(at, n int) {
	if n == 0 || n > maxName {
		return
	}
	name := nameLine{off: uint32(at), n: uint32(n), group: uint32(len(b.groups) - 1)}
	for i, c := range b.body[at : at+min(n, 8)] {
		name.key |= uint64(ascii.Lower(c)) << (56 - 8*i)
	}
	b.names = append(b.names, name)
}

func (b *builder) endGroup() {
	if b.inGroup {
		g := &b.groups[len(b.groups)-1]
		g.last = uint32(len(b.rules))
		if b.needsRule && g.first == g.last {
			b.names = b.names[:g.firstName]
		}
		b.keepLists(g)
	}
	b.inGroup, b.inAgents = false, false
}

// keepLists keeps the lists of a group that are not all of its names, which is rare.
func (b *builder) keepLists(g *fileGroup) {
	n := len(b.lists)
	for n > 0 && b.lists[n-1].group == g.line {
		n--
	}
	part := b.lists[n:]
	b.lists = b.lists[:n]
	for _, l := range part { // of a group without names, none is kept
		if l.first > g.firstName && int(l.last) <= len(b.names) || int(l.last) < len(b.names) {
			b.lists = append(b.lists, l)
		}
	}
}

// listOf returns the names that a record which ends a list of names stands under.
func (b *builder) listOf(g *fileGroup, line int) nameList {
	l := nameList{line: uint32(line), group: g.line, first: g.firstName, last: uint32(len(b.names))}
	if n := len(b.lists); n > 0 && b.lists[n-1].group == l.group {
		if before := b.lists[n-1]; before.last < l.last {
			l.first = before.last
		} else {
			l.first = before.first // no name has come since
		}
	}
	return l
}

// rule adds a rule to the group; rules outside of groups are ignored (§2.2.2).
func (b *builder) rule(s *scan.Scanner, flags uint8) {
	if !b.inGroup {
		return
	}
	b.inAgents = false
	value := s.Value()
	r := ruleLine{off: uint32(s.ValueAt), n: uint32(len(value)), line: uint32(s.Number), flags: flags}
	second := min(2, len(value))
	set := kindsOf(view(value[second:]))
	r.rare = (set | kinds['/']).key()
	if (set|kindsOf(view(value[:second])))&isChanged != 0 {
		b.special(&r, value)
	}
	if !b.counts(r, value) {
		return
	}
	b.rules = append(b.rules, r)
	if b.indexHTML && flags&ruleAllow != 0 {
		b.index(r)
	}
}

// special looks at a value that is not its own normal form, or has special characters.
func (b *builder) special(r *ruleLine, value []byte) {
	special, changes := b.escape.look(value)
	if special && !b.literal {
		r.flags |= ruleWild
	}
	if changes {
		r.off, r.flags = uint32(len(b.extra)), r.flags|ruleExtra
		b.extra = appendNormal(b.escape, b.extra, value, false)
		r.n = uint32(len(b.extra)) - r.off
		if b.escape == escapeRFC && len(b.plainPattern(*r)) < int(r.n) {
			r.flags |= ruleTwofold | ruleWild
		}
	}
}

// counts reports whether a rule is within the limits of the dialect.
func (b *builder) counts(r ruleLine, value []byte) bool {
	if r.n > 0 {
		b.counted++
	}
	return (b.ruleLimit == 0 || b.counted <= b.ruleLimit) &&
		(b.ruleRunes == 0 || len(value) <= b.ruleRunes || utf8.RuneCount(value) <= b.ruleRunes)
}

// index adds to an allow rule for .../index.htm, or whatever begins so, one for
// exactly .../, which the same page answers.
func (b *builder) index(r ruleLine) {
	p := b.pattern(r)
	slash := bytes.LastIndexByte(p, '/')
	if slash < 0 || !bytes.HasPrefix(p[slash:], []byte("/index.htm")) {
		return
	}
	off := len(b.extra)
	b.extra = append(b.extra, p[:slash+1]...)
	b.extra = append(b.extra, '$')
	b.rules = append(b.rules, ruleLine{
		off: uint32(off), n: uint32(len(b.extra) - off), line: r.line,
		flags: ruleAllow | ruleWild | ruleDerived | ruleExtra,
	})
}

func (b *builder) pattern(r ruleLine) []byte {
	if r.flags&ruleExtra != 0 {
		return b.extra[r.off : r.off+r.n]
	}
	return b.body[r.off : r.off+r.n]
}

// plainPattern returns the pattern of a rule with stars for escapes that are, or may be, one with
// the byte they stand for. It holds until the next call.
func (b *builder) plainPattern(r ruleLine) []byte {
	b.plain = appendCompared(b.plain[:0], view(b.pattern(r)), false, true)
	return b.plain
}

// record keeps any other record (§2.2.4). A Sitemap is for every crawler: it
// stands in no group, wherever it stands.
func (b *builder) record(s *scan.Scanner) {
	group := 0
	if b.inGroup && s.Kind != scan.Sitemap {
		g := &b.groups[len(b.groups)-1]
		group = int(g.line)
		if d, ok := b.crawlDelay(s.Field(), s.Value()); ok {
			// No site objects to the largest of several values.
			g.delay, g.hasDelay = max(g.delay, d), true
		}
	}
	if isFieldName(s.Field()) {
		b.records.add(s.Number, group, s.Field(), s.Value())
		if group > 0 && ascii.FoldEqual(s.Field(), "content-usage") {
			b.lists = append(b.lists, b.listOf(&b.groups[len(b.groups)-1], s.Number))
		}
	}
}
