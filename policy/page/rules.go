package page

import (
	"fmt"
	"iter"
	"slices"
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
		return fmt.Sprintf("X-Robots-Tag line %d: %q", s.Line, s.Text)
	case s.Offset < 0:
		return fmt.Sprintf("meta: %q", s.Text)
	}
	return fmt.Sprintf("meta at byte %d: %q", s.Offset, s.Text)
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
	if why := s.elsewhere(e, tokens); why != "" {
		return why
	}
	switch r := &rules[s.rule]; {
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

// elsewhere returns why a statement is for other crawlers, or "".
func (s *Statement) elsewhere(e *engine, tokens []string) string {
	if s.Scope == "" {
		isOther := func(token string) bool { return !ascii.FoldPrefix(token, e.byName) }
		if e.byName != "" && len(tokens) > 0 && !slices.ContainsFunc(tokens, isOther) {
			return e.name + "'s AdsBot heeds only what names it"
		}
		return ""
	}
	if s.Line > 0 && e.scopes != nil && !holds(e.scopes, s.Scope) {
		return e.name + "'s header parser does not know this crawler"
	}
	if !holds(tokens, s.Scope) {
		return "it is for another crawler"
	}
	return ""
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

// stricter reports whether a restricts more than b: it is smaller, or earlier.
// The number -1 leaves the choice to the engine, and so is the largest.
func stricter(v value, a, b int64) bool {
	if (v == snippet || v == video) && (a < 0 || b < 0) {
		return b < 0 && a >= 0
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
