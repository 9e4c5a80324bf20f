package main

import (
	"iter"
	"slices"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// fileLine is a line of a robots.txt file.
type fileLine struct {
	Number  int    `json:"line"`
	Text    string `json:"text"` // field and value, without comment
	Decides bool   `json:"decides"`
}

// explain picks the lines of a robots.txt that the decision d about target rests on: the
// user-agent lines of the crawler's group, and its rules that match, with the deciding one.
// Without the file (a cache keeps none) there are only the rules.
func (r reading) explain(token, target string, d policy.Decision) []fileLine {
	if r.result.Body == nil {
		return r.explainRules(token, target, d)
	}
	var found []fileLine
	for l, rule := range r.bound(token) {
		decides := l.Number == d.Rule.Line // so may an empty rule, which matches nothing
		if rule == nil || decides || r.matches(*rule, target) {
			found = append(found, fileLine{l.Number, l.Field + ": " + l.Value, decides})
		}
	}
	return found
}

// bound yields the lines of the file that bind a crawler: its rules, and the user-agent lines
// above them, which have no rule.
func (r reading) bound(token string) iter.Seq2[lint.Line, *policy.Rule] {
	return func(yield func(lint.Line, *policy.Rule) bool) {
		rules := r.rules(token)
		var agents []lint.Line
		closed := false // the list of user-agent lines, by a rule (RFC 9309 §2.1)
		for l := range lint.Lines(r.dialect, r.result.Body) {
			switch l.Kind {
			case lint.LineUserAgent:
				if closed {
					agents, closed = nil, false
				}
				agents = append(agents, l)
			case lint.LineAllow, lint.LineDisallow:
				closed = true
				rule, ours := rules[l.Number]
				if !ours {
					continue
				}
				for _, a := range agents {
					if !yield(a, nil) {
						return
					}
				}
				if agents = nil; !yield(l, &rule) {
					return
				}
			}
		}
	}
}

// rules are those for a crawler, by their lines.
func (r reading) rules(token string) map[int]policy.Rule {
	rules := map[int]policy.Rule{}
	for rule := range r.result.Policy.Group(token).Rules() {
		rules[rule.Line] = rule
	}
	return rules
}

// explainRules is explain without the file. Rules know their lines, but those of the
// user-agent lines above them are lost.
func (r reading) explainRules(token, target string, d policy.Decision) []fileLine {
	var found []fileLine
	for n, rule := range r.rules(token) {
		if n == d.Rule.Line || r.matches(rule, target) {
			found = append(found, fileLine{n, rule.String(), n == d.Rule.Line})
		}
	}
	slices.SortFunc(found, func(a, b fileLine) int { return a.Number - b.Number })
	return found
}

// matches reports whether rule alone would decide about target. It asks a file without any
// other, since a Group tells only which rule wins.
func (r reading) matches(rule policy.Rule, target string) bool {
	alone := r.dialect.Parse([]byte("User-agent: *\n" + rule.String() + "\n"))
	return alone.Decide("*", target).Reason == policy.ReasonRule
}
