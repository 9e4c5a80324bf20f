package lint

import (
	"slices"
	"strings"
)

// group is one or more user-agent lines, the rules under them, and the other
// records among both.
type group struct {
	agents  []*line
	rules   []*line
	records []*line

	// What the user-agent lines say, nil or "" for nothing.
	star    *line  // that is for everybody else
	search  *line  // that names a search engine, or everybody else
	token   *line  // that names a token which fetches nothing
	train   *line  // that names a crawler or token for the training of models
	hasty   *line  // that names a crawler which does not read Crawl-delay
	engine  string // of hasty
	blocked bool   // closes the whole site, without exceptions
}

// group gathers the lines as RFC 9309 §2.2.1 and Google do: only a rule ends a list
// of user-agent lines. Misspellings that no engine accepts are other records here,
// as they are to the engines: the group under "Desallow" has no rule.
func (f *file) group() {
	for i := range f.lines {
		l := &f.lines[i]
		var g *group
		if n := len(f.groups); n > 0 {
			g = &f.groups[n-1]
		}
		switch {
		case l.kind == userAgent:
			if g == nil || len(g.rules) > 0 {
				f.groups = append(f.groups, group{})
				g = &f.groups[len(f.groups)-1]
			}
			g.agents = append(g.agents, l)
		case l.kind == "" && (l.field == "" || l.noColon): // prose (RT104), no record
		case g == nil:
			f.loose = append(f.loose, l)
		case l.kind == allow || l.kind == disallow:
			g.rules = append(g.rules, l)
		default:
			g.records = append(g.records, l)
		}
	}
	for i := range f.groups {
		f.groups[i].describe()
	}
}

// agentName returns the product token that a user-agent line names, in lower case:
// its value up to the first slash, blank, '*', ';' or ','; "*" for everybody.
//
// Unlike Google it keeps digits, or MJ12bot and MJ13bot would be one crawler here.
func agentName(l *line) string {
	if l.value == "*" || strings.HasPrefix(l.value, "* ") || strings.HasPrefix(l.value, "*\t") {
		return "*"
	}
	name := l.value
	if i := strings.IndexAny(name, "/*;, \t"); i >= 0 {
		name = name[:i]
	}
	return strings.ToLower(name)
}

// describe notes once for each group what the checks ask of it, often for each of
// its lines.
func (g *group) describe() {
	for _, a := range g.agents {
		name := agentName(a)
		note(&g.star, a, name == "*")
		note(&g.search, a, searches(name))
		note(&g.token, a, tokenOnly(name))
		note(&g.train, a, trains(name))
		if engine := ignoresDelay(name); engine != "" && g.hasty == nil {
			g.hasty, g.engine = a, engine
		}
	}
	rule, exceptions := closing(g.rules)
	g.blocked = rule != nil && exceptions == 0
}

// note keeps the first line for which ok holds.
func note(at **line, l *line, ok bool) {
	if ok && *at == nil {
		*at = l
	}
}

// closing returns the rule that closes everything, nil if none does, and how many
// allow lines make exceptions from it.
func closing(rules []*line) (rule *line, exceptions int) {
	open := 0 // octets of the longest allow line for everything
	for _, r := range rules {
		switch everything := core(r.value) == "/"; {
		case r.kind == allow && r.value != "" && everything:
			open = max(open, len(r.value))
		case r.kind == allow && r.value != "":
			exceptions++
		case everything && r.value != "" && (rule == nil || len(r.value) > len(rule.value)):
			rule = r
		}
	}
	if rule != nil && open >= len(rule.value) { // longer wins, and allow wins a tie (RFC 9309 §2.2.2)
		return nil, 0
	}
	return rule, exceptions
}

// core returns the pattern without the wildcards at its end, which match nothing
// more (but do count as octets where the longest pattern wins). What matches every
// path is "/".
func core(pattern string) string {
	c := strings.TrimRight(pattern, "*")
	if c == "" && pattern != "" {
		return "/"
	}
	return c
}

// audience is all the rules for one product token.
type audience struct {
	name  string // of agentName
	first *line  // its first user-agent line
	rules []*line
}

// audiences merges the groups that begin with the same token (RFC 9309 §2.2.1).
// Groups of many tokens count for their first alone, or for "*": looking at each
// rule once keeps 20,000 tokens over 10,000 rules affordable.
func (f *file) audiences() []audience {
	var all []audience
	index := map[string]int{}
	for i := range f.groups {
		g := &f.groups[i]
		name, first := agentName(g.agents[0]), g.agents[0]
		if g.star != nil {
			name, first = "*", g.star
		}
		at, ok := index[name]
		if !ok {
			at = len(all)
			index[name] = at
			all = append(all, audience{name: name, first: first})
		}
		all[at].rules = append(all[at].rules, g.rules...)
	}
	for i := range all {
		all[i].rules = slices.Clip(all[i].rules)
	}
	return all
}
