package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// Rules yields the rules of the group in the order of the file. It leaves out repeated
// rules.
func (g Group) Rules() iter.Seq[Rule] {
	return slices.Values(g.list(func(*rule) bool { return true }))
}

// Matching returns the rules of the group that match the target, in the order of the file,
// without repeated ones. The one that Decide names is among them, unless its pattern is empty.
// It is for explaining a decision, not for taking one. The target is as in Decide. No rule
// matches "/robots.txt".
func (g Group) Matching(target string) []Rule {
	if g.names.len() == 0 {
		return nil
	}
	q := newQuestion(g.p.dialect.reading().escape, originForm(target))
	if q.target == robots {
		return nil
	}
	return g.list(func(r *rule) bool {
		return r.n > 0 && q.has(r.must) && q.matches(g.p.text[r.at:r.at+r.n], r.flags)
	})
}

// list returns the rules that include accepts, in the order of the file. A derived rule stands for that of the same
// line.
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

// String returns the policy as a robots.txt file in canonical form. It holds the names and
// rules that count, in the order of the file, with patterns in normal form, and the records
// in their groups. If the same dialect parses the text, the policy decides alike, except for
// line numbers and how patterns are written. But escaping can make the file, or a line, longer
// than the dialect reads: then the text may decide otherwise.
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

// writeGroup writes the names of a group with the records that speak to some of them, and then the rest.
func (p *Policy) writeGroup(w *strings.Builder, names span, records []Record) {
	group := p.groups[p.names[names.from].group]
	var above, below []textLine
	for _, r := range records {
		if r.names != everyone {
			above = append(above, textLine{int(r.names.to), r.line()})
		} else {
			below = append(below, textLine{r.Line, r.line()})
		}
	}
	p.writeNames(w, names, above)
	rules := p.rules[group.rules.from:group.rules.to]
	for i := range rules {
		if r := &rules[i]; r.flags&ruleDerived == 0 {
			below = append(below, textLine{int(r.line), p.normalRule(r)})
		}
	}
	slices.SortStableFunc(below, func(a, b textLine) int { return cmp.Compare(a.at, b.at) })
	for _, l := range below {
		w.WriteString(l.text)
	}
	if len(rules) == 0 { // else the next group's names would join
		w.WriteString(p.dialect.reading().nothing())
	}
}

// textLine is a line of Policy.String, and where it stands.
type textLine struct {
	at   int
	text string
}

// writeNames writes the names of a group, each once in a list, and records behind the names that they speak to.
func (p *Policy) writeNames(w *strings.Builder, names span, records []textLine) {
	if len(records) > 0 && records[0].at == int(names.from) { // above all names: for none
		w.WriteString("User-agent:\n" + records[0].text)
		records = records[1:]
	}
	written := map[string]bool{}
	for i := names.from; i < names.to; i++ {
		text := p.nameAt(i)
		if folded := string(ascii.AppendLower(nil, text)); !written[folded] {
			written[folded] = true
			w.WriteString("User-agent: " + text + "\n")
		}
		for len(records) > 0 && records[0].at == int(i)+1 {
			w.WriteString(records[0].text)
			records = records[1:]
			clear(written) // the record may end the list
		}
	}
}

// normalRule returns a rule as a line, with its pattern in normal form.
func (p *Policy) normalRule(r *rule) string {
	shown := p.asRule(r)
	if shown.Pattern != "" {
		shown.Pattern = p.text[r.at : r.at+r.n]
	}
	return shown.String() + "\n"
}
