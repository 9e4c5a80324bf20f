package policy

import (
	"cmp"
	"slices"
)

// Combined returns the group of a crawler that answers to several product tokens at once.
// It combines the groups of all tokens (RFC 9309 §2.2.1). If no token has a group, it is the
// default group. By contrast, Group(token, fallbacks...) returns the first group that
// exists.
//
// Each call compiles the group anew. The Group does not retain p: a program that is a
// single crawler can keep the Group, which takes a fraction of the memory, and drop p.
func (p *Policy) Combined(tokens ...string) Group {
	star := p.Group("*")
	if star.p.reason != 0 {
		return star // without a file all groups are the same
	}
	var groups []Group
	for _, t := range tokens {
		if g := p.Group(t); g.name != star.name {
			groups = append(groups, g)
		}
	}
	switch {
	case len(groups) > 0:
		return combine(groups)
	case star.name > 0:
		return combine([]Group{star})
	}
	return Group{}
}

// combine compiles the rules and records of groups of one policy as one group
// with the name of the first.
func combine(from []Group) Group {
	p := from[0].p
	b := compiler{builder: builder{dialect: p.dialect, reading: p.dialect.reading()}}
	b.body = []byte(from[0].Token())
	b.names = []nameLine{{n: uint32(len(b.body))}}
	var records []Record
	b.groups = []fileGroup{{}}
	group := &b.groups[0]
	for _, g := range from {
		for blk := range g.p.blocks(g.name) {
			for i := range blk.len() { // whose pattern is in normal form already
				h := blk.at(i)
				b.rules = append(b.rules, ruleLine{off: uint32(len(b.extra)), n: h.octets(), line: uint32(h.line()), flags: h.word.flags() | ruleExtra})
				b.extra = append(b.extra, h.pattern()...)
			}
			if l, _ := blk.groups(); group.line == 0 || l < group.line {
				group.line = l
			}
		}
		if d, ok := g.CrawlDelay(); ok {
			group.delay, group.hasDelay = max(group.delay, d), true
		}
		for r := range g.Records("") {
			if r.Under(g.Token()) {
				r.names = "" // under all names of the combined group, which is called like the first
			}
			records = append(records, r)
		}
	}
	// The order of the file decides between equal rules, and in the Original dialect between all.
	slices.SortStableFunc(b.rules, func(x, y ruleLine) int { return int(x.line) - int(y.line) })
	group.last = uint32(len(b.rules))
	// Two tokens may name the same group, whose records are then there twice.
	slices.SortFunc(records, func(x, y Record) int { return cmp.Or(x.Line-y.Line, cmp.Compare(x.names, y.names)) })
	records = slices.CompactFunc(records, func(x, y Record) bool { return x.Line == y.Line })
	for _, r := range records {
		b.records.add(r.Line, int(group.line), []byte(r.Field), []byte(r.Value))
	}
	for _, r := range records {
		if r.names != "" {
			b.records.addNames(r.Line, r.names)
		}
	}
	return Group{b.compile(), 1}
}
