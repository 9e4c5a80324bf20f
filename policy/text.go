package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// Rules yields the rules of the group in the order of the file. It leaves out repeated rules.
func (g Group) Rules() iter.Seq[Rule] {
	return slices.Values(g.list(func(*rule) bool { return true }))
}

// Matching returns the rules of the group that match the target, in the order of the file, without repeated ones. The
// one that Decide names is among them, unless its pattern is empty. It is for explaining a decision, not for taking
// one. The target is as in Decide. No rule matches "/robots.txt".
func (g Group) Matching(target string) []Rule {
	if g.names.len() == 0 {
		return nil
	}
	var q question
	q.read(g.p.dialect.reading().escape, originForm(target))
	if q.target == robots {
		return nil
	}
	return g.list(func(r *rule) bool {
		return r.n > 0 && q.has(r.must) && q.matches(g.p.text[r.at:r.at+r.n], r.flags)
	})
}

// list returns the rules that include accepts, in the order of the file and without repeated ones. A derived rule is
// shown as the rule of its line.
func (g Group) list(include func(*rule) bool) []Rule {
	var rules []Rule
	for _, part := range g.parts() {
		all := g.p.rules[part.rules.from:part.rules.to]
		for i := range all {
			if include(&all[i]) {
				rules = append(rules, g.p.asRule(&all[i]))
			}
		}
	}
	slices.SortStableFunc(rules, func(a, b Rule) int { return a.Line - b.Line })
	seen := make(map[Rule]bool, len(rules))
	return slices.DeleteFunc(rules, func(r Rule) bool {
		r.Line = 0
		known := seen[r]
		seen[r] = true
		return known
	})
}

// String returns the policy as a robots.txt file in canonical form. It holds the names and rules that count, in the
// order of the file, with patterns in normal form, and the records in their groups. If the same dialect parses the
// text, the policy decides alike, except for line numbers and how patterns are written. But escaping can make the file,
// or a line, longer than the dialect reads: then the text may decide otherwise.
func (p *Policy) String() string {
	if p == nil || p.reason == ReasonUnreachable {
		return "User-agent: *\nDisallow: /\n"
	}
	var w strings.Builder
	named := map[int]bool{} // the lines of groups with names
	for _, n := range p.names {
		named[int(p.groups[n.group].line)] = true
	}
	records := map[int][]Record{} // of these
	for r := range p.Records("") {
		if named[r.GroupLine] {
			records[r.GroupLine] = append(records[r.GroupLine], r)
		} else {
			w.WriteString(r.line())
		}
	}
	for from := 0; from < len(p.names); {
		to, group := from, p.names[from].group
		for to < len(p.names) && p.names[to].group == group {
			to++
		}
		if w.Len() > 0 {
			w.WriteByte('\n')
		}
		p.writeGroup(&w, span{uint32(from), uint32(to)}, records[int(p.groups[group].line)])
		from = to
	}
	return w.String()
}

func (r Record) line() string { return r.Field + ": " + r.Value + "\n" }

// textLine is a line of a group in Policy.String.
type textLine struct {
	at   int // sorts the lines of a group
	text string
	name string // in lower case, if it is a user-agent line
}

// writeGroup writes the names of a group, each followed by the records that apply to the names so far, and then the
// rest.
func (p *Policy) writeGroup(w *strings.Builder, names span, records []Record) {
	var lines []textLine
	for i := names.from; i < names.to; i++ {
		name := p.nameAt(i)
		lines = append(lines, textLine{2*int(i) + 1, "User-agent: " + name + "\n", string(ascii.AppendLower(nil, name))})
	}
	below := 2*int(names.to) + 1
	for _, r := range records {
		l := textLine{at: below + r.Line, text: r.line()}
		if r.names != everyone {
			l.at = 2 * int(r.names.to)
		}
		lines = append(lines, l)
	}
	part := p.groups[p.names[names.from].group].rules
	rules := p.rules[part.from:part.to]
	for i := range rules {
		if r := &rules[i]; r.flags&ruleDerived == 0 {
			lines = append(lines, textLine{at: below + int(r.line), text: p.normalRule(r)})
		}
	}
	slices.SortStableFunc(lines, func(a, b textLine) int { return cmp.Compare(a.at, b.at) })
	if lines[0].name == "" { // a record that applies to no name
		w.WriteString("User-agent:\n")
	}
	writeLines(w, lines)
	if len(rules) == 0 { // a rule that changes nothing, to keep the next group's names apart
		w.WriteString(Rule{Allow: p.dialect.reading().emptyAllows, Line: 1}.String() + "\n")
	}
}

// writeLines writes the lines of a group, and each name once in a list of names.
func writeLines(w *strings.Builder, lines []textLine) {
	list := map[string]bool{}
	for _, l := range lines {
		switch {
		case l.name == "":
			clear(list)
		case list[l.name]:
			continue
		}
		list[l.name] = true
		w.WriteString(l.text)
	}
}

// normalRule returns a rule as a line of the canonical form: not as the file writes it, so that equal rules look equal.
func (p *Policy) normalRule(r *rule) string {
	shown := p.asRule(r)
	if shown.Pattern != "" {
		shown.Pattern = p.text[r.at : r.at+r.n]
	}
	return shown.String() + "\n"
}
