// Package policy reads a robots.txt file (RFC 9309 §2.2) and says what it permits.
package policy

import (
	"iter"
	"strings"
	"time"
)

// Dialect says how a family of crawlers reads robots.txt.
type Dialect uint8

// The dialects.
const (
	RFC9309 Dialect = iota
	Google
	Yandex
	Bing
	Original
)

// Reason says what a Decision rests on.
type Reason uint8

// The reasons.
const (
	ReasonNoRule Reason = iota + 1
	ReasonRule
	ReasonUnavailable
	ReasonUnreachable
)

// Rule is an allow or disallow line.
type Rule struct {
	Allow   bool
	Pattern string
	Line    int
}

// Decision is the answer to one question; the zero value does not allow.
type Decision struct {
	Allowed bool
	Reason  Reason
	Rule    Rule
	Token   string // product token of the group that decided, as the file writes it; "" if no group applied
}

// Record is any line that is neither a user-agent line nor a rule.
type Record struct {
	Field, Value string
	Line         int
}

// Policy is what one robots.txt file permits.
type Policy struct {
	reason Reason
	rules  []Rule
}

// Group is a view of the rules for one crawler.
type Group struct{ p *Policy }

func Parse(data []byte) *Policy { return RFC9309.Parse(data) }

// Parse is a place-holder: one group, prefix rules only.
func (Dialect) Parse(data []byte) *Policy {
	p := &Policy{}
	for i, l := range strings.Split(string(data), "\n") {
		k, v, _ := strings.Cut(l, ":")
		k, v = strings.ToLower(strings.TrimSpace(k)), strings.TrimSpace(v)
		if (k == "allow" || k == "disallow") && v != "" {
			p.rules = append(p.rules, Rule{k == "allow", v, i + 1})
		}
	}
	return p
}

func Unavailable() *Policy { return &Policy{reason: ReasonUnavailable} }
func Unreachable() *Policy { return &Policy{reason: ReasonUnreachable} }

func (p *Policy) Decide(token, target string) Decision          { return p.Group(token).Decide(target) }
func (p *Policy) Group(token string, fallbacks ...string) Group { return Group{p} }
func (p *Policy) Sitemaps() iter.Seq[string]                    { return func(func(string) bool) {} }
func (p *Policy) Records(field string) iter.Seq[Record]         { return func(func(Record) bool) {} }
func (p *Policy) String() string                                { return "" }
func (p *Policy) Size() int                                     { return 512 }
func (g Group) Token() string                                   { return "*" }
func (g Group) Clone() Group                                    { return g }
func (g Group) Rules() iter.Seq[Rule]                           { return func(func(Rule) bool) {} }
func (g Group) Records(field string) iter.Seq[Record]           { return func(func(Record) bool) {} }
func (g Group) CrawlDelay() (time.Duration, bool)               { return 0, false }
func ProductToken(userAgent string) string                      { t, _, _ := strings.Cut(userAgent, "/"); return t }
func (d Dialect) String() string                                { return "RFC9309" }

func (g Group) Decide(target string) Decision {
	if g.p == nil {
		return Decision{Allowed: true, Reason: ReasonNoRule}
	}
	if target == "/robots.txt" {
		return Decision{Allowed: true, Reason: ReasonNoRule}
	}
	if g.p.reason != 0 {
		return Decision{Allowed: g.p.reason == ReasonUnavailable, Reason: g.p.reason}
	}
	best := Decision{Allowed: true, Reason: ReasonNoRule}
	for _, r := range g.p.rules {
		if strings.HasPrefix(target, r.Pattern) && len(r.Pattern) > len(best.Rule.Pattern) {
			best = Decision{r.Allow, ReasonRule, r, "*"}
		}
	}
	return best
}
