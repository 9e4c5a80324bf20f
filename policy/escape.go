package policy

import (
	"math/bits"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// escaping names a normal form for percent-encoding. Patterns and targets are
// brought to it before they are compared byte by byte (RFC 9309 §2.2.2).
type escaping uint8

const (
	// escapeRFC: an escape of an unreserved octet is decoded, any other gets upper-case digits. What may not
	// stand in a URI is escaped, and so is a "%" that begins no escape. A "*" or "$" that means itself is
	// escaped: all of them in a target, in a pattern a "$" that is not last. Those left are special (§2.2.3).
	//
	// A reserved byte (RFC 3986 §2.2) and its escape are one (figure 4, second row), but for those that
	// separate: "/" in the path and the "?" that begins the query. A target gets them decoded. A pattern keeps
	// them, because its octets are counted as written; compared decodes them for the comparison.
	escapeRFC escaping = iota

	// escapeGoogle: in a pattern octets from 0x80 are escaped and the hex digits
	// of escapes are raised. Targets are taken as they are.
	escapeGoogle

	// escapeDecode: every escape but %2F is decoded (1996 draft). So that the form
	// can stand in a file again, octets that could not are all escaped instead,
	// which makes no two strings equal that were not.
	escapeDecode
)

// A kindSet is a set of kinds of bytes. There are 64 kinds. One that fewer targets have comes
// first: it tells more.
type kindSet uint64

// key returns the number of the first kind of the set.
func (k kindSet) key() key { return key(bits.TrailingZeros64(uint64(k))) }

// rarest returns the key of the rarest kind in a piece of a pattern, or else of "/". A star must not pass for it.
func (k kindSet) rarest() key { return (k&^isSpecial | kinds['/']).key() }

const (
	isSpecial = kindSet(2)    // the kind of "*" and "$"
	isChanged = isSpecial | 1 // and of "%" and all other bytes that a normal form may change
)

// kinds has the kind of each byte. It is never written to.
var kinds = func() (t [256]kindSet) {
	for c := range t {
		t[c] = isChanged &^ isSpecial
	}
	t['*'], t['$'] = isSpecial, isSpecial
	for c := byte('A'); c <= 'Z'; c++ {
		t[c] = 4 << (c % 7)
	}
	for i, c := range []byte("?=&~!'()+,;:@[]_zqxj0123456789kvwyfbgu-hpmdclrnosiate./") {
		t[c] = 1 << (9 + i)
	}
	return t
}()

func kindsOf[S string | []byte](s S) (set kindSet) {
	for len(s) >= 4 {
		set |= kinds[s[0]] | kinds[s[1]] | kinds[s[2]] | kinds[s[3]]
		s = s[4:]
	}
	for i := range len(s) {
		set |= kinds[s[i]]
	}
	return set
}

// target returns the normal form of a target.
func (e escaping) target(target string) string {
	if e == escapeGoogle {
		return target
	}
	return string(appendNormal(e, nil, target, true))
}

// appendNormal appends the normal form of s, which is a target or else the value of a rule.
func appendNormal[S string | []byte](e escaping, dst []byte, s S, target bool) []byte {
	query := false
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if kinds[c]&isChanged == 0 {
			query = query || c == '?'
			dst = append(dst, c)
			continue
		}
		if c == '%' {
			if d, ok := ascii.Unescape(s[i+1:]); ok {
				c, escaped, i = d, true, i+2
			}
		}
		keep := false
		switch {
		case e == escapeGoogle:
			keep = !escaped && c < 0x80
		case e == escapeDecode:
			keep = c > ' ' && c < 0x7F && c != '%' && c != '#' && !(escaped && c == '/')
		case escaped:
			keep = c < 0x80 && (ascii.IsUnreserved(c) || target && isOne(c, query))
		case c == '*' || c == '$': // special in a pattern, "$" at its end
			keep = !target && (c == '*' || i == len(s)-1)
		}
		if keep {
			dst = append(dst, c)
		} else {
			dst = ascii.AppendEscape(dst, c)
		}
	}
	return dst
}

// appendCompared appends a piece of a pattern, which is in normal form, as it is compared
// with targets: reserved bytes are decoded that are one with their escape. If plain, there is a
// star for each such byte. Query tells whether the piece begins in the query; behind a "?" it is
// there in any case, and behind a star it may be.
func appendCompared[S string | []byte](dst []byte, piece S, query, plain bool) []byte {
	for i := 0; i < len(piece); i++ {
		c := piece[i]
		switch c {
		case '?', '*':
			query = true
		case '%':
			if d, _ := ascii.Unescape(piece[i+1:]); isOne(d, query) {
				c, i = d, i+2
				if plain {
					c = '*'
				}
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// compared returns a piece of a pattern as it is compared, see appendCompared.
func compared(piece string, query bool) string {
	return string(appendCompared(nil, piece, query, false))
}

// isOne reports whether c is reserved (RFC 3986 §2.2) and one with its escape, in the
// query or before it. "*" and "$" are special in a pattern unless they are escaped
// (§2.2.3), and "#" ends a target and a line: they are compared escaped.
func isOne(c byte, query bool) bool {
	switch c {
	case ':', '[', ']', '@', '!', '&', '\'', '(', ')', '+', ',', ';', '=':
		return true
	case '/', '?':
		return query
	}
	return false
}

// A key is the number of a kind of bytes, one of which a target must have if the rule matches: as its second byte, or,
// from keyAnywhere, at any place. All targets begin with "/".
type key uint8

const keyAnywhere key = 64
