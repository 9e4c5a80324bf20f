package policy

import (
	"math/bits"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// escaping names a normal form for percent-encoding. Patterns and targets are brought to it before they are compared
// byte by byte (RFC 9309 §2.2.2).
type escaping uint8

const (
	// escapeRFC: an escape of an unreserved octet is decoded, any other gets upper-case digits. What may not
	// stand in a URI is escaped, and so is a "%" that begins no escape. A "*" or "$" that means itself is
	// escaped: all of them in a target, in a pattern a "$" that is not last. Those left are special (§2.2.3).
	//
	// A reserved byte (RFC 3986 §2.2) equals its escape (figure 4, second row), except where it separates: "/"
	// in the path and the "?" that begins the query. In a target such escapes are decoded. A pattern keeps them,
	// because its octets are counted as written, until compared decodes them.
	escapeRFC escaping = iota

	// escapeGoogle escapes the bytes of a pattern from 0x80 up, and puts the hex digits of its escapes in upper case.
	// Targets stay as they are.
	escapeGoogle

	// escapeDecode: every escape but %2F is decoded (1996 draft). Octets that could not stand in a file are escaped
	// instead, whether they were or not, so that the result can be written as one. No two strings that differ become equal
	// by that.
	escapeDecode
)

// A kindSet is a set of kinds of bytes. There are 64 kinds, the rarest in targets first: it rules out the most.
type kindSet uint64

// key returns the number of the first kind of the set.
func (k kindSet) key() key { return key(bits.TrailingZeros64(uint64(k))) }

// rarest returns the key of the rarest kind that is not special, or of "/" if there is none.
func (k kindSet) rarest() key { return (k&^specialKinds | kinds['/']).key() }

const (
	specialKinds = kindSet(2)       // "*" and "$"
	changedKinds = specialKinds | 1 // these, "%", and all other bytes that a normal form may change
)

// kinds maps each byte to its kind. It is never written to.
var kinds = func() (t [256]kindSet) {
	for c := range t {
		t[c] = changedKinds &^ specialKinds
	}
	t['*'], t['$'] = specialKinds, specialKinds
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
		if kinds[c]&changedKinds == 0 {
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
			keep = c < 0x80 && (ascii.IsUnreserved(c) || target && equalsEscape(c, query))
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

// appendCompared appends a piece of a pattern, which is in normal form, as it is compared with targets: an escape of a
// reserved byte that equals it is decoded, or replaced by a star if plain. query reports whether the piece begins in
// the query. After a "?" it always is there, and after a star it may be.
func appendCompared[S string | []byte](dst []byte, piece S, query, plain bool) []byte {
	for i := 0; i < len(piece); i++ {
		c := piece[i]
		switch c {
		case '?', '*':
			query = true
		case '%':
			if d, _ := ascii.Unescape(piece[i+1:]); equalsEscape(d, query) {
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

// equalsEscape reports whether c is reserved (RFC 3986 §2.2) and means the same as its escape, in the query or in the
// path. "*" and "$" are special in a pattern unless they are escaped (§2.2.3), and "#" ends a target and a line: they
// are compared escaped.
func equalsEscape(c byte, query bool) bool {
	switch c {
	case ':', '[', ']', '@', '!', '&', '\'', '(', ')', '+', ',', ';', '=':
		return true
	case '/', '?':
		return query
	}
	return false
}

// A key is the number of a kind of bytes that a target must have for a rule to match: as its second byte (the first is
// always "/") or, from keyAnywhere on, in any place.
type key uint8

const keyAnywhere key = 64
