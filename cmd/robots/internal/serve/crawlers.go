package serve

// The crawlers that the page offers, and how each of them reads a file. People ask "may Googlebot?", and the answer is
// right only if the file is read as Google reads it. A new crawler needs an entry in crawlers, and README.md says how
// many there are.

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// crawler is one that people ask about. It is read in dialect.
type crawler struct {
	Token   string
	dialect policy.Dialect
	also    string // the group that it obeys if none names it
}

// crawlers are those that the page lists, by purpose. A crawler reads as RFC 9309 says unless its operator says
// otherwise. Google's special crawlers and Applebot obey Googlebot's group where none names them, as their operators
// document. Google-Extended is a token only, by which Google's crawlers are told what their copy may be used for.
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

// crawlerOf is the one of the list that has a token, in any case (RFC 9309 §2.2.1), or nil. It is a copy.
func crawlerOf(token string) *crawler {
	all := allCrawlers()
	if i := slices.IndexFunc(all, func(c crawler) bool { return strings.EqualFold(c.Token, token) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// allCrawlers are those of the list, in its order, in which the table has them.
func allCrawlers() (all []crawler) {
	for _, of := range crawlers {
		all = append(all, of.Are...)
	}
	return all
}

// obeys is the token by which c's group is found in p: that of also, if the file has a group for that and
// none for c. Then the group for "*" does not bind c, though RFC 9309 would have it so.
func (c crawler) obeys(p *policy.Policy) string {
	names := func(token string) bool { g := p.Group(token).Token(); return g != "" && g != anyOther }
	if c.also != "" && !names(c.Token) && names(c.also) {
		return c.also
	}
	return c.Token
}

// readers are the dialects as people call them. Each of answer.Dialects has one.
var readers = map[policy.Dialect]string{
	policy.RFC9309: "the standard (RFC 9309)", policy.Google: "Google", policy.Yandex: "Yandex", policy.Bing: "Bing",
	policy.Original: "the original protocol",
}

// pageRow is how some crawlers are answered, all alike: by a group of the same name, with the same Cells. A file that
// tells few crawlers apart has a short table. Mine is the row of the crawler that was asked about.
type pageRow struct {
	Crawlers []string
	Group    string
	Mine     bool
	Cells    []pageCell
}

// pageCell is a verdict in the table, for one URL. It is compared with ==.
type pageCell struct {
	Allowed bool
	Line    int
	Rule    string
}
