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
	Engine  string // of Hasty
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
		name := AgentName(a)
		engine := paceless(name)
		for at, is := range map[**Line]bool{
			&g.Star: name == "*", &g.Search: name == "*" || name == "bingbot" || engine == "Google" || engine == "Yandex",
			&g.Token: tokens[name] != "", &g.Train: trainers[name] != "", &g.Hasty: engine != "",
		} {
			if is {
				*at = cmp.Or(*at, a) // the first
			}
		}
		if g.Hasty == a {
			g.Engine = engine
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

// What is known of product tokens is their operators' own documentation as of November 2026.
var (
	known = spellings(`Googlebot Googlebot-Image Googlebot-Mobile Googlebot-News Googlebot-Video AdsBot-Google
		Mediapartners-Google GoogleOther Google-CloudVertexBot Google-Extended Yandex YandexBot YandexImages
		YandexAdditional bingbot adidxbot BingPreview msnbot DuckDuckBot DuckAssistBot Baiduspider Amazonbot Amzn-SearchBot
		Applebot Applebot-Extended GPTBot OAI-SearchBot ChatGPT-User ClaudeBot Claude-SearchBot Claude-User PerplexityBot
		CCBot Bytespider meta-externalagent FacebookBot facebookexternalhit Twitterbot SeznamBot AhrefsBot SemrushBot
		MJ12bot DotBot Exabot ia_archiver PetalBot Slurp Sogou`)
	tokens   = spellings("Google-Extended Applebot-Extended") // stand for a use and fetch nothing
	trainers = spellings("Google-Extended Applebot-Extended GPTBot ClaudeBot CCBot Bytespider meta-externalagent")
)

// spellings returns names by what they are in lower case.
func spellings(names string) map[string]string {
	all := map[string]string{}
	for name := range strings.FieldsSeq(names) {
		all[strings.ToLower(name)] = name
	}
	return all
}

const (
	anthropics = "Anthropic's crawlers are ClaudeBot, Claude-SearchBot and Claude-User"
	bings      = "Bing's crawler is bingbot"
	closed     = "its search engine has closed"
)

var retired = map[string]string{
	"anthropic-ai": anthropics, "claude-web": anthropics, "cohere-ai": "Cohere runs no crawler",
	"googlebot-mobile": "Google's mobile crawler answers to Googlebot", "msnbot": bings, "msnbot-media": bings,
	"slurp": "Yahoo's results come from Bing, whose crawler is bingbot", "teoma": "Ask closed its search engine",
	"exabot": closed, "gigabot": closed, "scooter": closed, "twiceler": closed,
}

// paceless returns the engine of a crawler, in lower case, that does not read Crawl-delay, or "".
func paceless(name string) string {
	switch {
	case strings.HasPrefix(name, "googlebot"):
		return "Google"
	case strings.HasPrefix(name, "yandex"):
		return "Yandex"
	}
	return map[string]string{"applebot": "Apple", "amazonbot": "Amazon"}[name]
}

// KnownAgent returns the usual spelling of a well-known crawler's product token, "" if name is none.
func KnownAgent(name string) string { return known[strings.ToLower(name)] }

// Retired says what stands in for a product token that is no longer used, "" if name (in lower case) still is.
func Retired(name string) string { return retired[name] }

// IgnoresStar tells the crawlers that obey a group of their own alone.
func IgnoresStar(name string) bool {
	return strings.HasPrefix(name, "adsbot-google") || name == "mediapartners-google"
}
