package answer

// May a page be listed? What robots.txt, the header and meta elements come to together, for each engine.

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

// Listing is what a page comes to for one crawler, as its engine reads it.
type Listing struct {
	Crawler string
	Tokens  []string // that it answers to
	Dialect policy.Dialect
	Effect  page.Effect
	Fetch   Verdict // of robots.txt
	NoIndex string  // the statement that asks not to list the page; empty: there is none
}

// Engines are the crawlers of those who list pages, by the tokens that each answers to, the narrowest first.
var Engines = [][]string{{"Googlebot"}, {"YandexBot", "Yandex"}, {"Bingbot", "msnbot"}}

// Listings are what a page at u comes to, by robots, the robots.txt of its site, and by its own rules: for k, whose rules are
// read strictly, and for each engine.
func (k *Asker) Listings(robots *fetch.Result, u *url.URL, rules page.Rules) (all []Listing) {
	for i, tokens := range append([][]string{{k.Agent}}, Engines...) {
		e, d := *k, policy.RFC9309
		if i > 0 {
			e = Asker{}
			e.SetTokens(tokens)
			d = e.Dialect
		}
		p := robots.In(e.Dialect).Policy
		a, err := client.DecideWith(p, e.Obeys(p), u)
		if err != nil {
			continue
		}
		l := Listing{Crawler: e.Agent, Tokens: tokens, Dialect: d, Effect: rules.For(d, tokens...), Fetch: NewVerdict("", a)}
		for s, without := range rules.Explain(d, tokens...) {
			if without == "" && slices.Contains([]string{"noindex", "none", "unavailable_after"}, s.Rule) && !l.Effect.MayIndex(time.Now()) {
				l.NoIndex = s.String()
				break
			}
		}
		all = append(all, l)
	}
	return all
}

// String says it in a sentence, safe to print.
func (l Listing) String() string {
	who, asks := Visible(strings.Replace(l.Crawler, AnyOther, "a crawler", 1)), Visible(l.NoIndex)
	switch {
	case l.Fetch.Allowed && asks == "":
		return who + " may fetch and list it"
	case l.Fetch.Allowed:
		return who + " may fetch it; it asks not to be listed: " + asks
	case asks == "":
		return who + " may not fetch it (" + l.Fetch.Because() + "); it may list the address alone"
	}
	return who + " may not fetch it (" + l.Fetch.Because() + "), nor see that it asks not to be listed: " + asks
}
