package main

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// fileLine is a line of a robots.txt file.
type fileLine struct {
	Number  int    `json:"line"`
	Text    string `json:"text"`
	Decides bool   `json:"decides,omitempty"`
}

// explain picks the lines of a robots.txt that a decision about target rests on: the
// user-agent lines of the group, those of its rules that match, and among them the
// one that decided. Without the file's text (a cache keeps none) it makes the lines
// from the group.
func explain(body []byte, g policy.Group, d policy.Decision, matches func(policy.Rule) bool) []fileLine {
	rules := map[int]policy.Rule{}
	for r := range g.Rules() {
		rules[r.Line] = r
	}
	if body == nil {
		return explainGroup(g, rules, d, matches)
	}
	var found, agents []fileLine
	closed := false // the list of user-agent lines above
	for i, text := range fileLines(body) {
		l := fileLine{Number: i + 1, Text: text}
		rule, ours := rules[l.Number]
		switch field := fieldOf(text); {
		case ours:
			found = append(found, agents...)
			agents = nil
			if closed = true; matches(rule) {
				l.Decides = d.Reason == policy.ReasonRule && l.Number == d.Rule.Line
				found = append(found, l)
			}
		case field == "useragent" && closed:
			agents, closed = []fileLine{l}, false
		case field == "useragent":
			agents = append(agents, l)
		case field == "allow", field == "disallow":
			closed = true
		}
	}
	return found
}

func explainGroup(g policy.Group, rules map[int]policy.Rule, d policy.Decision, matches func(policy.Rule) bool) []fileLine {
	var found []fileLine
	for line, r := range rules {
		if matches(r) {
			found = append(found, fileLine{line, ruleText(r), d.Reason == policy.ReasonRule && line == d.Rule.Line})
		}
	}
	slices.SortFunc(found, func(a, b fileLine) int { return a.Number - b.Number })
	return found
}

// fileLines cuts a file at LF, CR and CRLF (RFC 9309 §2.2), so that the numbers are
// those of policy.Rule.
func fileLines(body []byte) []string {
	text := strings.ReplaceAll(string(body), "\r\n", "\n")
	return strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
}

// fieldOf is the field name of a line, folded, with the ways that Google's parser lets
// "user-agent" be written made one.
func fieldOf(text string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "\ufeff"), ":")
	return strings.NewReplacer("-", "", " ", "", "\t", "").Replace(strings.ToLower(name))
}
