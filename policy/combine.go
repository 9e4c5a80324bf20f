package policy

import "slices"

// Combined returns the group of a crawler that answers to several product tokens at once. It combines the groups of all
// tokens (RFC 9309 §2.2.1). If no token has a group, it is the default group. By contrast, Group(token, fallbacks...)
// returns the first group that exists.
//
// Each call copies rules and records. The Group does not retain p: a program that is a single crawler can keep the
// Group, which takes a fraction of the memory, and drop p.
func (p *Policy) Combined(tokens ...string) Group {
	star := p.Group("*")
	if star.p.reason != 0 {
		return star // there is no file, so no groups
	}
	var groups []Group
	for _, t := range tokens {
		if g := p.Group(t); g.names.len() > 0 && g.names != star.names {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 && star.names.len() > 0 {
		groups = []Group{star}
	}
	if len(groups) == 0 {
		return Group{}
	}
	return combine(groups)
}

// combine copies groups of one policy, each with a name, into one with the name of the first; records by their lines.
func combine(from []Group) Group {
	p := from[0].p
	b := &builder{dialect: p.dialect, reading: p.dialect.reading()}
	b.groups = []group{{}}
	b.text = append(b.text, from[0].Token()...)
	b.name(0, len(b.text))
	var parts []group
	lines := map[int]bool{} // of records
	for _, g := range from {
		parts = append(parts, g.parts()...)
		for r := range g.Records("") {
			if r.Under(g.Token()) {
				lines[r.Line] = true
			}
		}
	}
	slices.SortFunc(parts, func(x, y group) int { return int(x.line) - int(y.line) })
	parts = slices.Compact(parts)
	b.groups[0].line = parts[0].line
	for _, part := range parts {
		for _, r := range p.rules[part.rules.from:part.rules.to] {
			text := p.text[r.at : r.at+r.n+r.written]
			r.at = uint32(len(b.text))
			b.text, b.rules = append(b.text, text...), append(b.rules, r)
		}
	}
	// endGroup sorts them by precedence, and leaves equal rules in the order of the file.
	slices.SortStableFunc(b.rules, func(x, y rule) int { return int(x.line) - int(y.line) })
	b.inGroup = true
	for r := range p.Records("") {
		if lines[r.Line] {
			b.record([]byte(r.Field), []byte(r.Value), r.Line, false)
		}
	}
	b.endGroup()
	return Group{b.policy(), span{0, 1}}
}
