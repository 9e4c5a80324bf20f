package page

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// Rules are the statements of one response about how its content may be used,
// from its header, from its meta elements or from both (they form one set).
//
// The zero value holds no statements and restricts nothing. Rules are immutable, cheap to copy and safe for concurrent
// use. They keep the text that they were read from: at most 64 KiB of header and 256 KiB of a page.
type Rules struct {
	statements []Statement
	incomplete bool
}

// A Statement is one item of a list of rules, as it stood in the response: a rule, or something that was not
// understood. The text comes from the network and may hold any bytes; quote it before it goes to a terminal.
//
// The zero value is no statement that a response can make.
type Statement struct {
	// Rule is the name of the rule, in lower case if it is a known one. It is empty if the item has none.
	Rule string

	// Value is what stands behind the colon of the rule, as written.
	Value string

	// Scope is the crawler that the statement is for, as written, or empty if it is for all: the name before a colon in
	// the header, the name of a meta element that is not robots.
	Scope string

	// Line is the X-Robots-Tag field line, counted from 1, or 0 for a meta element.
	Line int

	// Offset is where in the body the meta element begins, in bytes from 0 as
	// they were read, or -1 if that is not known and for the header.
	Offset int64

	// Text is the item as written, its scope included.
	Text string

	// Problem is why the statement has no effect for any crawler, or empty.
	Problem string

	rule   uint8 // its row of rules, or unknown
	number int64 // the value: a number, a row of imagePreviews, seconds since 1970
}

// String returns the statement with the place where it stood: X-Robots-Tag line 1: "googlebot: noindex".
func (s Statement) String() string {
	switch {
	case s.Line > 0:
		return fmt.Sprintf("X-Robots-Tag line %d: %.256q", s.Line, s.Text)
	case s.Offset < 0:
		return fmt.Sprintf("meta: %.256q", s.Text)
	}
	return fmt.Sprintf("meta at byte %d: %.256q", s.Offset, s.Text)
}

// All returns all statements in the order in which they stood, those without effect included.
func (r Rules) All() iter.Seq[Statement] { return slices.Values(r.statements) }

// Incomplete reports whether the response may hold statements that were not read: there was more than the limits allow,
// or the body was not read to its end.
func (r Rules) Incomplete() bool { return r.incomplete }

// maxStatements is how many are kept of one response.
const maxStatements = 256

// Add returns the statements of r followed by those of o. Past 256 statements
// the rest is dropped, and the result is incomplete.
func (r Rules) Add(o Rules) Rules {
	incomplete := r.incomplete || o.incomplete
	room := maxStatements - len(r.statements)
	if room < len(o.statements) {
		o.statements, incomplete = o.statements[:max(room, 0)], true
	}
	return Rules{append(slices.Clip(r.statements), o.statements...), incomplete}
}

// For returns what the statements come to for a crawler with the product tokens, as the engine behind the dialect reads
// them. A statement applies if it names no crawler, or one of the tokens: whole, in any case. Pass every name that the
// crawler answers to: "googlebot-news", "googlebot"; or "yandexbot", "yandex". Without tokens, only what is for all
// applies.
//
// The restrictions add up, and the smallest limit and earliest date hold, but for what the package
// documentation says of Yandex and Bing. RFC9309 and Original are the strict reading for
// a crawler of one's own: every rule has its effect, also those that some engine ignores.
func (r Rules) For(d policy.Dialect, tokens ...string) Effect {
	t := r.sum(reading(d), tokens)
	return t.effect(r.incomplete)
}

// Explain returns all statements, each with the reason why it has no effect for a crawler with the product tokens in
// the dialect, or with "" if it has one. A statement that a stricter one makes redundant has no effect.
func (r Rules) Explain(d policy.Dialect, tokens ...string) iter.Seq2[Statement, string] {
	return func(yield func(Statement, string) bool) {
		e := reading(d)
		t := r.sum(e, tokens)
		for i := range r.statements {
			s := &r.statements[i]
			why := s.ignored(e, tokens)
			if why == "" {
				why = t.outweighed(s)
			}
			if !yield(*s, why) {
				return
			}
		}
	}
}

// ignored returns why a statement does not apply, or "".
func (s *Statement) ignored(e *engine, tokens []string) string {
	if s.Problem != "" {
		return s.Problem
	}
	isOther := func(token string) bool { return !ascii.FoldPrefix(token, e.byName) }
	switch r := &rules[s.rule]; {
	case s.Scope == "" && e.byName != "" && len(tokens) > 0 && !slices.ContainsFunc(tokens, isOther):
		return e.name + "'s AdsBot heeds only what names it"
	case s.Scope != "" && s.Line > 0 && e.scopes != nil && !holds(e.scopes, s.Scope):
		return e.name + "'s header parser does not know this crawler"
	case s.Scope != "" && !holds(tokens, s.Scope):
		return "it is for another crawler"
	case r.past != "":
		return r.past
	case r.used&e.bit != 0:
		return ""
	case r.lifts != 0:
		return e.name + " adds up restrictions: positive words have no effect"
	default:
		return e.name + " does not use the rule"
	}
}

func holds(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return ascii.FoldEqual(n, name) })
}

// A total is what the statements come to that apply.
type total struct {
	engine       *engine
	sets, lifted flags
	said         [values]bool
	least        [values]int64
}

func (r Rules) sum(e *engine, tokens []string) (t total) {
	t.engine = e
	for i := range r.statements {
		s := &r.statements[i]
		if s.ignored(e, tokens) != "" {
			continue
		}
		row := &rules[s.rule]
		t.sets |= row.sets
		t.lifted |= row.lifts
		if v := row.value; v != noValue && (!t.said[v] || stricter(v, s.number, t.least[v])) {
			t.said[v], t.least[v] = true, s.number
		}
	}
	if t.said[snippet] && t.least[snippet] == 0 {
		t.sets |= noSnippet // the same, in Google's words
	}
	return t
}

// stricter reports whether a restricts more than b: it is smaller, or earlier. The number -1 leaves the choice to the
// engine, and so is the largest.
func stricter(v value, a, b int64) bool {
	if v == snippet || v == video {
		return uint64(a) < uint64(b)
	}
	return a < b
}

// restrictions returns the flags that hold in the end.
func (t *total) restrictions() flags {
	f := t.sets &^ t.lifted
	if t.engine.nocache && f&noCache != 0 {
		f &^= noArchive
	}
	return f
}

// outweighed returns why a statement that applies changes nothing, or "".
func (t *total) outweighed(s *Statement) string {
	row := &rules[s.rule]
	switch {
	case row.lifts != 0 && row.lifts&t.sets == 0:
		return "there is nothing that it could lift"
	case row.sets != 0 && row.sets&t.lifted == row.sets:
		return "a positive word wins"
	case row.sets != 0 && row.sets&t.restrictions() == 0:
		return "nocache wins over noarchive"
	case row.value != noValue && s.number != t.least[row.value]:
		return "a stricter value holds"
	case row.value == snippet && s.number != 0 && t.sets&noSnippet != 0:
		return "nosnippet is stricter"
	}
	return ""
}

// effect spells out what holds.
func (t *total) effect(incomplete bool) Effect {
	e := Effect{
		MaxSnippet:      Limit{t.said[snippet], int(t.least[snippet])},
		MaxVideoPreview: Limit{t.said[video], int(t.least[video])},
		Incomplete:      incomplete,
	}
	for i, held := range e.restrictions() {
		*held = t.restrictions()>>i&1 != 0
	}
	if t.said[image] {
		e.MaxImagePreview = imagePreviews[t.least[image]]
	}
	if t.said[date] {
		e.UnavailableAfter = time.Unix(t.least[date], 0).UTC()
	}
	return e
}

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

// value says which of an Effect's values follows the colon of a rule.
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

// An Effect is what holds for one crawler. The zero value restricts nothing. Effects can be compared by ==, which also
// looks at what changes nothing: a MaxSnippet stays beside a NoSnippet that is stricter. An Effect is a value: copies
// may be used concurrently.
type Effect struct {
	NoIndex         bool // do not list the page
	NoFollow        bool // do not follow its links
	NoArchive       bool // offer no cached copy; Bing: nor use it for answers and training
	NoCache         bool // Bing: use URL, title and snippet only for answers and training
	NoSnippet       bool // show no text or video of it; also set by a MaxSnippet of 0
	NoTranslate     bool // offer no translation
	NoImageIndex    bool // do not list its images
	IndexIfEmbedded bool // despite NoIndex, it may be listed where another page embeds it
	NoAI            bool // no use for machine learning
	NoImageAI       bool // no use of its images for machine learning
	NoML            bool // no use for machine learning, in the words of Mojeek

	// MaxSnippet is how many characters of text may be shown.
	MaxSnippet Limit

	// MaxVideoPreview is how many seconds of a video may be shown, 0 for a still image.
	MaxVideoPreview Limit

	// MaxImagePreview is how large an image may be shown: "none", "standard" or "large". If empty, nothing was said.
	MaxImagePreview string

	// UnavailableAfter is the instant after which the page may not be listed, in UTC. If zero, there is none. It is
	// kept as an instant so that a stored page can be judged again later; see MayIndex.
	UnavailableAfter time.Time

	// Incomplete says that there may be more than was read, as
	// Rules.Incomplete does: the page may restrict more than this.
	Incomplete bool
}

// A Limit is the number of a max-snippet or max-video-preview rule. The zero
// value means that nothing was said, which engines treat as N = -1.
type Limit struct {
	Said bool // there is a rule
	N    int  // characters or seconds, 0 for none at all; -1: the engine chooses
}

// MayIndex reports whether the page may be listed at an instant: NoIndex is not set, and UnavailableAfter has not
// passed. It does not look at Incomplete, as a careful crawler does. One that lists embedded pages on their own account
// looks at IndexIfEmbedded as well.
func (e Effect) MayIndex(at time.Time) bool {
	return !e.NoIndex && (e.UnavailableAfter.IsZero() || !at.After(e.UnavailableAfter))
}

// MayFollow reports whether a link of the page with the value of its rel attribute may be followed. The page's NoFollow
// holds for all of its links. A link that is only ugc or sponsored may be followed; see [ParseRel]. Another page may
// lead to the same target.
func (e Effect) MayFollow(rel string) bool {
	return !e.NoFollow && !ParseRel(rel).NoFollow
}

var restrictionNames = [...]string{"noindex", "nofollow", "noarchive", "nocache", "nosnippet", "notranslate", "noimageindex",
	"indexifembedded", "noai", "noimageai", "noml"}

// restrictions returns those without a value, in the order of their flags and names.
func (e *Effect) restrictions() [len(restrictionNames)]*bool {
	return [...]*bool{&e.NoIndex, &e.NoFollow, &e.NoArchive, &e.NoCache, &e.NoSnippet, &e.NoTranslate, &e.NoImageIndex,
		&e.IndexIfEmbedded, &e.NoAI, &e.NoImageAI, &e.NoML}
}

// String returns the rules that say the same, as an X-Robots-Tag would, or "all" if there are none.
func (e Effect) String() string {
	var rules []string
	for i, held := range e.restrictions() {
		if *held {
			rules = append(rules, restrictionNames[i])
		}
	}
	if e.MaxSnippet.Said {
		rules = append(rules, fmt.Sprintf("max-snippet:%d", e.MaxSnippet.N))
	}
	if e.MaxImagePreview != "" {
		rules = append(rules, "max-image-preview:"+e.MaxImagePreview)
	}
	if e.MaxVideoPreview.Said {
		rules = append(rules, fmt.Sprintf("max-video-preview:%d", e.MaxVideoPreview.N))
	}
	if !e.UnavailableAfter.IsZero() {
		rules = append(rules, "unavailable_after:"+e.UnavailableAfter.UTC().Format(time.RFC3339))
	}
	if rules == nil {
		return "all"
	}
	return strings.Join(rules, ", ")
}

// A Rel is what the rel attribute of a link says to crawlers. The zero value says nothing. Google has taken all three
// for hints since March 2020; a polite crawler does not follow a NoFollow link from that page.
type Rel struct {
	NoFollow  bool // the page does not vouch for the target
	UGC       bool // a user of the site made the link
	Sponsored bool // the link was paid for
}

// ParseRel reads the value of a rel attribute: words without regard to case,
// separated by white space, or by commas as Google also reads them.
func ParseRel(value string) (r Rel) {
	for word := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || isSpace(c) }) {
		r.NoFollow = r.NoFollow || ascii.FoldEqual(word, "nofollow")
		r.UGC = r.UGC || ascii.FoldEqual(word, "ugc")
		r.Sponsored = r.Sponsored || ascii.FoldEqual(word, "sponsored")
	}
	return r
}
