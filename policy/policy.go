// Package policy decides what a robots.txt file permits. It implements the rules of the Robots Exclusion Protocol and
// how they match (RFC 9309 §2.2).
//
// A file consists of groups. A group names crawlers by their product tokens and lists rules that allow or disallow
// paths. The token "*" stands for all crawlers that no other group names. [Parse] reads a file into a [Policy].
// [Policy.Decide] answers for one crawler and one target; its [Decision] names the rule and line that decided. A
// crawler that asks more than once keeps its [Group]:
//
//	p := policy.Parse(body)
//	g := p.Group(policy.ProductToken("ExampleBot/1.0 (+https://example.com/bot)"))
//	if d := g.Decide("/search?q=go"); !d.Allowed {
//		log.Print(d) // disallowed by line 3: Disallow: /search (user-agent: *)
//	}
//
// A target is what a request line carries: path and query in their encoded form, as url.URL.RequestURI returns them. Do
// not pass the decoded url.URL.Path: it has lost the query and the difference between "/" and "%2F".
//
// Some crawlers read the same file differently; see [Dialect].
//
// The package knows nothing of HTTP or origins. A caller that received no file uses [Unavailable] or [Unreachable]
// instead (§2.3.1). [Policy.Records] yields every other line that has a field, such as Sitemap or Crawl-delay. None of
// them decides whether a target may be fetched. Package page reads what pages say about their use.
//
// All types are safe for concurrent use: nothing is written after Parse. No file makes Parse fail or panic. Time and
// memory grow in proportion to the size of the file.
package policy

import (
	"slices"
	"sort"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// A Policy is what one robots.txt file permits. It must not be copied. The zero Policy has no groups and allows
// everything. A nil *Policy stands for a file that was never read; it decides as Unreachable does.
type Policy struct {
	text    string   // names, patterns and records, end to end
	groups  []group  // in the order of the file
	rules   []rule   // of one group after the other, in the order in which they decide
	names   []name   // in the order of the file
	sorted  []uint32 // indexes of names, by name without regard to case, then by line
	star    span     // of sorted: the names "*"
	records []record // in the order of the file
	dialect Dialect
	reason  Reason // of a policy without a file
}

// span is a range, from inclusive to exclusive.
type span struct{ from, to uint32 }

func (s span) len() uint32 { return s.to - s.from }

// group is a group of the file, before groups with the same name are combined (§2.2.1).
type group struct {
	line  uint32 // of its first user-agent line
	rules span   // of Policy.rules
}

// name is a user-agent line, or the product token in it.
type name struct {
	text  span
	group uint32 // index in Policy.groups
}

// rule is an allow or disallow line. It has no pointers, because a cache holds millions of rules and the garbage
// collector would follow them all.
type rule struct {
	at      uint32 // where the compared form of its pattern begins in Policy.text
	n       uint32 // length of that form
	written uint32 // length of the pattern as written, which follows it; 0 unless ruleRewritten
	line    uint32
	free    uint16 // how many of the n bytes do not count for precedence
	must    key    // what a target must have to match
	flags   uint8
}

const (
	ruleAllow     = 1 << iota
	ruleWild      // "*" or a final "$" in the pattern is special
	ruleEscaped   // has escapes that equal what they stand for, see afterEscaped; ruleWild is set too
	ruleRewritten // the compared form differs from the pattern as written
	ruleDerived   // has no line of its own (Google's index.html)
)

// Policies that all origins share.
var (
	empty       = Policy{}
	unavailable = Policy{reason: ReasonUnavailable}
	unreachable = Policy{reason: ReasonUnreachable}
)

// Unavailable returns the policy of a site without robots.txt. It allows everything (RFC 9309 §2.3.1.3).
func Unavailable() *Policy { return &unavailable }

// Unreachable returns the policy of a site whose robots.txt could not be fetched because of an error of the server or
// the network. It disallows everything but /robots.txt itself (RFC 9309 §2.3.1.4).
func Unreachable() *Policy { return &unreachable }

// Reason returns ReasonUnavailable or ReasonUnreachable if there was no file to read (RFC 9309 §2.3.1), and 0 if there
// was. For a nil Policy it is ReasonUnreachable.
func (p *Policy) Reason() Reason {
	if p == nil {
		return ReasonUnreachable
	}
	return p.reason
}

// Size estimates the memory that p retains, in bytes, closely enough to bound a cache. Policies that all origins share,
// such as Unavailable, report 0.
func (p *Policy) Size() int {
	if p == nil || p == &empty || p == &unavailable || p == &unreachable {
		return 0
	}
	return policySize + len(p.text) + groupSize*cap(p.groups) + ruleSize*cap(p.rules) + nameSize*cap(p.names) +
		4*cap(p.sorted) + recordSize*cap(p.records)
}

// Sizes of the types on a 64-bit machine, checked by a test.
const (
	policySize = 152
	groupSize  = 12
	nameSize   = 12
	ruleSize   = 20
	recordSize = 28
)

// A Group is what one crawler must obey. It is a view into a Policy, cheap to copy and safe for concurrent use. The
// zero Group has no rules and allows everything.
type Group struct {
	p     *Policy
	names span // of p.sorted; empty if no group applies
}

// Decide reports whether the crawler with the product token may access the target, and why. It is
// Group(token).Decide(target).
func (p *Policy) Decide(token, target string) Decision { return p.Group(token).Decide(target) }

// Group returns the group that a crawler must obey (RFC 9309 §2.2.1). It is the first of these that the file has: a
// group for the product token, a group for one of the fallbacks in their order, the default group "*". If the file has
// none of them, the group has no rules. Tokens compare without regard to case. Groups with the same token are combined.
// The default group is never added to a named one.
//
// A token is bare: of a whole User-Agent, take ProductToken first. In the Google dialect a name in the file ends at its
// first byte that is not a letter, "-" or "_". In the Bing dialect, every token that begins with bingbot falls back to
// msnbot, and in the Yandex dialect, every one that begins with Yandex to Yandex.
func (p *Policy) Group(token string, fallbacks ...string) Group {
	if p == nil {
		return Group{p: &unreachable}
	}
	if len(p.sorted) == int(p.star.len()) { // no other name, as in most files
		return Group{p, p.star}
	}
	tokens := append([]string{token}, fallbacks...)
	for _, t := range tokens {
		if found := p.find(t); found.len() > 0 {
			return Group{p, found}
		}
	}
	// The caller chose its fallbacks; those of the dialect are only assumed.
	r := p.dialect.reading()
	if slices.ContainsFunc(tokens, func(t string) bool { return ascii.FoldPrefix(t, r.family) }) {
		if found := p.find(r.fallback); found.len() > 0 {
			return Group{p, found}
		}
	}
	return Group{p, p.star}
}

// find returns the names that stand for token.
func (p *Policy) find(token string) span {
	r := p.dialect.reading()
	found := p.named(token)
	// Every name contains the empty token, and "*" asks for the default group.
	inNames := r.substring && token != "" && token != "*" && len(token) <= maxToken
	if inNames && (r.firstRecord || found.len() == 0) {
		found = p.named(p.firstWith(token))
	}
	if r.firstRecord {
		found.to = min(found.to, found.from+1)
	}
	return found
}

// named returns the names that are equal to token, in the order of the file.
func (p *Policy) named(token string) span {
	compare := func(i int) int { return ascii.FoldCompare(token, p.nameAt(p.sorted[i])) }
	from, _ := sort.Find(len(p.sorted), compare)
	to := from
	for to < len(p.sorted) && compare(to) == 0 {
		to++
	}
	return span{uint32(from), uint32(to)}
}

// firstWith returns the first name in the file that contains token, or "". To Yandex, a name of several words is
// another crawler's.
func (p *Policy) firstWith(token string) string {
	for i := range p.names {
		name := p.nameAt(uint32(i))
		if containsFold(name, token) && !(p.dialect.reading().words && strings.ContainsAny(name, " \t")) {
			return name
		}
	}
	return ""
}

func (p *Policy) nameAt(i uint32) string {
	text := p.names[i].text
	return p.text[text.from:text.to]
}

// Token returns the product token of the group as the file writes it. It is "*" for the default group and "" if no
// group applies.
func (g Group) Token() string {
	if g.names.len() == 0 {
		return ""
	}
	return g.p.nameAt(g.p.sorted[g.names.from])
}

// parts returns the groups of the file that g combines.
func (g Group) parts() []group {
	if g.p == nil {
		return nil
	}
	parts := make([]group, 0, g.names.len())
	for _, i := range g.p.sorted[g.names.from:g.names.to] {
		parts = append(parts, g.p.groups[g.p.names[i].group])
	}
	return parts
}

// originForm returns a target in origin form (RFC 9112 §3.2.1): with a leading slash, without scheme and authority.
func originForm(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	if scheme, rest, ok := strings.Cut(target, "://"); ok && scheme != "" && !strings.ContainsAny(scheme, "/?") {
		target = "/"
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			target = rest[i:]
		}
	}
	if !strings.HasPrefix(target, "/") {
		return "/" + target
	}
	return target
}
