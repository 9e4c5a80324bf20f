package model

import (
	"cmp"
	"slices"
	"strings"
)

// Group is one or more user-agent lines, the rules under them, and the other records among both.
type Group struct {
	Agents  []*Line
	Rules   []*Line
	Records []*Line

	// What the user-agent lines say, nil or "" for nothing.
	Star    *Line  // that is for everybody else
	Search  *Line  // that names a search engine, or everybody else
	Token   *Line  // that names a token which fetches nothing
	Train   *Line  // that names a crawler or token for the training of models
	Hasty   *Line  // that names a crawler which does not read Crawl-delay
	Engine  string // of hasty
	Blocked bool   // closes the whole site, without exceptions
}

// group gathers the lines as RFC 9309 §2.2.1 and Google do: only a rule ends a list of user-agent lines. Misspellings
// that no engine accepts are other records here, as they are to the engines: the group under "Desallow" has no rule.
func (f *File) group() {
	var g *Group
	for _, l := range f.Lines {
		switch {
		case l.Kind == UserAgent:
			if g == nil || len(g.Rules) > 0 {
				g = &Group{}
				f.Groups = append(f.Groups, g)
			}
			g.Agents = append(g.Agents, l)
		case l.Kind == "" && (l.Field == "" || l.NoColon): // prose (RT104), no record
		case g == nil:
			f.Loose = append(f.Loose, l)
		case l.Rule():
			g.Rules = append(g.Rules, l)
		default:
			g.Records = append(g.Records, l)
		}
		l.Group = g
	}
	for _, g := range f.Groups {
		g.describe()
	}
}

// describe notes once for each group what the checks ask of it, often for each of its lines.
func (g *Group) describe() {
	for _, a := range g.Agents {
		c := crawlerOf(AgentName(a))
		for at, is := range map[**Line]bool{
			&g.Star: AgentName(a) == "*", &g.Search: c.search, &g.Token: c.token, &g.Train: c.trains,
		} {
			if is {
				*at = cmp.Or(*at, a) // the first
			}
		}
		if c.delay != "" && g.Hasty == nil {
			g.Hasty, g.Engine = a, c.delay
		}
	}
	rule, exceptions := Closing(g.Rules)
	g.Blocked = rule != nil && exceptions == 0
}

// Closing returns the rule that closes everything, nil if none does, and how many allow lines make exceptions from it.
func Closing(rules []*Line) (rule *Line, exceptions int) {
	open := 0 // bytes of the longest allow line for everything
	for _, r := range rules {
		switch everything := Core(r.Value) == "/"; {
		case r.Kind == Allow && r.Value != "" && everything:
			open = max(open, len(r.Value))
		case r.Kind == Allow && r.Value != "":
			exceptions++
		case everything && r.Value != "" && (rule == nil || len(r.Value) > len(rule.Value)):
			rule = r
		}
	}
	if rule != nil && open >= len(rule.Value) { // longer wins, and allow wins a tie (RFC 9309 §2.2.2)
		return nil, 0
	}
	return rule, exceptions
}

// Welcomes reports whether some group lets a crawler in that it names.
func (f *File) Welcomes() bool {
	return slices.ContainsFunc(f.Groups, func(g *Group) bool {
		return !g.Blocked && len(g.Rules) > 0 &&
			slices.ContainsFunc(g.Agents, func(a *Line) bool { return AgentName(a) != "*" })
	})
}

// Names reports whether the group is for one of the product tokens, which are in lower case.
func (g *Group) Names(tokens ...string) bool {
	return slices.ContainsFunc(g.Agents, func(a *Line) bool { return slices.Contains(tokens, AgentName(a)) })
}

// Closed returns the cores of what the rules disallow, or were meant to.
func Closed(rules []*Line) []string {
	var cores []string
	for _, r := range rules {
		if r.Kind == Disallow && r.Value != "" {
			cores = append(cores, Core(r.Value))
		}
	}
	return cores
}

// Audience is all the rules for one product token.
type Audience struct {
	Name  string // of agentName
	First *Line  // its first user-agent line
	Rules []*Line
}

// Audiences merges the groups that begin with the same token (RFC 9309 §2.2.1). Groups of many tokens count for their
// first alone, or for "*": looking at each rule once keeps 20,000 tokens over 10,000 rules affordable.
func (f *File) Audiences() []*Audience {
	var all []*Audience
	byName := map[string]*Audience{}
	for _, g := range f.Groups {
		name, first := AgentName(g.Agents[0]), g.Agents[0]
		if g.Star != nil {
			name, first = "*", g.Star
		}
		if name == "" || IsHeader(first.Value) {
			continue // names no crawler, or one in stars, or not by this name (RT005, RT209, RT206)
		}
		a := byName[name]
		if a == nil {
			a = &Audience{Name: name, First: first}
			byName[name], all = a, append(all, a)
		}
		a.Rules = append(a.Rules, g.Rules...)
	}
	return all
}

// A crawler is what is known of a product token: its operator's own documentation as of November 2026.
type crawler struct {
	name    string // in its usual spelling; in lower case where the token is no longer used alone
	token   bool   // stands for a use and fetches nothing
	trains  bool   // is for the training of models
	delay   string // the engine whose crawlers do not read Crawl-delay
	search  bool   // of a search engine that renders pages
	retired string // what stands in for it now
}

const (
	anthropics = "Anthropic's crawlers are ClaudeBot, Claude-SearchBot and Claude-User"
	closed     = "its search engine has closed"
)

var crawlers = func() map[string]crawler {
	all := map[string]crawler{}
	for _, c := range []crawler{
		{name: "Google-Extended", token: true, trains: true}, {name: "Applebot-Extended", token: true, trains: true},
		{name: "GPTBot", trains: true}, {name: "ClaudeBot", trains: true}, {name: "CCBot", trains: true},
		{name: "meta-externalagent", trains: true}, {name: "Bytespider", trains: true},
		{name: "Googlebot-Mobile", retired: "Google's mobile crawler answers to Googlebot"},
		{name: "Applebot", delay: "Apple"}, {name: "Amazonbot", delay: "Amazon"}, {name: "bingbot", search: true},
		{name: "msnbot", retired: "Bing's crawler is bingbot"}, {name: "Exabot", retired: closed},
		{name: "Slurp", retired: "Yahoo's results come from Bing, whose crawler is bingbot"},
	} {
		all[strings.ToLower(c.name)] = c
	}
	for name := range strings.FieldsSeq(`Googlebot Googlebot-Image Googlebot-News Googlebot-Video AdsBot-Google
		Mediapartners-Google GoogleOther Google-CloudVertexBot Yandex YandexBot YandexImages YandexAdditional adidxbot
		BingPreview DuckDuckBot DuckAssistBot Baiduspider Amzn-SearchBot OAI-SearchBot ChatGPT-User Claude-SearchBot
		Claude-User PerplexityBot FacebookBot facebookexternalhit Twitterbot SeznamBot AhrefsBot SemrushBot MJ12bot
		DotBot ia_archiver PetalBot Sogou`) {
		all[strings.ToLower(name)] = crawler{name: name}
	}
	for name, retired := range map[string]string{
		"anthropic-ai": anthropics, "claude-web": anthropics, "msnbot-media": "Bing's crawler is bingbot",
		"teoma": "Ask closed its search engine", "scooter": closed, "twiceler": closed, "gigabot": closed,
		"cohere-ai": "Cohere runs no crawler",
	} {
		all[name] = crawler{retired: retired}
	}
	return all
}()

// crawlerOf returns what is known of a name in lower case.
func crawlerOf(name string) crawler {
	c := crawlers[name]
	switch {
	case strings.HasPrefix(name, "googlebot"):
		c.search, c.delay = true, "Google"
	case strings.HasPrefix(name, "yandex"):
		c.search, c.delay = true, "Yandex"
	case name == "*":
		c.search = true
	}
	return c
}

// KnownAgent returns the usual spelling of a well-known crawler's product token, "" if name is none.
func KnownAgent(name string) string { return crawlers[strings.ToLower(name)].name }

// Retired says what stands in for a product token that is no longer used, "" if name (in lower case) still is.
func Retired(name string) string { return crawlers[name].retired }

// IgnoresStar tells the crawlers that obey a group of their own alone.
func IgnoresStar(name string) bool {
	return strings.HasPrefix(name, "adsbot-google") || name == "mediapartners-google"
}
