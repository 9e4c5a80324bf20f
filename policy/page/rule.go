package page

import (
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// flags is a set of restrictions without a value.
type flags uint16

const (
	noIndex flags = 1 << iota
	noFollow
	noArchive
	noCache
	noSnippet
	noTranslate
	noImageIndex
	indexIfEmbedded
	noAI
	noImageAI
	noML
)

// value is which of an Effect's values stands behind the colon of a rule.
type value uint8

const (
	noValue value = iota
	snippet
	video
	image
	date
	values
)

// engines is a set of dialects.
type engines uint8

const (
	strict engines = 1 << iota // RFC9309 and Original: a crawler that honors whatever was asked for
	google
	yandex
	bing
)

// A rule is one row of what is known about a name.
type rule struct {
	name  string
	sets  flags // restricts
	lifts flags // takes back, where positive words count
	value value
	used  engines // that give it an effect
	past  string  // why no engine does
}

const directories = "the directory that it is about no longer exists"

// rules are the names that any engine documents or that sites use, those of the table in the package documentation. A
// rule whose used is empty is known, so that it does not count as a misspelling, and has no effect.
var rules = [...]rule{
	{name: "noindex", sets: noIndex, used: strict | google | yandex | bing},
	{name: "nofollow", sets: noFollow, used: strict | google | yandex | bing},
	{name: "none", sets: noIndex | noFollow, used: strict | google | yandex | bing},
	{name: "all", lifts: noIndex | noFollow, used: yandex},
	{name: "index", lifts: noIndex, used: yandex},
	{name: "follow", lifts: noFollow, used: yandex},
	{name: "archive", lifts: noArchive, used: yandex},
	{name: "noarchive", sets: noArchive, used: strict | yandex | bing},
	{name: "nocache", sets: noCache, used: strict | bing},
	{name: "nosnippet", sets: noSnippet, used: strict | google | bing},
	{name: "max-snippet", value: snippet, used: strict | google | bing},
	{name: "max-image-preview", value: image, used: strict | google | bing},
	{name: "max-video-preview", value: video, used: strict | google | bing},
	{name: "notranslate", sets: noTranslate, used: strict | google},
	{name: "noimageindex", sets: noImageIndex, used: strict | google},
	{name: "unavailable_after", value: date, used: strict | google},
	{name: "indexifembedded", sets: indexIfEmbedded, used: strict | google},
	{name: "noai", sets: noAI, used: strict},
	{name: "noimageai", sets: noImageAI, used: strict},
	{name: "noml", sets: noML, used: strict},
	{name: "nositelinkssearchbox", past: "no engine shows the search box that it is about"},
	{name: "noodp", past: directories},
	{name: "noydir", past: directories},
	{name: "noyaca", past: directories},
}

// unknown is the index of a name that is not in the table.
const unknown = ^uint8(0)

// lookup returns the index of a rule by its whole name, in any case.
func lookup(name string) uint8 {
	for i := range rules {
		if ascii.FoldEqual(rules[i].name, name) {
			return uint8(i)
		}
	}
	return unknown
}

// imagePreviews are the values of max-image-preview, the strictest first.
var imagePreviews = [...]string{"none", "standard", "large"}

// An engine is how the crawlers of a dialect read what applies to them.
type engine struct {
	name     string
	bit      engines
	positive bool     // positive words lift restrictions
	nocache  bool     // nocache beside noarchive means nocache alone
	scopes   []string // scopes that the header parser knows; nil: any
	byName   string   // crawlers whose name begins so heed only what names them
}

var engineOf = [...]engine{
	policy.RFC9309:  {name: "a strict crawler", bit: strict},
	policy.Google:   {name: "Google", bit: google, byName: "adsbot-google"},
	policy.Yandex:   {name: "Yandex", bit: yandex, positive: true, scopes: []string{"yandex", "yandexbot"}},
	policy.Bing:     {name: "Bing", bit: bing, nocache: true},
	policy.Original: {name: "a strict crawler", bit: strict},
}

// reading returns the row of d. A value outside the constants reads as RFC9309.
func reading(d policy.Dialect) *engine {
	if int(d) < len(engineOf) {
		return &engineOf[d]
	}
	return &engineOf[policy.RFC9309]
}

func isSpace(c rune) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// trim cuts ASCII white space. Line breaks occur in folded fields and in attributes.
func trim(s string) string { return strings.Trim(s, " \t\n\v\f\r") }
