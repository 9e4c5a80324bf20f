package policy

import (
	"index/suffixarray"
	"strings"
)

// robots is the target that is always allowed (RFC 9309 §2.2.2).
const robots = "/robots.txt"

// Decide reports whether the target may be accessed, and by which rule.
//
// The target is path and query as they are sent (RFC 9112 §3.2), without fragment. An empty target means "/". A missing
// slash in front is added. Scheme and authority of an absolute URL are ignored.
//
// A byte and its escape are the same (§2.2.2), except where the byte separates: "/" in the path is not %2F, and the "?"
// that begins the query is not %3F. A rule such as "/*%2Fa" matches a "%2F" in the path and in the query. What has to
// be escaped counts as the three bytes of its escape, also to a star: "/*9" matches "/%97". The Google dialect compares
// as written. The Original dialect distinguishes %2F from "/" everywhere.
//
// Dot segments and double slashes are compared as written: "//private" and "/a/../private" are not "/private", though
// servers may serve one for the other.
//
// Of the rules that match, the one with the most bytes decides, then allow before disallow, then the rule further up
// (§2.2.2). The Yandex dialect counts literal bytes only. In the Original dialect the first rule that matches decides,
// and one with an empty pattern allows what no rule above it matches. The target "/robots.txt" is always allowed, also
// with letters percent-encoded if the dialect decodes them. With a query it is another resource, and rules apply.
//
// The time of Decide grows with the length of the target and the number of rules. Bound the length of a target that is
// untrusted, as package client does.
func (g Group) Decide(target string) Decision {
	target = originForm(target)
	switch {
	case g.p == nil:
		return Decision{Allowed: true, Reason: ReasonNoRule}
	case g.names.len() == 0:
		return g.p.decideWithoutRules(target)
	}
	var q question
	q.read(g.p.dialect.reading().escape, target)
	if q.target == robots {
		return Decision{Allowed: true, Reason: ReasonNoRule}
	}
	d := Decision{Allowed: true, Reason: ReasonNoRule, GroupToken: g.Token()}
	if r := g.find(&q); r != nil {
		d.Rule = g.p.asRule(r)
		if r.n > 0 { // a rule with an empty pattern matches nothing
			d.Allowed, d.Reason = r.flags&ruleAllow != 0, ReasonRule
		}
	}
	return d
}

// decideWithoutRules decides where no group applies.
func (p *Policy) decideWithoutRules(target string) Decision {
	switch reason := p.Reason(); reason {
	case ReasonUnavailable:
		return Decision{Allowed: true, Reason: reason}
	case ReasonUnreachable:
		if len(target) > 3*len(robots) || escapeRFC.target(target) != robots {
			return Decision{Reason: reason}
		}
	}
	return Decision{Allowed: true, Reason: ReasonNoRule}
}

// find returns the rule that decides, or nil. The rules of each group are sorted by precedence, so the first that
// matches decides for its group. An empty pattern, which is a prefix of every target, comes last.
func (g Group) find(q *question) *rule {
	var best *rule
	d := g.p.dialect.reading()
	for _, i := range g.p.sorted[g.names.from:g.names.to] {
		part := g.p.groups[g.p.names[i].group].rules
		rules := g.p.rules[part.from:part.to]
		for i := range rules {
			r := &rules[i]
			if !q.has(r.must) || !q.matches(g.p.text[r.at:r.at+r.n], r.flags) {
				continue
			}
			if best == nil || d.precedence(r) > d.precedence(best) {
				best = r
			}
			break
		}
	}
	return best
}

// asRule returns r as the file writes it.
func (p *Policy) asRule(r *rule) Rule {
	pattern, allow := p.text[r.at:r.at+r.n], r.flags&ruleAllow != 0
	if r.flags&ruleRewritten != 0 {
		pattern = p.text[r.at+r.n : r.at+r.n+r.written]
		allow = allow && pattern != "" // to Yandex, an empty Disallow is "Allow: /"
	}
	return Rule{Allow: allow, Pattern: pattern, Line: int(r.line)}
}

// A question is a target in normal form, with what speeds up matching it.
type question struct {
	target   string
	kinds    [2]kindSet         // of its second byte, and of all its bytes
	searched int                // bytes searched so far for pieces of patterns
	suffixes *suffixarray.Index // nil until searched exceeds muchSearched
}

// read sets the target.
func (q *question) read(e escaping, target string) {
	all := kindsOf(target)
	if all&changedKinds != 0 {
		target = e.target(target)
		all = kindsOf(target)
	}
	q.target, q.kinds[1] = target, all
	if len(target) > 1 {
		q.kinds[0] = kinds[target[1]]
	}
}

// has reports whether the target has a byte of the kind k, where k asks for it.
func (q *question) has(k key) bool { return q.kinds[k/keyAnywhere]>>(k%keyAnywhere)&1 != 0 }

func (q *question) matches(pattern string, flags uint8) bool {
	if flags&ruleWild == 0 { // as most rules are
		return strings.HasPrefix(q.target, pattern)
	}
	return q.matchWild(pattern, flags&ruleEscaped != 0)
}

// matchWild reports whether a pattern with "*", a final "$" or escapes to decode matches (§2.2.3). It searches for
// the pieces between the stars one after the other, each as far left as possible. Since "*" is the only operator,
// backtracking gains nothing.
func (q *question) matchWild(pattern string, escaped bool) bool {
	piece, pattern, more := strings.Cut(pattern, "*")
	if escaped {
		piece = compared(piece, false)
	}
	if whole, ok := strings.CutSuffix(piece, "$"); ok && !more {
		return q.target == whole
	}
	if !strings.HasPrefix(q.target, piece) {
		return false
	}
	for at := len(piece); more; {
		piece, pattern, more = strings.Cut(strings.TrimLeft(pattern, "*"), "*") // "**" is "*"
		if escaped {
			at = q.afterEscaped(piece, at, !more)
		} else {
			at = q.after(piece, at, !more)
		}
		if at < 0 {
			return false
		}
	}
	return true
}

// after returns the end of the first match of a piece in the target that begins at or after at, or -1. The last piece
// may end in "$".
func (q *question) after(piece string, at int, last bool) int {
	if end, ok := strings.CutSuffix(piece, "$"); ok && last {
		if strings.HasSuffix(q.target[at:], end) {
			return len(q.target)
		}
		return -1
	}
	if i := q.index(piece, at); i >= 0 {
		return i + len(piece)
	}
	return -1
}

// afterEscaped is after for a pattern with escapes that equal what they stand for (§2.2.2, figure 4). They are decoded
// in the target, and by compared in a piece; more of them in the query than in the path. After a star, a piece may be
// in either: "/*%2Fa" matches the path /x%2Fa, and also /x?u=/a, since "/" equals its escape in a query. The path is
// searched first.
func (q *question) afterEscaped(piece string, at int, last bool) int {
	query := strings.IndexByte(q.target, '?') + 1
	if query == 0 || at < query {
		if end := q.after(compared(piece, false), at, last); end >= 0 || query == 0 {
			return end
		}
	}
	return q.after(compared(piece, true), max(at, query), last)
}

const (
	muchSearched = 1 << 20 // bytes, beyond which it pays to sort the suffixes of a target
	fewPlaces    = 1 << 6  // occurrences of a piece: with more of them, the next is near or the rule fails
)

// index returns where a piece first occurs in the target at or after at, or -1. A hostile file has tens of thousands
// of patterns that begin with a star. Searching a long target for each would take half a second.
func (q *question) index(piece string, at int) int {
	if q.searched > muchSearched && piece != "" {
		if q.suffixes == nil {
			q.suffixes = suffixarray.New([]byte(q.target))
		}
		if places := q.suffixes.Lookup([]byte(piece), fewPlaces); len(places) < fewPlaces {
			return first(places, at)
		}
	}
	i := strings.Index(q.target[at:], piece)
	if i < 0 {
		q.searched += len(q.target) - at
		return -1
	}
	q.searched += i
	return at + i
}

// first returns the smallest of the places that is at least at, or -1.
func first(places []int, at int) int {
	best := -1
	for _, i := range places {
		if i >= at && (best < 0 || i < best) {
			best = i
		}
	}
	return best
}
