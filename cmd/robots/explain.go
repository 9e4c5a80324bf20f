package main

import (
	"cmp"
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

// bound is what of a robots.txt file binds one crawler.
type bound struct {
	group  policy.Group
	agents []lint.Line // the user-agent lines above its rules; none without the file (a cache keeps none)
	rules  []lint.Line
}

// bound picks the lines that bind a crawler.
func (r reading) bound(token string) *bound {
	b := &bound{group: r.result.Policy.Group(token)}
	rules := slices.Collect(b.group.Rules())
	if r.result.Body == nil {
		for _, rule := range rules {
			field := "Disallow"
			if rule.Allow {
				field = "Allow"
			}
			b.rules = append(b.rules, lint.Line{Number: rule.Line, Field: field, Value: rule.Pattern})
		}
		return b
	}
	var agents []lint.Line
	closed := false // the list of user-agent lines, by a rule (RFC 9309 §2.1)
	for l := range lint.Lines(r.dialect, r.result.Body) {
		switch l.Kind {
		case lint.LineUserAgent:
			if closed {
				agents, closed = agents[:0], false
			}
			agents = append(agents, l)
		case lint.LineAllow, lint.LineDisallow:
			closed = true
			for len(rules) > 0 && rules[0].Line < l.Number {
				rules = rules[1:]
			}
			if len(rules) > 0 && rules[0].Line == l.Number {
				b.agents, agents = append(b.agents, agents...), agents[:0]
				b.rules = append(b.rules, l)
			}
		}
	}
	return b
}

// names reports whether a line is one of the user-agent lines.
func (b *bound) names(line int) bool {
	_, found := slices.BinarySearchFunc(b.agents, line, func(l lint.Line, n int) int { return l.Number - n })
	return found
}

// explain picks the lines that the decision d about target rests on: the user-agent lines, and the
// rules that match, with the deciding one.
func (b *bound) explain(target string, d policy.Decision) []fileLine {
	var found []fileLine
	for _, l := range b.agents {
		found = append(found, fileLine{l.Number, l.Field + ": " + l.Value, false})
	}
	matching := b.group.Matching(target)
	if d.Rule.Line > 0 && d.Rule.Pattern == "" { // an empty rule may decide, and matches nothing
		matching = append(matching, d.Rule)
	}
	for _, rule := range matching {
		i, ok := slices.BinarySearchFunc(b.rules, rule.Line, func(l lint.Line, n int) int { return l.Number - n })
		if ok {
			l := b.rules[i]
			found = append(found, fileLine{l.Number, l.Field + ": " + l.Value, l.Number == d.Rule.Line})
		}
	}
	slices.SortFunc(found, func(a, b fileLine) int { return cmp.Compare(a.Number, b.Number) })
	return found
}
