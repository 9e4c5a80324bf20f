package answer

// Which lines of the file an answer rests on: for check --explain, and for what the page of serve marks. A
// policy.Policy has rules and their lines, but not how the file writes them; that comes from the Body, if
// there is one.

import (
	"cmp"
	"slices"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// FileLine is a line of a robots.txt file.
type FileLine struct {
	Number  int    `json:"line"`
	Text    string `json:"text"` // field and value, without comment
	Decides bool   `json:"decides"`
}

// Bound is what of a robots.txt file binds one crawler. Agents and Rules are in the order of their lines,
// which Explain and the page rely on to find them.
type Bound struct {
	group  policy.Group
	Agents []lint.Line // the user-agent lines above its rules; none without the file (the Cache of a gate keeps none)
	Rules  []lint.Line
	Last   lint.Line // of the file
}

// Bound picks the lines that bind a crawler. A group is known by its rules: their numbers are found in the
// file again, with the user-agent lines above them. Without the file, the rules are in the words of package
// policy.
func (r Reading) Bound(token string) *Bound {
	b := &Bound{group: r.Result.Policy.Group(token)}
	for rule := range b.group.Rules() {
		field := "Disallow"
		if rule.Allow {
			field = "Allow"
		}
		b.Rules = append(b.Rules, lint.Line{Number: rule.Line, Field: field, Value: rule.Pattern})
	}
	rules := b.Rules // that are not written as the file has them yet
	var agents []lint.Line
	closed := false // the list of user-agent lines, by a rule (RFC 9309 §2.1)
	for l := range lint.Lines(r.Dialect, r.Result.Body) {
		b.Last = l
		switch l.Kind {
		case lint.LineUserAgent:
			if closed {
				agents, closed = agents[:0], false
			}
			agents = append(agents, l)
		case lint.LineAllow, lint.LineDisallow:
			closed = true
			if len(rules) > 0 && rules[0].Number == l.Number {
				b.Agents, agents = append(b.Agents, agents...), agents[:0]
				rules[0], rules = l, rules[1:]
			}
		}
	}
	return b
}

// Explain picks the lines that the decision d about target rests on: the user-agent lines, and the
// rules that match, with the deciding one.
func (b *Bound) Explain(target string, d policy.Decision) []FileLine {
	var found []FileLine
	for _, l := range b.Agents {
		found = append(found, FileLine{l.Number, l.Field + ": " + l.Value, false})
	}
	var matching []policy.Rule
	if d.Reason != policy.ReasonNoRule { // else none does
		matching = b.group.Matching(target)
	}
	if d.Rule.Line > 0 && d.Rule.Pattern == "" { // an empty rule may decide, and matches nothing
		matching = append(matching, d.Rule)
	}
	for _, rule := range matching {
		i, ok := slices.BinarySearchFunc(b.Rules, rule.Line, func(l lint.Line, n int) int { return l.Number - n })
		if ok {
			l := b.Rules[i]
			found = append(found, FileLine{l.Number, l.Field + ": " + l.Value, l.Number == d.Rule.Line})
		}
	}
	slices.SortFunc(found, func(a, b FileLine) int { return cmp.Compare(a.Number, b.Number) })
	return found
}
