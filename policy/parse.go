package policy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

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
	r.rare = set.rarest()
	if set |= kindsOf(view(value[:second])); set&isChanged != 0 {
		b.special(&r, value, set)
	}
	if !b.counts(r, value) {
		return
	}
	b.rules = append(b.rules, r)
	if b.indexHTML && flags&ruleAllow != 0 {
		b.index(r)
	}
}

// special looks at a value that is not its own normal form, or has special characters. Set has the kinds of its bytes.
func (b *builder) special(r *ruleLine, value []byte, set kindSet) {
	special, changes := b.escape.look(value, set)
	if special && !b.literal {
		r.flags |= ruleWild
		if value[0] == '*' {
			r.rare = set.rarest()
		}
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

// maxRecords bounds what one file's records take in memory, in bytes. Records past it are
// dropped. The largest real file known needs half of it.
const maxRecords = 256 << 10

// maxField is how long a field name may be.
const maxField = 64

// recordWriter appends records to a stream. Each record begins with four varints: the
// distances of line and group line from the record before, and the lengths of field and
// value. The two texts follow.
type recordWriter struct {
	stream      []byte
	line, group int    // of the last record
	fields      uint8  // the union of fieldBit
	names       string // of the last addNames
}

// fieldBit returns one of eight bits for a field name, in any case. Most files have no
// record of the field that is asked for, and their bits say so without a search. The names
// that real files use fall apart well.
func fieldBit(length int, first byte) uint8 { return 1 << ((length + int(first|0x20)) & 7) }

func (w *recordWriter) add(line, group int, field, value []byte) {
	if !w.put(line, group, field, value) {
		return
	}
	w.fields |= fieldBit(len(field), field[0])
	if field[0]|0x20 == 's' {
		w.fields |= fieldBit(len("sitemap"), 's') // of which there are misspellings
	}
}

func (w *recordWriter) put(line, group int, field, value []byte) bool {
	if len(w.stream)+len(field)+len(value)+4*binary.MaxVarintLen32 > maxRecords {
		return false
	}
	w.stream = binary.AppendVarint(w.stream, int64(line-w.line)) // addNames begins at the top again
	w.stream = binary.AppendVarint(w.stream, int64(group-w.group))
	w.stream = binary.AppendUvarint(w.stream, uint64(len(field)))
	w.stream = binary.AppendUvarint(w.stream, uint64(len(value)))
	w.stream = append(append(w.stream, field...), value...)
	w.line, w.group = line, group
	return true
}

// addNames tells under which names the record of a line stands. It follows all records, has no
// field, and an empty value if the names are those of the record told before.
func (w *recordWriter) addNames(line int, names string) {
	told := names
	if names == w.names {
		told = ""
	}
	if w.put(line, w.group, nil, []byte(told)) {
		w.names = names
	}
}

// isFieldName tells a field from prose and markup that happens to have a colon.
func isFieldName(field []byte) bool {
	if len(field) > maxField || !ascii.IsLetter(field[0]) {
		return false
	}
	for _, c := range field {
		switch {
		case ascii.IsLetter(c), '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ' ', c == '\t':
		default:
			return false
		}
	}
	return true
}

// crawlDelay reads a record if it is a Crawl-delay that means something to the dialect.
func (r *reading) crawlDelay(field, value []byte) (time.Duration, bool) {
	if r.delay == delayIgnored || !ascii.FoldEqual(field, "crawl-delay") {
		return 0, false
	}
	d, ok := parseSeconds(string(value))
	if r.delay == delayWindow {
		d = min(max(d, time.Second), 30*time.Second) // Bing's documented range
	}
	return d, ok
}

// parseSeconds reads digits with or without a decimal fraction. Exponents, signs
// and units make a value that is not plain: multiplied into a Duration, "1e300"
// would turn negative.
func parseSeconds(s string) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole+fraction == "" || !isDigits(whole) || !isDigits(fraction) {
		return 0, false
	}
	seconds, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil || seconds >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64, true // for ever, and not nothing
	}
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Duration(seconds)*time.Second + time.Duration(nanos), true
}

func isDigits(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}
