package policy

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

const (
	maxNormal  = 1 << 20   // bytes of all patterns in normal form, which can be three times as long as written
	maxToken   = 256       // bytes of a token that is looked for inside names; no real one is as long
	maxRecords = 256 << 10 // bytes of all records; the largest real file known needs half of it
	maxDelays  = 64 << 10  // bytes reserved for delays beyond that: other records must not crowd them out
	maxField   = 64        // bytes of a field name
)

// Parse reads a robots.txt file as RFC 9309 specifies: it is RFC9309.Parse(data).
func Parse(data []byte) *Policy { return RFC9309.Parse(data) }

// Parse reads a robots.txt file as the dialect does. It cannot fail: lines that make no sense are skipped (RFC 9309
// §2.3.1.5). It reads at most 500 KiB (§2.5) and drops the line that this limit cuts. The Policy does not retain data.
//
// Two kinds of files are judged whole. In the Yandex dialect, a file above 500 KiB permits everything, as Unavailable
// does. A file whose rules take more than 1 MiB percent-encoded disallows everything, as Unreachable does: no server
// sends one in good faith. So no Policy takes 3 MiB.
func (d Dialect) Parse(data []byte) *Policy {
	r := d.reading()
	if r.oversizeOK && len(data) > scan.Limit {
		return Unavailable()
	}
	b := builders.Get().(*builder)
	defer b.release()
	b.dialect, b.reading = d, r
	b.read(data)
	return b.policy()
}

// builders keeps the memory of finished parses: without them, a parse takes 1.6 times as long.
var builders = sync.Pool{New: func() any { return new(builder) }}

// builder collects what is kept of a file, in memory of earlier parses.
type builder struct {
	*reading
	dialect Dialect
	text    []byte
	groups  []group
	rules   []rule
	names   []name
	records []record

	inAgents bool // the last user-agent line or rule was a user-agent line
	inGroup  bool
	counted  int    // rules with a pattern so far
	normal   int    // bytes of patterns in normal form so far
	recorded int    // bytes of records so far
	first    uint32 // the first name of the group
	list     span   // the names of the last list that a Content-Usage record ended

	order []uint64 // for sortRules
	moved []rule   // for sortRules
}

// release empties b and puts it back into builders.
func (b *builder) release() {
	*b = builder{
		text: b.text[:0], groups: b.groups[:0], rules: b.rules[:0], names: b.names[:0], records: b.records[:0],
		order: b.order[:0], moved: b.moved[:0],
	}
	builders.Put(b)
}

func (b *builder) read(data []byte) {
	s := scan.New(b.lines, data)
	for s.Next() {
		switch s.Kind {
		case scan.UserAgent:
			b.userAgent(s.Value(), s.Number)
		case scan.Allow:
			b.ruleLine(s.Value(), s.Number, ruleAllow)
		case scan.Disallow:
			b.ruleLine(s.Value(), s.Number, 0)
		case scan.Sitemap, scan.Record:
			b.record(s.Field(), s.Value(), s.Number, s.Kind == scan.Sitemap)
		case scan.Blank:
			if b.blankEnds {
				b.endGroup()
			}
		}
	}
	b.endGroup()
}

// userAgent begins a group, or adds a name to the one that has no rules yet. Only rules part the two: other records
// must not end a group (§2.2.4).
func (b *builder) userAgent(value []byte, line int) {
	if !b.inAgents {
		b.endGroup()
		n := uint32(len(b.rules))
		b.groups = append(b.groups, group{uint32(line), span{n, n}})
		b.first = uint32(len(b.names))
		b.list = span{b.first, b.first}
		b.inAgents, b.inGroup = true, true
	}
	at := len(b.text)
	b.text = append(b.text, value...)
	switch {
	case namesAll(value):
		b.name(at, 1)
	case b.leading:
		b.name(at, len(leadingToken(value)))
	default: // "ExampleBot/1.0" is found by its token and as it is written
		if !b.words || !bytes.ContainsAny(value, " \t") {
			b.name(at, len(wholeToken(value)))
		}
		b.name(at, len(value))
	}
}

func (b *builder) name(at, n int) {
	if n > 0 {
		b.names = append(b.names, name{span{uint32(at), uint32(at + n)}, uint32(len(b.groups) - 1)})
	}
}

func (b *builder) endGroup() {
	if b.inGroup {
		g := &b.groups[len(b.groups)-1]
		g.rules.to = uint32(len(b.rules))
		if b.needsRule && g.rules.len() == 0 {
			b.names = b.names[:b.first]
		}
		b.sortRules(b.rules[g.rules.from:])
	}
	b.inGroup, b.inAgents = false, false
}

// sortRules sorts the rules of a group by precedence. It sorts numbers, because sorting the rules themselves makes
// Parse half as slow again.
func (b *builder) sortRules(rules []rule) {
	b.order, b.moved = b.order[:0], append(b.moved[:0], rules...)
	for i := range rules {
		b.order = append(b.order, uint64(math.MaxUint32-b.precedence(&rules[i]))<<32|uint64(i))
	}
	slices.Sort(b.order)
	for i, o := range b.order {
		rules[i] = b.moved[uint32(o)]
	}
}

// ruleLine adds a rule to the group; rules outside of groups are ignored (§2.2.2).
func (b *builder) ruleLine(value []byte, line int, flags uint8) {
	if !b.inGroup {
		return
	}
	b.inAgents = false
	if len(value) > 0 {
		b.counted++
	}
	if b.ruleLimit != 0 && b.counted > b.ruleLimit || b.ruleRunes != 0 && utf8.RuneCount(value) > b.ruleRunes {
		return
	}
	switch {
	case len(value) > 0 || !b.emptyAllows:
		b.addRule(value, value, line, flags)
	case flags == 0:
		b.addRule(value, []byte("/"), line, ruleAllow)
	}
	if b.indexHTML && flags&ruleAllow != 0 {
		b.addIndex(value, line)
	}
}

// addIndex adds to an allow rule for .../index.htm, or with a longer name, one for exactly .../: a server answers both
// with the same page.
func (b *builder) addIndex(value []byte, line int) {
	slash := bytes.LastIndexByte(value, '/')
	if slash < 0 || !bytes.HasPrefix(value[slash:], []byte("/index.htm")) {
		return
	}
	b.addRule(value, append(value[:slash+1:slash+1], '$'), line, ruleAllow|ruleDerived)
}

// addRule adds a rule with a pattern as the file writes it, "/%7ea", and as the dialect reads it, "/~a".
func (b *builder) addRule(written, pattern []byte, line int, flags uint8) {
	r := rule{at: uint32(len(b.text)), line: uint32(line), flags: flags}
	plain := kindsOf(pattern)&changedKinds == 0 // most are
	if plain {
		b.text = append(b.text, pattern...)
	} else {
		b.text = appendNormal(b.escape, b.text, pattern, false)
	}
	normal := b.text[r.at:]
	r.n = uint32(len(normal))
	b.normal += len(normal)
	sample := normal // with a star for each byte that a target need not have
	if !plain {
		sample = b.special(&r, normal)
	}
	r.must = mustHave(sample, r.flags&ruleWild != 0)
	if !bytes.Equal(normal, written) {
		r.flags |= ruleRewritten
		r.written = uint32(len(written))
		b.text = append(b.text, written...)
	}
	b.rules = append(b.rules, r)
}

// special sets the flags of r for what is not compared byte by byte in its pattern. It returns the pattern with a star
// for each escape that equals what it stands for: "/a*b" for "/a%21b", which "/a!b" matches too.
func (b *builder) special(r *rule, pattern []byte) []byte {
	signs := bytes.Count(pattern, []byte("*"))
	if bytes.HasSuffix(pattern, []byte("$")) {
		signs++
	}
	if signs > 0 && !b.literal {
		r.flags |= ruleWild
		if b.signsFree {
			r.free = uint16(signs) // at most ruleRunes
		}
	}
	if b.escape == escapeRFC && bytes.IndexByte(pattern, '%') >= 0 {
		if decoded := appendCompared(nil, pattern, false, true); len(decoded) < len(pattern) {
			r.flags |= ruleEscaped | ruleWild
			return decoded
		}
	}
	return pattern
}

// mustHave returns what a target must have to match a pattern: the rarest of its kinds of bytes in any place or, if
// even that is frequent, its second byte in second place.
func mustHave(pattern []byte, wild bool) key {
	stem := pattern // what a matching target begins with
	if wild {
		pattern = bytes.TrimSuffix(pattern, []byte("$"))
		stem, _, _ = bytes.Cut(pattern, []byte("*"))
	}
	k := kindsOf(pattern[min(2, len(stem)):]).rarest()
	if len(stem) >= 2 && k > kinds['u'].key() { // more frequent than 'u'
		return kinds[stem[1]].key()
	}
	return k | keyAnywhere
}

// record keeps any other record (§2.2.4). A Sitemap is for every crawler, so it is in no group wherever it stands.
func (b *builder) record(field, value []byte, line int, sitemap bool) {
	if !isFieldName(field) {
		return
	}
	r := record{line: uint32(line), field: uint8(len(field)), value: uint32(len(value)), names: everyone}
	delay := isDelay(field)
	if b.inGroup && !sitemap {
		r.group = b.groups[len(b.groups)-1].line
		r.names = b.listOf(field, delay)
	}
	size, room := len(field)+len(value)+recordSize, maxRecords
	if delay {
		room += maxDelays
	}
	if b.recorded+size > room {
		return
	}
	b.recorded += size
	r.at = uint32(len(b.text))
	b.text = append(append(b.text, field...), value...)
	b.records = append(b.records, r)
}

// isDelay reports whether a field says how fast a crawler may be. Like other parsers, we apply such a record to the
// names above it in its group and not to those that follow.
func isDelay(field []byte) bool {
	return ascii.FoldEqual(field, "crawl-delay") || ascii.FoldEqual(field, "request-rate")
}

// listOf returns the names that a record in a group applies to.
func (b *builder) listOf(field []byte, delay bool) span {
	n := uint32(len(b.names))
	switch {
	case delay:
		return span{b.first, n}
	case ascii.FoldEqual(field, "content-usage"): // which ends the list of names (draft-ietf-aipref-attach)
		if n > b.list.to {
			b.list = span{b.list.to, n}
		}
		return b.list
	}
	return everyone
}

// policy returns what was collected. The Policy shares no memory with b.
func (b *builder) policy() *Policy {
	switch {
	case b.normal > maxNormal:
		return &unreachable
	case len(b.names) == 0 && len(b.records) == 0:
		return &empty
	}
	p := &Policy{
		text: string(b.text), groups: append([]group(nil), b.groups...), rules: append([]rule(nil), b.rules...),
		names: append([]name(nil), b.names...), records: append([]record(nil), b.records...), dialect: b.dialect,
	}
	p.sortNames()
	p.star = p.find("*")
	return p
}

// sortNames sorts the names and drops repeated names of one group.
func (p *Policy) sortNames() {
	p.sorted = make([]uint32, len(p.names))
	for i := range p.sorted {
		p.sorted[i] = uint32(i)
	}
	compare := func(a, b uint32) int { return ascii.FoldCompare(p.nameAt(a), p.nameAt(b)) }
	slices.SortStableFunc(p.sorted, compare)
	p.sorted = slices.CompactFunc(p.sorted, func(a, b uint32) bool {
		return p.names[a].group == p.names[b].group && compare(a, b) == 0
	})
}

// isFieldName tells a field from prose and markup that happens to have a colon.
func isFieldName(field []byte) bool {
	if len(field) > maxField || !ascii.IsLetter(field[0]) {
		return false
	}
	for _, c := range field {
		switch {
		case ascii.IsLetter(c), ascii.IsDigit(c), c == '-', c == '_', c == '.', c == ' ', c == '\t':
		default:
			return false
		}
	}
	return true
}

// crawlDelay reads the value of a Crawl-delay, if it means something to the dialect.
func (r *reading) crawlDelay(value string) (time.Duration, bool) {
	if r.delay == delayIgnored {
		return 0, false
	}
	d, ok := parseSeconds(value)
	if r.delay == delayWindow {
		d = min(max(d, time.Second), 30*time.Second) // Bing's documented range
	}
	return d, ok
}

// parseSeconds reads digits with or without a decimal fraction. Exponents, signs and units are no plain value: "1e300"
// would overflow to a negative Duration.
func parseSeconds(s string) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole+fraction == "" || !isDigits(whole) || !isDigits(fraction) {
		return 0, false
	}
	seconds, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil || seconds >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64, true // "very long" must not become none
	}
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Duration(seconds)*time.Second + time.Duration(nanos), true
}

func isDigits(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}
