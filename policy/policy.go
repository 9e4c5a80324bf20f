// Package policy decides what a robots.txt file permits. It implements the rules of the
// Robots Exclusion Protocol and how they match (RFC 9309 §2.2).
//
// A file consists of groups. A group names crawlers by their product tokens and lists rules
// that allow or disallow paths. The token "*" stands for all crawlers that no other group
// names. [Parse] reads a file into a [Policy]. [Policy.Decide] answers for one crawler and
// one target; its [Decision] names the rule and line that decided. A crawler that asks more
// than once keeps its [Group]:
//
//	p := policy.Parse(body)
//	g := p.Group(policy.ProductToken("ExampleBot/1.0 (+https://example.com/bot)"))
//	if d := g.Decide("/search?q=go"); !d.Allowed {
//		log.Print(d) // disallowed by line 3: Disallow: /search (user-agent: *)
//	}
//
// A target is what a request line carries: path and query in their encoded form, as
// url.URL.RequestURI returns them. Do not pass the decoded url.URL.Path: it has lost the
// query and the difference between "/" and "%2F".
//
// Some crawlers read the same file differently; see [Dialect].
//
// The package knows nothing of HTTP, time or origins. A caller that received no file uses
// [Unavailable] or [Unreachable] instead (§2.3.1). [Policy.Records] yields every other line
// that has a field, such as Sitemap or Crawl-delay. None of them decides whether a target
// may be fetched. Package page reads what pages say about their use.
//
// All types are safe for concurrent use. A Policy never changes its answers. It may write an index to
// answer faster; Size counts that from the start. No file makes Parse fail or panic. Time and memory
// grow in proportion to the size of the file.
package policy

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// Parse reads a robots.txt file as RFC 9309 specifies: it is RFC9309.Parse(data).
func Parse(data []byte) *Policy { return RFC9309.Parse(data) }

// Parse reads a robots.txt file as the dialect does. It cannot fail: lines that make no
// sense are skipped (RFC 9309 §2.3.1.5). It reads at most 500 KiB (§2.5) and drops the line
// that this limit cuts. The Policy does not retain data.
//
// Two kinds of files are judged whole. In the Yandex dialect, a file above 500 KiB permits
// everything, as Unavailable does. A file whose rules take more than 1 MiB
// percent-encoded, or more than 1,180 KiB with their index, disallows everything, as
// Unreachable does: no server sends one in good faith.
func (d Dialect) Parse(data []byte) *Policy {
	r := d.reading()
	if r.oversizeOK && len(data) > scan.Limit {
		return Unavailable()
	}
	c := compilers.Get().(*compiler)
	c.dialect, c.reading = d, r
	c.read(data)
	p := c.compile()
	c.release()
	return p
}

// Decide reports whether the crawler with the product token may access the target, and why.
// It is Group(token).Decide(target).
func (p *Policy) Decide(token, target string) Decision {
	return p.Group(token).Decide(target)
}

// Group returns the group that a crawler must obey (RFC 9309 §2.2.1). It is the first of
// these that the file has: a group for the product token, a group for one of the fallbacks
// in their order, the default group "*". If the file has none of them, the group has no
// rules. Tokens compare without regard to case. Groups with the same token are combined.
// The default group is never added to a named one.
//
// The Google dialect compares letters, "-" and "_" only. In the Bing dialect, bingbot falls
// back to msnbot. In the Yandex dialect, every token that begins with Yandex falls back to
// Yandex.
func (p *Policy) Group(token string, fallbacks ...string) Group {
	switch {
	case p == nil:
		return Group{p: &unreachable}
	case p.names == 0:
		return Group{p: p}
	case p.names == 1 && p.star == 1: // as in most files
		return Group{p, p.star}
	case p.names <= fewNames || len(fallbacks) > 0:
		return Group{p, p.search(token, fallbacks)}
	}
	f := p.memo.Load()
	if f != nil && f.token == token {
		return Group{p, f.name}
	}
	name := p.search(token, nil)
	if f == nil && token != "" && len(token) <= maxToken {
		// If another goroutine was first, its token stays: the slot never changes again.
		p.memo.CompareAndSwap(nil, &found{strings.Clone(token), name}) // token may be part of a header
	}
	return Group{p, name}
}

const (
	fewNames = 8  // searching so few is as fast as remembering
	maxToken = 32 // longest token remembered, in bytes: callers may pass untrusted input
)

// search returns the name of the group that a crawler must obey, counted from 1, or 0.
func (p *Policy) search(token string, fallbacks []string) uint32 {
	name := p.find(token)
	for i := 0; name == 0 && i < len(fallbacks); i++ {
		name = p.find(fallbacks[i])
	}
	// The caller's fallbacks come first: it has chosen them, and the dialect only assumes.
	if r := p.dialect.reading(); name == 0 && r.family != "" {
		isMember := func(t string) bool { return ascii.FoldPrefix(t, r.family) }
		if isMember(token) || slices.ContainsFunc(fallbacks, isMember) {
			name = p.find(r.fallback)
		}
	}
	if name == 0 {
		name = p.star
	}
	return name
}

// Reason returns ReasonUnavailable or ReasonUnreachable if there was no file to read (RFC
// 9309 §2.3.1), otherwise 0.
func (p *Policy) Reason() Reason {
	if p == nil {
		return 0
	}
	return p.reason
}

// Size estimates the memory that p retains, in bytes, closely enough to bound a cache.
// Shared policies report 0.
func (p *Policy) Size() int {
	if p == nil || p == &empty || p == &unavailable || p == &unreachable {
		return 0
	}
	const page = 8 << 10                             // the unit in which the allocator hands out what is large,
	const unit = 16                                  // and what is small
	words := (4*cap(p.tab) + unit - 1) &^ (unit - 1) // in which text lies as well
	if words > 4*page {
		words = (words + page - 1) &^ (page - 1)
	}
	size := (int(unsafe.Sizeof(*p))+unit-1)&^(unit-1) + words
	if p.names > fewNames {
		size += int(unsafe.Sizeof(found{})) + 16 // the memo, which fills with the first question
	}
	return size
}

// A Group is what one crawler must obey. It is a view into a Policy, cheap to copy and safe
// for concurrent use. The zero Group has no rules and allows everything.
type Group struct {
	p    *Policy
	name uint32 // counted from 1; 0: no group applies
}

// Token returns the product token of the group as the file writes it. It is "*" for the
// default group and "" if no group applies.
func (g Group) Token() string {
	if g.p == nil || g.name == 0 {
		return ""
	}
	return g.p.nameAt(g.name - 1)
}

// Decide reports whether the target may be accessed, and by which rule.
//
// The target is path and query as they are sent (RFC 9112 §3.2), without fragment. An empty
// target means "/". A missing slash in front is added. Scheme and authority of an absolute
// URL are ignored.
//
// A byte and its escape are the same (§2.2.2), except where the byte separates: "/" in the
// path is not %2F, and the "?" that begins the query is not %3F. A rule such as "/*%2Fa"
// matches a "%2F" in the path and in the query. The Google dialect compares as written. The
// Original dialect distinguishes %2F from "/" everywhere.
//
// Dot segments and double slashes are compared as written: "//private" and "/a/../private" are
// not "/private", though servers may serve one for the other.
//
// The rule with the most octets decides, then allow before disallow, then the rule further
// up (§2.2.2). In the Original dialect the first rule that matches decides, and one with an
// empty pattern allows what none above it matches. The target "/robots.txt" is always allowed,
// also with letters percent-encoded if the dialect decodes them. With a query it is another
// resource, and rules apply.
//
// For a target that begins with a slash and has at most 8 KiB, Decide takes memory from pools only: for
// the normal form, to write the index of a large group, and for a table of a long target that many
// wildcards search. Its time grows with the length of the target, hardly
// with the number of rules: the first questions about a large group try its rules one by one, and
// the twentieth writes the index, in a quarter of a microsecond for each rule. Bound the length of
// a target that is untrusted, as package client does.
func (g Group) Decide(target string) (d Decision) {
	at, reason := g.lookup(target)
	d.Reason, d.Allowed = reason, reason != ReasonUnreachable
	if at.block == 0 {
		return d
	}
	d.Group = g.p.nameAt(g.name - 1)
	if at.rule == none {
		return d
	}
	h := block{g.p, at.block}.at(at.rule)
	d.Rule = h.asRule()
	if h.octets() > 0 { // a rule with an empty pattern matches nothing
		d.Reason, d.Allowed = ReasonRule, d.Rule.Allow
	}
	return d
}

// place is where the rule that decides stands: its block in the policy, 0 if no group
// applies, and its index there, or none. It is passed around because a Decision is too
// large to copy often.
type place struct{ block, rule uint32 }

// lookup brings the target to its normal form and finds the rule that decides.
func (g Group) lookup(target string) (place, Reason) {
	if target == "" || target[0] != '/' {
		target = originForm(target)
	}
	if g.name == 0 {
		if r := g.p.Reason(); r == ReasonUnavailable || r == ReasonUnreachable && !isRobots(target) {
			return place{}, r
		}
		return place{}, ReasonNoRule
	}
	seen, word := target, g.p.blockWord(g.name)
	if b := (block{g.p, word.pos()}); !word.isList() { // nearly always
		if b.misses(target) {
			return place{b.pos, none}, ReasonNoRule
		}
		seen = b.size().seen(target)
	}
	all := kindsOf(seen)
	if all&isChanged != 0 {
		if escape := g.p.dialect.reading().escape; escape != escapeGoogle {
			return g.lookupChanged(escape, target), ReasonNoRule
		}
	}
	return g.lookupNormal(target, all), ReasonNoRule
}

// isRobots reports whether the RFC 9309 dialect takes a target for robots.
func isRobots(target string) bool {
	var buf [9 * len(robots)]byte
	return len(target) <= 3*len(robots) && view(escapeRFC.appendTarget(buf[:0], target)) == robots
}

// lookupChanged is for targets that are not in normal form.
func (g Group) lookupChanged(e escaping, target string) place {
	buf := buffers.Get().(*[3 * 8 << 10]byte)
	defer buffers.Put(buf)
	target = view(e.appendTarget(buf[:0], target))
	return g.lookupNormal(target, kindsOf(target))
}

// originForm adds a missing slash in front of a target (RFC 9112 §3.2.1).
func originForm(target string) string {
	if scheme := strings.Index(target, "://"); scheme > 0 && strings.IndexAny(target, "/?") > scheme {
		target = target[scheme+len("://"):]
		path := strings.IndexAny(target, "/?")
		if path < 0 {
			return "/"
		}
		target = target[path:]
	}
	if target == "" || target[0] != '/' {
		return "/" + target
	}
	return target
}

// lookupNormal takes a target in normal form, as far as it matters, and the kinds of its bytes.
func (g Group) lookupNormal(target string, all kindSet) place {
	if target == robots {
		return place{}
	}
	var e effort
	q := newQuestion(target, all, &e)
	var at place
	if word := g.p.blockWord(g.name); word.isList() {
		at = g.findInAny(&q)
	} else {
		at = place{word.pos(), block{g.p, word.pos()}.find(&q)}
	}
	e.done()
	return at
}

// findInAny returns the rule that decides in combined groups (§2.2.1) whose rules are too many
// to be copied: see compiler.combine.
func (g Group) findInAny(q *question) place {
	var best hit
	list := g.p.tab[g.p.blockWord(g.name).pos():]
	for _, pos := range list[1 : 1+list[0]] {
		b := block{g.p, pos}
		if i := b.find(q); i != none && b.at(i).precedes(best) {
			best = b.at(i)
		}
	}
	if !best.found() {
		return place{list[1], none} // the first block of the list
	}
	return place{best.pos, best.rule}
}
