package usage

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// records are the fields of robots.txt that are read. They are never written to.
var records = []string{string(ContentUsage), string(ContentSignal), licenseField}

// ParseRobots returns what a robots.txt file says about the use of a target to the crawler
// with the product token. The target is that of [policy.Group.Decide].
//
// Of Content-Usage it returns the lines under the crawler's own name with the longest path that matches (attach-05).
// The path is matched as RFC 9309 §2.2.2 says, in every dialect. Each line is a statement by itself, unlike field lines
// of a header. If the target may not be crawled, there is none.
//
// Of Content-Signal it returns the lines of the crawler's group; else those outside of
// groups; else those of the group for "*", marked Inherited. Of License it returns those of
// the crawler's group, else those outside of groups (RSL 1.0).
//
// A policy token is a name that stands for a use, not for a crawler, such as Google-Extended. For each that has its own
// group, ParseRobots reports whether that group allows the target. The group for "*" never stands in for it.
//
// A file that is unavailable or unreachable says nothing.
func ParseRobots(p *policy.Policy, token, target string, policyTokens ...string) []Statement {
	if len(policyTokens) == 0 && !p.HasRecord(records...) {
		return nil // as nearly always
	}
	own := p.Group(token)
	l := list{in: InRobots}
	l.usageOf(p, own, target)
	lines, inherited := signalsOf(p, own)
	for _, r := range lines {
		l.signal(Statement{Line: r.Line, Inherited: inherited, Text: r.Value})
	}
	for _, r := range ownOrLoose(p, own, licenseField) {
		l.license(r.Line, r.Value, r.Value)
	}
	for _, t := range policyTokens {
		l.policyToken(p.Group(t), t, target)
	}
	return l.said
}

// ParseRecord returns what a Content-Usage, Content-Signal or License record of a robots.txt
// file says by itself, and the path of a Content-Usage record, or "" if it has none. Any other
// record says nothing. ParseRobots knows which records hold for a crawler and a target.
func ParseRecord(r policy.Record) (path string, said []Statement) {
	l := list{in: InRobots}
	switch {
	case strings.EqualFold(r.Field, string(ContentUsage)):
		path, _ = splitUsage(r.Value)
		l.usageLine(r)
	case strings.EqualFold(r.Field, string(ContentSignal)):
		l.signal(Statement{Line: r.Line, Text: r.Value})
	case strings.EqualFold(r.Field, licenseField):
		l.license(r.Line, r.Value, r.Value)
	}
	return path, l.said
}

// usageOf reads the Content-Usage lines of a group that hold for the target.
func (l *list) usageOf(p *policy.Policy, g policy.Group, target string) {
	if !p.HasRecord(string(ContentUsage)) {
		return
	}
	lines := slices.Collect(g.Records(string(ContentUsage)))
	if lines == nil || !g.Decide(target).Allowed {
		return
	}
	own := slices.DeleteFunc(slices.Clone(lines), func(r policy.Record) bool { return !r.Under(g.Token()) })
	l.longest(own, target)
	if len(own) == len(lines) { // nearly always
		return
	}
	fused := list{in: l.in}
	fused.longest(slices.DeleteFunc(lines, func(r policy.Record) bool {
		return !r.Under(g.Token()) && g.Token() != "*" && r.Under("*")
	}), target)
	for _, s := range fused.said {
		if s.Value == "n" && !slices.Contains(l.said, s) {
			l.add(s)
		}
	}
}

// longest reads those of the Content-Usage lines whose path is the longest that matches.
func (l *list) longest(lines []policy.Record, target string) {
	paths := make([]string, len(lines))
	for i, r := range lines {
		paths[i], _ = splitUsage(r.Value)
	}
	reach := reachOf(paths, target)
	longest := slices.Max(append(reach, 0))
	for i, r := range lines {
		if reach[i] == longest {
			l.usageLine(r)
		}
	}
}

func (l *list) usageLine(r policy.Record) {
	_, dictionary := splitUsage(r.Value)
	l.dictionary([]string{dictionary}, Statement{Line: r.Line, Text: r.Value})
}

// splitUsage divides the value of a Content-Usage line into a path, which may be empty, and
// a dictionary. What begins with a slash is a path, up to white space (attach-05).
func splitUsage(value string) (path, dictionary string) {
	if !strings.HasPrefix(value, "/") {
		return "", value
	}
	if i := strings.IndexAny(value, " \t"); i >= 0 {
		return value[:i], strings.Trim(value[i:], " \t")
	}
	return value, ""
}

// signalsOf returns the Content-Signal lines that count for a crawler, and whether they are
// those of the group for "*" instead.
func signalsOf(p *policy.Policy, own policy.Group) (lines []policy.Record, inherited bool) {
	lines = ownOrLoose(p, own, string(ContentSignal))
	if lines != nil || own.Token() == "*" {
		return lines, false
	}
	return slices.Collect(p.Group("*").Records(string(ContentSignal))), true
}

// ownOrLoose returns the records of a crawler's group, or else those outside of groups.
func ownOrLoose(p *policy.Policy, own policy.Group, field string) (lines []policy.Record) {
	if !p.HasRecord(field) {
		return nil
	}
	if lines = slices.Collect(own.Records(field)); lines != nil {
		return lines
	}
	for r := range p.Records(field) {
		if r.GroupLine == 0 {
			lines = append(lines, r)
		}
	}
	return lines
}

// license reads the address of a license (RSL 1.0).
func (l *list) license(line int, address, text string) {
	s := Statement{By: RSL, Line: line, Key: licenseField, Value: address, Text: text}
	if !isAbsolute(address) {
		s.Problem = problemURL
	}
	l.add(s)
}

// policyToken reads the group of a policy token, if there is one.
func (l *list) policyToken(g policy.Group, token, target string) {
	if g.Token() == "" || g.Token() == "*" {
		return
	}
	d := g.Decide(target)
	s := Statement{By: PolicyToken, Line: d.Rule.Line, Key: token, Value: "disallow"}
	if d.Allowed {
		s.Value = "allow"
	}
	if d.Rule.Line > 0 {
		s.Text = d.Rule.String()
	}
	l.add(s)
}

const disallow = "\ndisallow: "

// reachOf returns how long each path is that matches a target, in bytes as package policy counts those of rules (RFC
// 9309 §2.2.2): 0 for no path, and -1 for one that does not match. The paths are asked about as the rules of one file.
func reachOf(paths []string, target string) []int {
	rules := policy.Parse([]byte("user-agent: *" + disallow + strings.Join(paths, disallow))).Group("*")
	matches := map[string]bool{"": true}
	for _, r := range rules.Matching(target) {
		matches[normal(r.Pattern)] = true
	}
	reach := make([]int, len(paths))
	for i, path := range paths {
		form := normal(path)
		if reach[i] = len(form); !matches[form] {
			reach[i] = -1
		}
	}
	return reach
}

// normal returns a path as its bytes count.
func normal(path string) string {
	_, form, _ := strings.Cut(policy.Parse([]byte("user-agent: *"+disallow+path)).String(), "\nDisallow: ")
	return strings.TrimSuffix(form, "\n")
}
