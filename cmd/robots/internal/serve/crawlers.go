package serve

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// crawler is one that people ask about.
type crawler struct {
	Token   string
	dialect policy.Dialect
	also    string // the group that it obeys if none names it
}

// crawlers are those that the page lists, by purpose. A crawler reads as RFC 9309 says unless
// its operator says otherwise.
var crawlers = []struct {
	For string
	Are []crawler
}{
	{"Search", []crawler{
		{"Googlebot", policy.Google, ""}, {"Googlebot-Image", policy.Google, "Googlebot"},
		{"Googlebot-News", policy.Google, "Googlebot"}, {"Bingbot", policy.Bing, ""}, {"YandexBot", policy.Yandex, ""},
		{"DuckDuckBot", policy.RFC9309, ""}, {"Applebot", policy.RFC9309, "Googlebot"},
		{"Baiduspider", policy.RFC9309, ""},
	}},
	{"AI", []crawler{
		{"GPTBot", policy.RFC9309, ""}, {"OAI-SearchBot", policy.RFC9309, ""}, {"ClaudeBot", policy.RFC9309, ""},
		{"PerplexityBot", policy.RFC9309, ""}, {"CCBot", policy.RFC9309, ""}, {"Google-Extended", policy.Google, ""},
		{"meta-externalagent", policy.RFC9309, ""}, {"Amazonbot", policy.RFC9309, ""}, {"Bytespider", policy.RFC9309, ""},
	}},
}

// anyOther is the crawler that no group names.
const anyOther = "*"

// crawlerOf is the one of the list that has a token, or nil.
func crawlerOf(token string) *crawler {
	all := allCrawlers()
	if i := slices.IndexFunc(all, func(c crawler) bool { return strings.EqualFold(c.Token, token) }); i >= 0 {
		return &all[i]
	}
	return nil
}

func allCrawlers() (all []crawler) {
	for _, of := range crawlers {
		all = append(all, of.Are...)
	}
	return all
}

// obeys is the token by which c's group is found in p.
func (c crawler) obeys(p *policy.Policy) string {
	names := func(token string) bool { g := p.Group(token).Token(); return g != "" && g != anyOther }
	if c.also != "" && !names(c.Token) && names(c.also) {
		return c.also
	}
	return c.Token
}

// readers are the dialects as people call them.
var readers = map[policy.Dialect]string{
	policy.RFC9309: "the standard (RFC 9309)", policy.Google: "Google", policy.Yandex: "Yandex", policy.Bing: "Bing",
	policy.Original: "the original protocol",
}

// pageRow is how some crawlers are answered, all alike.
type pageRow struct {
	Crawlers []string
	Group    string
	Mine     bool
	Cells    []pageCell
}

// pageCell is a verdict in the table.
type pageCell struct {
	Allowed bool
	Line    int
	Rule    string
}
