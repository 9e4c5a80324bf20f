// Package same tells whether an edit of a robots.txt file changes what crawlers are told. It asks no questions: it
// compares what package policy makes of the file before and after, in a form without what decides nothing.
package same

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// dialects are all of package policy. The first four read rules by their length; Original reads them in their order.
var dialects = [...]policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// An Edit writes Text, of one line or several, instead of a line. If Text is empty, the line goes
// with its end.
type Edit struct {
	Line *model.Line
	Text string
}

// A Judge answers for one file, within a budget.
type Judge struct {
	// Ordered leaves out the Original dialect: edits may change what the order of the lines decides.
	Ordered bool

	// Unsure is set once an edit could not be judged within the budget.
	Unsure bool

	file   *model.File
	before []form
	budget int
}

// The budget is in bytes that are read, in all dialects together. It is no time: a file has the same findings on a
// slow machine.
const (
	Findings = 8 << 20  // for judging each finding on its own: a fraction of a second, whatever the file
	Fixes    = 32 << 20 // for mending a file, of which all findings count and not the first alone
)

// New returns a Judge of a file.
func New(file *model.File, budget int) *Judge { return &Judge{file: file, budget: budget} }

// Keeps reports whether an edit changes nothing.
func (j *Judge) Keeps(edit Edit) bool { return len(j.Keep([]Edit{edit})) > 0 }

// Keep returns as many of the edits as together change nothing, in the order of the file and one
// for each line: all of a part if they do, else of each half. Each question reads the whole file, and most edits
// change nothing: one by one, the budget would not do.
func (j *Judge) Keep(parts ...[]Edit) (kept []Edit) {
	taken := map[*model.Line]bool{}
	for ; len(parts) > 0; parts = parts[1:] { // the small ones last, for which the budget may not do
		part := slices.DeleteFunc(slices.Clone(parts[0]), func(e Edit) bool { return taken[e.Line] })
		if len(part) == 0 {
			continue
		}
		all, half := slices.Concat(kept, part), len(part)/2
		slices.SortFunc(all, func(a, b Edit) int { return cmp.Compare(a.Line.Number, b.Line.Number) })
		same, known := j.same(all)
		switch {
		case !known:
			j.Unsure = true
		case same:
			kept = all
			for _, e := range part {
				taken[e.Line] = true
			}
		case half > 0:
			parts = append(parts, part[:half], part[half:])
		}
	}
	return kept
}

// same reports whether the edits change nothing, and whether that is known.
func (j *Judge) same(edits []Edit) (same, known bool) {
	asked := dialects[:]
	if j.Ordered {
		asked = dialects[:4]
	}
	if j.budget -= len(asked) * len(j.file.Text); j.budget < 0 {
		return false, false
	}
	after := []byte(Apply(j.file, edits))
	for i, d := range asked {
		if len(j.before) == i {
			j.before = append(j.before, newForm(d, []byte(Apply(j.file, nil))))
		}
		before, now := j.before[i], newForm(d, after)
		if now.text == before.text {
			continue
		}
		was, ok := before.essence()
		is, known := now.essence()
		if !ok || !known || was != is {
			return false, ok && known
		}
	}
	return true, true
}

// Apply returns the file with the edits, which are in its order and about different lines.
// Line ends, the byte order mark and all other bytes stay.
func Apply(f *model.File, edits []Edit) string {
	var b strings.Builder
	b.WriteString("\uFEFF"[:f.BOM])
	done := 0
	for _, e := range edits {
		b.WriteString(f.Text[done:e.Line.Offset])
		done = e.Line.Offset + len(e.Line.Text)
		end := model.LineEnd(f.Text[done:])
		if e.Text == "" {
			done += len(end)
			continue
		}
		if end == "" { // the last line: as the first one ends
			end = "\n"
			if i := strings.IndexAny(f.Text, "\r\n"); i >= 0 {
				end = model.LineEnd(f.Text[i:])
			}
		}
		b.WriteString(strings.ReplaceAll(e.Text, "\n", end))
	}
	b.WriteString(f.Text[done:])
	return b.String()
}

// form is a file as a dialect reads it: the canonical text of the policy, and what is essential in that. There may be
// too much for an essence.
type form struct {
	text    string
	essence func() (text string, ok bool)
}

func newForm(d policy.Dialect, file []byte) form {
	p := d.Parse(file)
	text := p.String()
	return form{text, sync.OnceValues(func() (string, bool) {
		if r := p.Reason(); r != 0 {
			return r.String(), true
		}
		return essenceOf(d, text)
	})}
}

// maxRules bounds how many rules an essence may list: a file may give each of its names all of them. maxCompared
// bounds the rules that are compared with each other.
const (
	maxRules    = 1 << 15
	maxCompared = 1 << 9
)

// essenceOf returns what a canonical text says: for each name, in the order of the file, the rules in the order in
// which they decide, and the records that speak to it. Rules that decide nothing are left out, and so is the order of
// those with the same verdict.
func essenceOf(d policy.Dialect, text string) (essence string, ok bool) {
	var b strings.Builder
	p := d.Parse([]byte(text))
	record := func(r policy.Record) { fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(r.Field), r.Value) }
	for r := range p.Records("") {
		if r.GroupLine == 0 {
			record(r)
		}
	}
	listed, known := 0, map[string]bool{}
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.ToLower(strings.TrimSuffix(line, "\n")), "user-agent: ")
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
			if listed++; r.Under(name) {
				record(r)
			}
		}
	}
	return b.String(), true
}

// rule is a rule as it decides.
type rule struct {
	allow       bool
	pattern     string // without stars at its end, where these are special
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
		return rule{allow: allow || pattern == "", pattern: pattern}
	case policy.Yandex:
		if pattern == "" && !allow {
			r = rule{allow: true, pattern: "/", specificity: 1}
		}
		r.specificity -= strings.Count(r.pattern, "*")
		if strings.HasSuffix(r.pattern, "$") {
			r.specificity--
		}
	}
	if r.pattern != "" {
		r.pattern = cmp.Or(strings.TrimRight(r.pattern, "*"), "/")
	}
	return r
}

// covers reports whether r matches all that o matches.
func (r rule) covers(o rule) bool {
	return strings.HasPrefix(o.pattern, r.pattern) &&
		(len(o.pattern) == len(r.pattern) || r.pattern != "" && !strings.ContainsAny(r.pattern, "*$"))
}

// essential returns the rules that decide something, in the order in which they decide: the first that matches does.
// Neighbours with the same verdict are sorted. What a rule covers, and one with the same verdict further down with no
// other between, changes nothing.
func essential(d policy.Dialect, rules []rule) []rule {
	if d != policy.Original {
		rules = slices.DeleteFunc(rules, func(r rule) bool { return r.pattern == "" }) // which matches nothing
		slices.SortStableFunc(rules, func(a, b rule) int {
			if a.specificity == b.specificity && a.allow != b.allow {
				return map[bool]int{true: -1, false: 1}[a.allow]
			}
			return b.specificity - a.specificity
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
// between otherwise.
func withoutIdle(rules []rule) (kept []rule) {
	for _, r := range rules {
		if !slices.ContainsFunc(kept, func(o rule) bool { return o.covers(r) }) {
			kept = append(kept, r)
		}
	}
	for i := len(kept) - 1; i >= 0; i-- {
		if isRepeated(kept[i], kept[i+1:]) {
			kept = slices.Delete(kept, i, i+1)
		}
	}
	return kept
}

func isRepeated(r rule, below []rule) bool {
	for _, o := range below {
		switch {
		case o.allow != r.allow:
			return false
		case o.covers(r):
			return true
		}
	}
	return r.allow // what no rule matches is allowed
}
