package policy

import "strings"

// robots is the target that is always allowed (RFC 9309 §2.2.2).
const robots = "/robots.txt"

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
// The rule with the most bytes decides, then allow before disallow, then the rule further
// up (§2.2.2). In the Original dialect the first rule that matches decides, and one with an
// empty pattern allows what none above it matches. The target "/robots.txt" is always allowed,
// also with letters percent-encoded if the dialect decodes them. With a query it is another
// resource, and rules apply.
//
// The time of Decide grows with the length of the target and the number of rules. Bound the
// length of a target that is untrusted, as package client does.
func (g Group) Decide(target string) Decision {
	target = originForm(target)
	if g.names.len() == 0 {
		return g.p.decideWithoutRules(target)
	}
	q := newQuestion(g.p.dialect.reading().escape, target)
	if q.target == robots {
		return Decision{Allowed: true, Reason: ReasonNoRule}
	}
	d := Decision{Allowed: true, Reason: ReasonNoRule, GroupToken: g.Token()}
	if r := g.find(&q); r != nil {
		d.Rule = g.p.asRule(r)
		if r.n > 0 { // a rule with an empty pattern matches nothing, and says that everything is allowed
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

// find returns the rule that decides, or nil. Those of one group stand in the order in which they decide, so the
// first that matches does. A rule with an empty pattern matches what no other does.
func (g Group) find(q *question) *rule {
	var best *rule
	for _, i := range g.p.sorted[g.names.from:g.names.to] {
		part := g.p.groups[g.p.names[i].group].rules
		rules := g.p.rules[part.from:part.to]
		for i := range rules {
			r := &rules[i]
			if !q.has(r.must) {
				continue
			}
			pattern := g.p.text[r.at : r.at+r.n]
			if r.flags&ruleWild == 0 { // without a call, as most rules are
				if !strings.HasPrefix(q.target, pattern) {
					continue
				}
			} else if !q.matches(pattern, r.flags) {
				continue
			}
			if best == nil || g.p.precedes(r, best) {
				best = r
			}
			break
		}
	}
	return best
}

// precedes reports whether r decides if o matches too (§2.2.2). Both are of other groups.
func (p *Policy) precedes(r, o *rule) bool {
	if a, b := p.specificity(r), p.specificity(o); a != b {
		return a > b
	}
	if (r.flags^o.flags)&ruleAllow != 0 {
		return r.flags&ruleAllow != 0
	}
	return r.line < o.line
}

func (p *Policy) specificity(r *rule) int {
	return specificity(p.dialect.reading(), p.text[r.at:r.at+r.n])
}

// asRule returns the rule as the file has it.
func (p *Policy) asRule(r *rule) Rule {
	pattern, allow := p.text[r.at:r.at+r.n], r.flags&ruleAllow != 0
	if r.flags&ruleRewritten != 0 {
		pattern = p.text[r.at-r.written : r.at]
	}
	if pattern == "" { // that is an allow rule only where Allow is what the file says
		allow = allow && r.n == 0
	}
	return Rule{Allow: allow, Pattern: pattern, Line: int(r.line)}
}

// A question is a target in normal form, and the kinds of its bytes.
type question struct {
	target string
	second kindSet // the kind of its second byte
	all    kindSet // the kinds of all bytes

	searches int             // for pieces of patterns
	pieces   map[int]*pieces // by their length, once there were many searches
}

func newQuestion(e escaping, target string) question {
	q := question{target: target, all: kindsOf(target)}
	if q.all&isChanged != 0 && e != escapeGoogle {
		q.target = e.target(target)
		q.all = kindsOf(q.target)
	}
	if len(q.target) > 1 {
		q.second = kinds[q.target[1]]
	}
	return q
}

// has reports whether the target has what the key of a rule says.
func (q *question) has(k key) bool {
	if k&keyAnywhere != 0 {
		return q.all>>(k&63)&1 != 0
	}
	return q.second>>(k&63)&1 != 0
}

func (q *question) matches(pattern string, flags uint8) bool {
	switch {
	case flags&ruleWild == 0:
		return strings.HasPrefix(q.target, pattern)
	case flags&ruleTwofold != 0:
		return q.matchTwofold(pattern)
	}
	return q.matchWild(pattern)
}

// matchWild reports whether a pattern with "*" or a final "$" matches (§2.2.3). It searches
// the pieces between the stars one after the other, each as far left as it goes. Since "*" is
// the only operator, going back gains nothing: no piece is searched twice.
func (q *question) matchWild(pattern string) bool {
	target := q.target
	piece, pattern, more := strings.Cut(pattern, "*")
	if !more {
		return target == piece[:len(piece)-1] // behind it stands "$"
	}
	if !strings.HasPrefix(target, piece) {
		return false
	}
	for at := len(piece); more; {
		piece, pattern, more = cutStar(pattern)
		if at = q.after(piece, at, more); at < 0 {
			return false
		}
	}
	return true
}

// cutStar cuts a pattern behind a star at the next one. Some stars in a row are one.
func cutStar(pattern string) (piece, rest string, more bool) {
	return strings.Cut(strings.TrimLeft(pattern, "*"), "*")
}

// after returns the end of the first match of piece in the target that begins at or behind
// at, or -1. The last piece, if there are no more, may end in "$".
func (q *question) after(piece string, at int, more bool) int {
	target := q.target
	if n := len(piece) - 1; !more && n >= 0 && piece[n] == '$' {
		if strings.HasSuffix(target[at:], piece[:n]) {
			return len(target)
		}
		return -1
	}
	if !q.mayHave(piece) {
		return -1
	}
	i := strings.Index(target[at:], piece)
	if i < 0 {
		return -1
	}
	return at + i + len(piece)
}

// pieces is a set of pieces of a target, of one length, by their hashes.
type pieces [1 << 10]uint64

const (
	manySearches = 64  // after so many, it pays to know the pieces of a target
	longTarget   = 256 // bytes
	maxGram      = 8
)

// mayHave reports whether a piece may occur in the target. A hostile file has tens of thousands of patterns that begin
// with a star, and to search a long target for each would take half a second.
func (q *question) mayHave(piece string) bool {
	if q.searches++; q.searches < manySearches || len(q.target) < longTarget || len(piece) < 2 {
		return true
	}
	n := min(len(piece), maxGram)
	set := q.pieces[n]
	if set == nil {
		if q.pieces == nil {
			q.pieces = map[int]*pieces{}
		}
		set = new(pieces)
		for i := range len(q.target) - n + 1 {
			h := hash(q.target[i : i+n])
			set[h/64] |= 1 << (h % 64)
		}
		q.pieces[n] = set
	}
	for i := range len(piece) - n + 1 {
		if h := hash(piece[i : i+n]); set[h/64]>>(h%64)&1 == 0 {
			return false
		}
	}
	return true
}

// hash returns 16 bits of a short text.
func hash(s string) uint64 {
	h := uint64(0)
	for i := range len(s) {
		h = h<<8 | uint64(s[i])
	}
	return h * 0x9E3779B97F4A7C15 >> 48
}

// matchTwofold is matchWild for a pattern with escapes that are one with what they stand
// for (§2.2.2, figure 4), with or without special characters. In the target such bytes
// are decoded.
//
// The first "?" of a pattern begins the query, and what stands before the first star is in
// the path. A piece after a star and before a "?" may be in either: "/*%2Fa" matches the
// path /x%2Fa, and the query of /x?u=/a, where "/" and its escape are one. The path is
// searched first, then the query. ("/" and "?" themselves need no second search: the query
// holds no escapes of them.)
func (q *question) matchTwofold(pattern string) bool {
	target := q.target
	query := len(target) // where it begins
	if i := strings.IndexByte(target, '?'); i >= 0 {
		query = i + 1
	}
	longest := 1 + 3*len(target) // a piece that is longer matches nothing, even if it is all escapes
	piece, pattern, more := strings.Cut(pattern, "*")
	if len(piece) > longest {
		return false
	}
	stem := compared(piece, false)
	if whole, ok := strings.CutSuffix(stem, "$"); ok && !more {
		return target == whole
	}
	if !strings.HasPrefix(target, stem) {
		return false
	}
	for at := len(stem); more; {
		piece, pattern, more = cutStar(pattern)
		if len(piece) > longest {
			return false
		}
		inPath := compared(piece, false)
		end := q.after(inPath, at, more)
		if inQuery := compared(piece, true); end < 0 && len(inQuery) < len(inPath) {
			end = q.after(inQuery, max(at, query), more)
		}
		if at = end; end < 0 {
			return false
		}
	}
	return true
}
