package answer

// Who is judged, and how robots.txt is read to it. People name a crawler by its product token, by several, or by its whole
// User-Agent field; all doors of the command take these, and all come here, so that one question has one answer. A new
// crawler needs an entry in Crawlers; README.md says how many the page offers.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// Crawler is one that people ask about.
type Crawler struct {
	Token     string
	Dialect   policy.Dialect // of its engine
	Fallbacks []string       // whose group it obeys if none names it, in this order
}

// Purpose is what some crawlers are for.
type Purpose struct {
	For string // empty: the page does not offer them
	Are []Crawler
}

var (
	googles = []string{"Googlebot"}

	// Crawlers are those that are known, by purpose. A crawler reads as RFC 9309 says unless its operator says otherwise.
	// Google's special crawlers and Applebot obey Googlebot's group where none names them, as their operators document.
	// Google-Extended is a token only, by which Google's crawlers are told what their copy may be used for.
	Crawlers = [...]Purpose{
		{"Search", []Crawler{
			{"Googlebot", policy.Google, nil}, {"Googlebot-Image", policy.Google, googles},
			{"Googlebot-News", policy.Google, googles}, {"Bingbot", policy.Bing, nil}, {"YandexBot", policy.Yandex, nil},
			{"DuckDuckBot", policy.RFC9309, nil}, {"Applebot", policy.RFC9309, googles},
			{"Baiduspider", policy.RFC9309, nil},
		}},
		{"AI", []Crawler{
			{"GPTBot", policy.RFC9309, nil}, {"OAI-SearchBot", policy.RFC9309, nil}, {"ClaudeBot", policy.RFC9309, nil},
			{"PerplexityBot", policy.RFC9309, nil}, {"CCBot", policy.RFC9309, nil}, {"Google-Extended", policy.Google, nil},
			{"meta-externalagent", policy.RFC9309, nil}, {"Amazonbot", policy.RFC9309, nil}, {"Bytespider", policy.RFC9309, nil},
		}},
		{"", []Crawler{
			{"Googlebot-Video", policy.Google, googles}, {"Google-InspectionTool", policy.Google, googles},
			{"GoogleOther", policy.Google, nil}, {"Storebot-Google", policy.Google, nil}, {"msnbot", policy.Bing, nil},
			{"Yandex", policy.Yandex, nil}, {"YandexImages", policy.Yandex, nil},
		}},
	}
)

// AnyOther is the crawler that no group names.
const AnyOther = "*"

// KnownCrawler is the one of Crawlers that has a token, in any case (RFC 9309 §2.2.1).
func KnownCrawler(token string) (c Crawler, known bool) {
	for _, of := range Crawlers {
		for _, c := range of.Are {
			if strings.EqualFold(c.Token, token) {
				return c, true
			}
		}
	}
	return Crawler{}, false
}

// Everyone is k as each of the Crawlers that the page offers, and as AnyOther, which have the purposes search and ai, and
// none.
func (k *Asker) Everyone() (all []Asker) {
	each := *k
	each.All, each.by = false, "" // each reads as its engine does
	for _, of := range Crawlers {
		for _, c := range of.Are {
			if each.purpose = strings.ToLower(of.For); of.For != "" {
				each.SetTokens([]string{c.Token})
				all = append(all, each)
			}
		}
	}
	each.purpose = ""
	each.SetTokens([]string{AnyOther})
	return append(all, each)
}

// What chose the dialect of an answer: the field "dialect_by".
const (
	ByFlag    = "as"      // --as, or the parameter
	ByCrawler = "crawler" // its engine reads so
	ByDefault = "default" // the crawler is none of the table
)

// SetAgent takes who asks: a product token, with or without a version behind it ("ExampleBot/1.0"), several with commas
// between them, of which the first that a group names counts, or a whole User-Agent field. Unless --as says otherwise,
// a crawler of the table is read as its engine reads, and a single one has its fallbacks.
func (k *Asker) SetAgent(agent string) error {
	tokens, err := tokensOf(strings.TrimSpace(agent))
	if err == nil {
		k.SetTokens(tokens)
	}
	return err
}

// SetTokens is SetAgent for tokens, one at least, which are taken as they are.
func (k *Asker) SetTokens(tokens []string) {
	k.Agent, k.also, k.name = tokens[0], tokens[1:], strings.Join(tokens, ", ")
	c, known := KnownCrawler(tokens[0])
	if len(tokens) == 1 {
		k.also = c.Fallbacks
	}
	switch {
	case k.by == ByFlag:
	case known:
		k.Dialect, k.by = c.Dialect, ByCrawler
	default:
		k.Dialect, k.by = policy.RFC9309, ByDefault
	}
}

// tokensOf are the product tokens that a text names, one at least.
func tokensOf(text string) (tokens []string, err error) {
	if text == AnyOther {
		return []string{text}, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.Trim(part, " \t")
		token := policy.ProductToken(part)
		rest := strings.TrimPrefix(part, token)
		if token == "" || rest != "" && rest[0] != '/' || strings.ContainsFunc(part, Blank) || strings.ContainsAny(part, "();") {
			return fieldToken(text)
		}
		if !slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, token) }) {
			tokens = append(tokens, token)
		}
	}
	return tokens, nil
}

// fieldToken is the product token of a whole User-Agent field, which has a version or a comment. Text without either
// is refused: a name of two words is no token.
func fieldToken(text string) ([]string, error) {
	field := strings.ContainsAny(text, "/(")
	if strings.ContainsFunc(text, Blank) && !field {
		return nil, fmt.Errorf("%s holds a blank: give the product token alone, like ExampleBot, or the whole User-Agent field", Quoted(text))
	}
	token := policy.ProductToken(text)
	if token == "" || !field {
		return nil, fmt.Errorf("%s holds no product token, like ExampleBot (RFC 9309 section 2.2.1)", Quoted(text))
	}
	return []string{token}, nil
}

// SetDialect takes a dialect by name, whatever the crawler is, or "all", with which Dialect is the one that
// InAllDialects starts with.
func (k *Asker) SetDialect(name string) (err error) {
	if k.All = name == "all"; k.All {
		name = DialectName(policy.RFC9309)
	}
	d, err := DialectByName(name)
	if err != nil {
		return fmt.Errorf("%w, or all", err)
	}
	k.Dialect, k.by = d, ByFlag
	return nil
}

// SaidDialect is the dialect that SetDialect took; empty: it follows from the crawler.
func (k *Asker) SaidDialect() string {
	if k.by != ByFlag {
		return ""
	}
	return DialectName(k.Dialect)
}

// FallsBack reports whether Obeys depends on the policy.
func (k *Asker) FallsBack() bool { return len(k.also) > 0 }

// Obeys is the token by which p has the group that binds the crawler: the first that a group names. Where none is
// named, the group for "*" binds it.
func (k *Asker) Obeys(p *policy.Policy) string {
	if len(k.also) == 0 {
		return k.Agent
	}
	for _, token := range append([]string{k.Agent}, k.also...) {
		if group := p.Group(token).Token(); group != "" && group != AnyOther {
			return token
		}
	}
	return k.Agent
}

// Sign says in v who was judged, how the file was read to it, and what the group of the policy asks for besides.
func (k *Asker) Sign(v *Verdict, d policy.Dialect, p *policy.Policy) {
	v.Agent, v.Dialect, v.DialectBy, v.Purpose = cmp.Or(k.name, k.Agent), DialectName(d), k.by, k.purpose
	token := k.Obeys(p)
	if token != k.Agent {
		v.Fallback = token
	}
	if delay, ok := p.Group(token).CrawlDelay(); ok {
		seconds := delay.Seconds()
		v.CrawlDelay = &seconds
	}
}
