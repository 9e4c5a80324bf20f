// Package same tells whether an edit of a robots.txt file changes what crawlers are told. It asks no questions: it
// compares what package policy makes of the file before and after, in a form without what decides nothing.
package same

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
		all, half := Join(kept, part...), len(part)/2
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

// Join returns edits of different lines in the order of the file.
func Join(edits []Edit, more ...Edit) []Edit {
	all := slices.Concat(edits, more)
	slices.SortFunc(all, func(a, b Edit) int { return cmp.Compare(a.Line.Number, b.Line.Number) })
	return all
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
		before, now := &j.before[i], newForm(d, after)
		if now.text == before.text {
			continue
		}
		was, ok := before.canonical()
		is, known := now.canonical()
		if !ok || !known || was != is {
			return false, ok && known
		}
	}
	return true, true
}

// form is a file as a dialect reads it.
type form struct {
	dialect   policy.Dialect
	policy    *policy.Policy
	text      string // of policy
	essence   string // see canonical, once asked for
	asked, ok bool
}

func newForm(d policy.Dialect, file []byte) form {
	p := d.Parse(file)
	return form{dialect: d, policy: p, text: p.String()}
}

// maxRules bounds how many rules a form may list: a file may give each of its names all of them. It also bounds the
// rules that are compared with each other.
const (
	maxRules    = 1 << 15
	maxCompared = 1 << 9
)

// canonical returns what the dialect makes of the file: for each name, in the order of the file, the rules in the order in
// which they decide, and the records that speak to it. Rules that decide nothing are left out, and so is the order of
// those with the same verdict. It fails if that would be too long.
func (f *form) canonical() (essence string, ok bool) {
	if !f.asked {
		f.asked = true
		f.essence, f.ok = essenceOf(f.dialect, f.policy, f.text)
	}
	return f.essence, f.ok
}

func essenceOf(d policy.Dialect, p *policy.Policy, text string) (essence string, ok bool) {
	var b strings.Builder
	if r := p.Reason(); r != 0 {
		return r.String(), true
	}
	for r := range p.Records("") {
		if r.GroupLine == 0 {
			fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(r.Field), r.Value)
		}
	}
	listed := 0
	names, groups := read(d, text)
	for _, name := range names {
		rules := essential(d, groups[name])
		if listed += len(groups[name]); listed > maxRules {
			return "", false
		}
		fmt.Fprintf(&b, "\n%s\n", name)
		for _, r := range rules {
			b.WriteString(r.String() + "\n")
		}
		for r := range p.Group(name).Records("") {
			listed++
			if r.Under(name) {
				fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(r.Field), r.Value)
			}
		}
	}
	return b.String(), true
}

// read returns the names of a canonical text, each once, and the rules of each, in the order of the file and with
// patterns in normal form.
func read(d policy.Dialect, text string) (names []string, groups map[string][]rule) {
	groups = map[string][]rule{}
	var of []string // the names of this group
	rules := false  // it has some
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "User-agent":
			if rules {
				of, rules = nil, false
			}
			name := strings.ToLower(value)
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
			if first := groups[name] == nil; !slices.Contains(of, name) && (d != policy.Original || first) {
				of = append(of, name) // in the Original dialect, the first record alone counts
			}
		case "Allow", "Disallow":
			rules = true
			for _, name := range of {
				groups[name] = append(groups[name], newRule(d, field == "Allow", value))
				if i := strings.LastIndexByte(value, '/'); d == policy.Google && field == "Allow" && i >= 0 &&
					strings.HasPrefix(value[i:], "/index.htm") { // which allows the directory as well
					groups[name] = append(groups[name], newRule(d, true, value[:i+1]+"$"))
				}
			}
		case "Allow:", "Disallow:":
			rules = true
			for _, name := range of {
				groups[name] = append(groups[name], newRule(d, field == "Allow:", ""))
			}
		}
	}
	return names, groups
}

// rule is a rule as it decides.
type rule struct {
	allow       bool
	pattern     string // without stars at its end, where these are special
	specificity int
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

func (r rule) String() string {
	if r.allow {
		return "+" + r.pattern
	}
	return "-" + r.pattern
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
		rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.pattern == "" }) // which matches nothing
		slices.SortStableFunc(rules, func(a, b rule) int {
			if a.specificity == b.specificity && a.allow != b.allow {
				return map[bool]int{true: -1, false: 1}[a.allow]
			}
			return b.specificity - a.specificity
		})
	}
	kept := rules
	if len(rules) <= maxCompared {
		kept = withoutRepeated(withoutCovered(rules))
	}
	for from := 0; from < len(kept); {
		to := from
		for to < len(kept) && kept[to].allow == kept[from].allow {
			to++
		}
		slices.SortFunc(kept[from:to], func(a, b rule) int { return cmp.Compare(a.pattern, b.pattern) })
		from = to
	}
	return slices.Compact(kept)
}

// withoutCovered leaves out rules if one above decides whatever they would.
func withoutCovered(rules []rule) (kept []rule) {
	for _, r := range rules {
		if !slices.ContainsFunc(kept, func(o rule) bool { return o.covers(r) }) {
			kept = append(kept, r)
		}
	}
	return kept
}

// withoutRepeated leaves out rules if one below decides as they do, and none between otherwise.
func withoutRepeated(rules []rule) (kept []rule) {
	for _, r := range slices.Backward(rules) {
		if !isRepeated(r, kept) {
			kept = slices.Insert(kept, 0, r)
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
