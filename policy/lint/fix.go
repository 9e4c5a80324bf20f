package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// maxRounds bounds how often the result is judged anew. A line has one replacement in a round.
const maxRounds = 16

// Fix returns the Body with the replacements of its findings applied. Nothing of what the file says to crawlers changes,
// in any dialect of package policy. If accept is not nil, Fix applies the replacements of those findings that it agrees
// to. Line ends, the byte order mark and all other bytes stay. The URL completes relative sitemaps.
//
// Fix also mends what Findings does not list: findings beyond [MaxPerRule], and those that another finding says more
// about. No finding with an accepted Replacement is left, unless the work exceeds a fixed budget.
func (a Answer) Fix(accept func(Finding) bool) []byte {
	fixed := a.Body
	for range maxRounds {
		doc := model.Read(fixed)
		j := judge{file: doc, asked: dialects[:], budget: fixesBudget}
		edits := j.keep(a.wanted(doc, accept)...)
		if len(edits) == 0 {
			break
		}
		fixed = []byte(apply(doc, edits))
	}
	return fixed
}

// wanted returns the replacements that are accepted: the first ones of all lines, then the second ones, and so on.
func (a Answer) wanted(doc *model.File, accept func(Finding) bool) (parts [][]edit) {
	asked := map[*model.Line]int{} // how many a line has
	known := map[edit]bool{}       // two findings may ask for the same
	for _, f := range candidates(doc, a.asked()) {
		i, ok := slices.BinarySearchFunc(doc.Lines, f.Line, func(l *model.Line, n int) int { return l.Number - n })
		if !ok || accept != nil && !accept(f) {
			continue
		}
		l := doc.Lines[i]
		e := edit{l, f.Replacement}
		if known[e] || e.text == l.Text {
			continue
		}
		known[e] = true
		if len(parts) == asked[l] {
			parts = append(parts, nil)
		}
		parts[asked[l]] = append(parts[asked[l]], e)
		asked[l]++
	}
	return parts
}

// An edit writes text, of one line or several, instead of a line. If the text is empty, the line goes with its end.
type edit struct {
	line *model.Line
	text string
}

// A judge finds out whether edits of a file change what it says to crawlers, within a budget. It asks no questions: it
// compares what package policy makes of the file before and after, in a form without what decides nothing.
type judge struct {
	file   *model.File
	asked  []policy.Dialect
	before []form // of the file in these
	budget int
	unsure bool // some edit could not be judged within the budget
}

// form is a file as a dialect reads it: the canonical text of the policy, and what is essential in that, unless it is
// too much.
type form struct {
	text, essence string
	known         bool
}

// dialects are all of package policy. The last reads rules in their order, the others by their length.
var dialects = [...]policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

var unordered = dialects[:4]

// The budget is in bytes that are read, in all dialects together. It is no time: a file has the same findings on a
// slow machine.
const (
	findingsBudget = 8 << 20  // for judging each finding on its own: a fraction of a second, whatever the file
	fixesBudget    = 32 << 20 // for mending a file, of which all findings count and not the first alone
)

// keeps reports whether an edit changes nothing.
func (j *judge) keeps(e edit) bool { return len(j.keep([]edit{e})) > 0 }

// keep returns as many of the edits as together change nothing, in the order of the file and one for each line: all of
// a part if they do, else of each half. Each question reads the whole file, and most edits change nothing: one by one,
// the budget would not do.
func (j *judge) keep(parts ...[]edit) (kept []edit) {
	taken := map[*model.Line]bool{}
	for ; len(parts) > 0; parts = parts[1:] { // the small ones last, for which the budget may not do
		part := slices.DeleteFunc(slices.Clone(parts[0]), func(e edit) bool { return taken[e.line] })
		if len(part) == 0 {
			continue
		}
		all, half := slices.Concat(kept, part), len(part)/2
		slices.SortFunc(all, func(a, b edit) int { return cmp.Compare(a.line.Number, b.line.Number) })
		same, known := j.same(all)
		j.unsure = j.unsure || !known
		if same {
			kept = all
			for _, e := range part {
				taken[e.line] = true
			}
		} else if known && half > 0 {
			parts = append(parts, part[:half], part[half:])
		}
	}
	return kept
}

// same reports whether the edits change nothing, and whether that is known.
func (j *judge) same(edits []edit) (same, known bool) {
	if j.budget -= len(j.asked) * len(j.file.Text); j.budget < 0 {
		return false, false
	}
	after := []byte(apply(j.file, edits))
	for i, d := range j.asked {
		if len(j.before) == i {
			p := d.Parse([]byte(apply(j.file, nil)))
			essence, known := essenceOf(d, p)
			j.before = append(j.before, form{p.String(), essence, known})
		}
		was, p := j.before[i], d.Parse(after)
		if p.String() == was.text {
			continue
		}
		if is, known := essenceOf(d, p); !was.known || !known || is != was.essence {
			return false, was.known && known
		}
	}
	return true, true
}

// apply returns the file with the edits, which are in its order and about different lines. Line ends, the byte order
// mark and all other bytes stay.
func apply(f *model.File, edits []edit) string {
	var b strings.Builder
	b.WriteString("\uFEFF"[:f.BOM])
	done := 0
	for _, e := range edits {
		b.WriteString(f.Text[done:e.line.Offset])
		done = e.line.Offset + len(e.line.Text)
		end := model.LineEnd(f.Text[done:])
		if e.text == "" {
			done += len(end)
			continue
		}
		if end == "" { // the last line: as the first one ends
			end = "\n"
			if i := strings.IndexAny(f.Text, "\r\n"); i >= 0 {
				end = model.LineEnd(f.Text[i:])
			}
		}
		b.WriteString(strings.ReplaceAll(e.text, "\n", end))
	}
	b.WriteString(f.Text[done:])
	return b.String()
}

// maxRules bounds how many rules an essence may list: a file may give each of its names all of them. maxCompared
// bounds the rules that are compared with each other.
const (
	maxRules    = 1 << 15
	maxCompared = 1 << 9
)

// essenceOf returns what the canonical text of a policy says: for each name, in the order of the file, the rules in the
// order in which they decide, and the records that speak to it. Rules that decide nothing are left out, and so is the
// order of those with the same verdict. It reports false if that is too much.
func essenceOf(d policy.Dialect, p *policy.Policy) (essence string, ok bool) {
	if r := p.Reason(); r != 0 {
		return r.String(), true
	}
	var b strings.Builder
	text := p.String()
	p = d.Parse([]byte(text))
	record := func(r policy.Record) { fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(r.Field), r.Value) }
	for r := range p.Records("") {
		if r.GroupLine == 0 {
			record(r)
		}
	}
	listed, known := 0, map[string]bool{}
	for line := range strings.Lines(text) {
		line = string(ascii.AppendLower(nil, strings.TrimSuffix(line, "\n"))) // as names compare: É is not é
		name, ok := strings.CutPrefix(line, "user-agent: ")
		if !ok || known[name] {
			continue
		}
		known[name] = true
		fmt.Fprintf(&b, "\n%s\n", name)
		g := p.Group(name)
		rules := rulesOf(d, g)
		if listed += len(rules); listed > maxRules {
			return "", false
		}
		for _, r := range essential(d, rules) {
			fmt.Fprintln(&b, r.allow, r.pattern)
		}
		for r := range g.Records("") {
			listed++
			fmt.Fprint(&b, r.Under(name), " ") // package usage also heeds what it refuses to others of the group
			record(r)
		}
	}
	return b.String(), true
}

// rule is a rule as it decides.
type rule struct {
	allow       bool
	pattern     string // without stars at its end, where these are special
	beginning   string // of all that it matches: up to the first star, or escape, which may stand for what it escapes
	specificity int
}

// rulesOf returns the rules of a group, whose patterns are in normal form.
func rulesOf(d policy.Dialect, g policy.Group) (rules []rule) {
	for r := range g.Rules() {
		rules = append(rules, newRule(d, r.Allow, r.Pattern))
		if i := strings.LastIndexByte(r.Pattern, '/'); d == policy.Google && r.Allow && i >= 0 &&
			strings.HasPrefix(r.Pattern[i:], "/index.htm") { // which allows the directory as well
			rules = append(rules, newRule(d, true, r.Pattern[:i+1]+"$"))
		}
	}
	return rules
}

func newRule(d policy.Dialect, allow bool, pattern string) rule {
	r := rule{allow: allow, pattern: pattern, specificity: len(pattern)}
	switch d {
	case policy.Original: // which knows no stars, and takes an empty pattern for the end of the search
		r = rule{allow: allow || pattern == "", pattern: pattern}
	case policy.Yandex:
		if pattern == "" && !allow {
			r = rule{allow: true, pattern: "/", specificity: 1}
		}
		r.specificity -= strings.Count(r.pattern, "*")
		if strings.HasSuffix(r.pattern, "$") {
			r.specificity--
		}
	}
	if r.pattern != "" && d != policy.Original {
		r.pattern = model.Core(r.pattern)
	}
	r.beginning, _, _ = strings.Cut(strings.ReplaceAll(r.pattern, "%", "*"), "*")
	return r
}

// covers reports whether r matches all that o matches.
func (r rule) covers(o rule) bool {
	return strings.HasPrefix(o.pattern, r.pattern) &&
		(len(o.pattern) == len(r.pattern) || r.pattern != "" && !strings.ContainsAny(r.pattern, "*$"))
}

// meets reports whether there may be something that both r and o match.
func (r rule) meets(o rule) bool {
	return strings.HasPrefix(r.beginning, o.beginning) || strings.HasPrefix(o.beginning, r.beginning)
}

// essential returns the rules that decide something, in the order in which they decide: the first that matches does.
// Neighbours with the same verdict are sorted. What a rule covers, and one with the same verdict further down with no
// other between that it may meet, changes nothing.
func essential(d policy.Dialect, rules []rule) []rule {
	if d != policy.Original {
		rules = slices.DeleteFunc(rules, func(r rule) bool { return r.pattern == "" }) // which matches nothing
		slices.SortStableFunc(rules, func(a, b rule) int {
			if a.specificity != b.specificity || a.allow == b.allow {
				return b.specificity - a.specificity
			}
			return map[bool]int{true: -1, false: 1}[a.allow]
		})
	}
	if len(rules) <= maxCompared {
		rules = withoutIdle(rules)
	}
	for from := 0; from < len(rules); {
		to := from
		for to < len(rules) && rules[to].allow == rules[from].allow {
			to++
		}
		slices.SortFunc(rules[from:to], func(a, b rule) int { return cmp.Compare(a.pattern, b.pattern) })
		from = to
	}
	return slices.CompactFunc(rules, func(a, b rule) bool { return a.allow == b.allow && a.pattern == b.pattern })
}

// withoutIdle leaves out rules if one above decides whatever they would, or one below decides as they do, and none
// between that they may meet decides otherwise.
func withoutIdle(rules []rule) (kept []rule) {
	for _, r := range rules {
		if !slices.ContainsFunc(kept, func(o rule) bool { return o.covers(r) }) {
			kept = append(kept, r)
		}
	}
	for i := len(kept) - 1; i >= 0; i-- {
		below := kept[i+1:]
		decides := slices.IndexFunc(below, func(o rule) bool {
			return o.allow != kept[i].allow && o.meets(kept[i]) || o.covers(kept[i])
		})
		if decides < 0 && kept[i].allow || decides >= 0 && below[decides].allow == kept[i].allow { // what no rule matches is allowed
			kept = slices.Delete(kept, i, i+1)
		}
	}
	return kept
}
