package main

import (
	"slices"

	"github.com/robotsgate/robotsgate/policy"
)

// fileLine is a line of a robots.txt file.
type fileLine struct {
	Number  int    `json:"line"`
	Text    string `json:"text"` // field and value, without comment
	Decides bool   `json:"decides,omitempty"`
}

// explain picks the lines of a robots.txt that a decision rests on: the user-agent
// lines of the group, those of its rules that match, and among them the one that
// decided. Without the file (a cache keeps none) there are only the rules.
func explain(dialect policy.Dialect, body []byte, g policy.Group, d policy.Decision, matches func(policy.Rule) bool) []fileLine {
	rules := map[int]policy.Rule{}
	for r := range g.Rules() {
		rules[r.Line] = r
	}
	var found, agents []fileLine
	if body == nil {
		for n, r := range rules {
			if matches(r) {
				found = append(found, fileLine{n, r.String(), n == d.Rule.Line})
			}
		}
		slices.SortFunc(found, func(a, b fileLine) int { return a.Number - b.Number })
		return found
	}
	closed := false // the list of user-agent lines, by a rule (RFC 9309 §2.1)
	for l := range dialect.Lines(body) {
		text := fileLine{l.Number, l.Field + ": " + l.Value, l.Number == d.Rule.Line}
		switch l.Kind {
		case policy.LineUserAgent:
			if closed {
				agents, closed = nil, false
			}
			agents = append(agents, text)
		case policy.LineAllow, policy.LineDisallow:
			closed = true
			r, ours := rules[l.Number]
			if ours {
				found = append(found, agents...)
				agents = nil
			}
			if ours && matches(r) {
				found = append(found, text)
			}
		}
	}
	return found
}
