package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Rules yields the rules of the group in the order of the file. It leaves out repeated
// rules.
func (g Group) Rules() iter.Seq[Rule] {
	var rules []Rule
	for b := range g.p.blocks(g.name) {
		rules = b.appendRules(rules)
	}
	return slices.Values(distinct(rules))
}

// distinct brings rules in the order of the file, and drops repeated ones.
func distinct(rules []Rule) []Rule {
	slices.SortFunc(rules, func(a, b Rule) int { return a.Line - b.Line })
	seen := make(map[Rule]struct{}, len(rules))
	return slices.DeleteFunc(rules, func(r Rule) bool {
		n := len(seen)
		r.Line = 0
		seen[r] = struct{}{}
		return len(seen) == n
	})
}

// Matching returns the rules of the group that match the target, in the order of the file,
// without repeated ones. The one that Decide names is among them, unless its pattern is empty.
// Its time grows with the number of rules, and that of Decide hardly does: it is for explaining a
// decision, not for taking one. The target is as in Decide. No rule matches "/robots.txt".
func (g Group) Matching(target string) []Rule {
	if g.p == nil || g.name == 0 {
		return nil
	}
	if target == "" || target[0] != '/' {
		target = originForm(target)
	}
	target = string(g.p.dialect.reading().escape.appendTarget(nil, target))
	if target == robots {
		return nil
	}
	var e effort
	defer e.done()
	q := newQuestion(target, kindsOf(target), &e)
	var rules []Rule
	for b := range g.p.blocks(g.name) {
		rules = b.appendMatching(rules, &q)
	}
	return distinct(rules)
}

// appendMatching appends the rules of the block that match. For a derived rule that is the one
// of the same line.
func (b block) appendMatching(rules []Rule, q *question) []Rule {
	derived := map[int]bool{} // lines
	text, ends := b.p.text, b.p.tab[b.pos+blockEnds:][:1+b.len()]
	for i, word := range ends[1:] {
		pattern := text[endWord(ends[i]).end():endWord(word).end()]
		if pattern == "" || !q.has(endWord(word)) || !q.matches(pattern, endWord(word)) {
			continue
		}
		if h := b.at(uint32(i)); h.derived() {
			derived[h.line()] = true
		} else {
			rules = append(rules, h.asRule())
		}
	}
	for i := uint32(0); len(derived) > 0 && i < b.len(); i++ {
		if h := b.at(i); !h.derived() && derived[h.line()] {
			rules = append(rules, h.asRule())
		}
	}
	return rules
}

// appendRules appends the rules of the block that stand in a line of their own.
func (b block) appendRules(rules []Rule) []Rule {
	rules = slices.Grow(rules, int(b.len()))
	for i := range b.len() {
		if h := b.at(i); !h.derived() {
			rules = append(rules, h.asRule())
		}
	}
	return rules
}

// textLine is a line of Policy.String.
type textLine struct {
	group int // line at which its group begins in the file; 0 outside of groups
	line  int // where it stands in the file; user-agent lines come first
	text  string
	rule  bool
}

// String returns the policy as a robots.txt file in canonical form. It holds the names and
// rules that count, in the order of the file, with patterns in normal form, and the records
// in their groups. If the same dialect parses the text, the policy decides alike, except for
// line numbers. But escaping can make the file, or a line, longer than the dialect reads: then
// the text may decide otherwise.
func (p *Policy) String() string {
	if p == nil || p.reason == ReasonUnreachable {
		return "User-agent: *\nDisallow: /\n"
	}
	lines := p.textLines()
	slices.SortStableFunc(lines, func(a, b textLine) int {
		return cmp.Or(a.group-b.group, a.line-b.line)
	})
	lines = slices.Compact(lines) // rules that two blocks share
	var w strings.Builder
	rules := false // the group has some
	for i, l := range lines {
		if i > 0 && lines[i-1].group != l.group {
			w.WriteByte('\n')
			rules = false
		}
		w.WriteString(l.text + "\n")
		rules = rules || l.rule
		if ends := i == len(lines)-1 || lines[i+1].group != l.group; ends && !rules && l.group > 0 {
			w.WriteString("Disallow:\n") // else the next group's names would join
		}
	}
	return w.String()
}

func (p *Policy) textLines() []textLine {
	var lines []textLine
	seen := map[uint32]bool{} // blocks
	named := map[int]bool{}   // groups
	for i := range p.names {
		for b := range p.blocks(i + 1) {
			groups := b.appendGroups(nil)
			for _, g := range groups {
				lines = append(lines, textLine{group: int(g), text: "User-agent: " + p.nameAt(i)})
				named[int(g)] = true
			}
			if seen[b.pos] {
				continue
			}
			seen[b.pos] = true
			for _, r := range b.appendRules(nil) {
				// A rule belongs to the last group that begins above it.
				at, _ := slices.BinarySearch(groups, uint32(r.Line))
				lines = append(lines, textLine{int(groups[at-1]), r.Line, r.String(), true})
			}
		}
	}
	for r := range p.Records("") {
		l := textLine{group: r.Group, line: r.Line, text: r.Field + ": " + r.Value}
		switch {
		case !named[l.group]:
			l.group = 0
		case r.names != "": // below the names that it stands under, and above the others
			names := strings.TrimRight(r.names, "\n")
			l.line, l.text = -1, "User-agent: "+strings.ReplaceAll(names, "\n", "\nUser-agent: ")+"\n"+l.text
		}
		lines = append(lines, l)
	}
	return lines
}
