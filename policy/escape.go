package policy

import (
	"bytes"
	"math/bits"
	"unsafe"
)

// escaping names a normal form for percent-encoding. Patterns and targets are
// brought to it before they are compared byte by byte (RFC 9309 §2.2.2).
type escaping uint8

const (
	// escapeRFC: an escape of an unreserved octet is decoded, any other gets
	// upper-case hex digits; octets that may not stand in a URI are escaped, and
	// so is a "%" that begins no escape. In a target "*" and "$" are escaped, in a
	// pattern a "$" that is not last: what is left of them in a pattern is special
	// (§2.2.3).
	//
	// A reserved byte (RFC 3986 §2.2) and its escape are one (figure 4, second
	// row), but for those that separate: "/" in the path and the "?" that begins the
	// query. A target gets them decoded. A pattern keeps them as written, which is
	// what its octets are counted by: see matchTwofold.
	escapeRFC escaping = iota

	// escapeGoogle: in a pattern octets from 0x80 are escaped and the hex digits
	// of escapes are raised. Targets are taken as they are.
	escapeGoogle

	// escapeDecode: every escape but %2F is decoded (1996 draft). So that the form
	// can stand in a file again, octets that could not are all escaped instead,
	// which makes no two strings equal that were not.
	escapeDecode
)

// Classes of bytes, by which a string is recognized as being in normal form.
const (
	isStar     = 1 << iota // "*"
	isDollar               // "$"
	isPercent              // "%"
	isHigh                 // 0x80 and above
	isBarred               // below 0x80 and not allowed in a path or query (RFC 3986 §3.3, §3.4)
	isQuestion             // "?"
)

// classes is never written to.
var classes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c == '*':
			t[c] = isStar
		case c == '$':
			t[c] = isDollar
		case c == '%':
			t[c] = isPercent
		case c == '?':
			t[c] = isQuestion
		case c >= 0x80:
			t[c] = isHigh
		case c <= ' ', c == 0x7F, c == '"', c == '#', c == '<', c == '>',
			c == '\\', c == '^', c == '`', c == '{', c == '|', c == '}':
			t[c] = isBarred
		}
	}
	return t
}()

// A kindSet is a set of kinds of bytes. There are 64 kinds. One that fewer targets have comes
// first: it tells more.
type kindSet uint64

// key returns the number of the first kind of the set.
func (k kindSet) key() key { return key(bits.TrailingZeros64(uint64(k))) }

// isChanged is the kind of all bytes that a normal form may change, and of "%", "*" and "$".
const isChanged = kindSet(1)

// kinds has the kind of each byte. It is never written to.
var kinds = func() (t [256]kindSet) {
	for c := range t {
		t[c] = isChanged
	}
	for c := byte('A'); c <= 'Z'; c++ {
		t[c] = 2 << (c % 8)
	}
	for i, c := range []byte("?=&~!'()+,;:@[]_zqxj0123456789kvwyfbgu-hpmdclrnosiate./") {
		t[c] = 1 << (9 + i)
	}
	return t
}()

// kindsOf returns the kinds of the bytes of s.
func kindsOf(s string) (set kindSet) {
	for len(s) >= 8 {
		set |= kinds[s[0]] | kinds[s[1]] | kinds[s[2]] | kinds[s[3]] | kinds[s[4]] | kinds[s[5]] | kinds[s[6]] | kinds[s[7]]
		s = s[8:]
	}
	for i := range len(s) {
		set |= kinds[s[i]]
	}
	return set
}

// classesOf returns the union of the classes of all bytes of s.
func classesOf[S string | []byte](s S) (set uint8) {
	for len(s) >= 8 {
		set |= classes[s[0]] | classes[s[1]] | classes[s[2]] | classes[s[3]] |
			classes[s[4]] | classes[s[5]] | classes[s[6]] | classes[s[7]]
		s = s[8:]
	}
	for i := range len(s) {
		set |= classes[s[i]]
	}
	return set
}

// changes reports whether a value with bytes of the given classes may differ
// from its normal form as a pattern.
func (e escaping) changes(set uint8, value []byte) bool {
	switch e {
	case escapeGoogle:
		return set&(isPercent|isHigh) != 0
	case escapeDecode:
		return set&^(isStar|isDollar|isQuestion) != 0
	}
	return set&^(isStar|isDollar|isQuestion) != 0 || set&isDollar != 0 && bytes.IndexByte(value, '$') < len(value)-1
}

// appendPattern appends the normal form of a rule's value.
func (e escaping) appendPattern(dst, value []byte) []byte {
	switch e {
	case escapeGoogle:
		return appendGoogle(dst, value)
	case escapeDecode:
		return appendDecoded(dst, value)
	}
	return appendRFC(dst, view(value), false)
}

// appendTarget appends the normal form of a target.
func (e escaping) appendTarget(dst []byte, target string) []byte {
	switch e {
	case escapeGoogle:
		return append(dst, target...)
	case escapeDecode:
		return appendDecoded(dst, target)
	}
	return appendRFC(dst, target, true)
}

// appendRFC appends s, a pattern or a target, in the form escapeRFC. A target gets reserved
// bytes decoded that are one with their escape. In a pattern "*" and a final "$" are special.
func appendRFC(dst []byte, s string, target bool) []byte {
	query := false
	for i := 0; i < len(s); i++ {
		for ; i < len(s) && classes[s[i]] == 0; i++ {
			dst = append(dst, s[i])
		}
		if i == len(s) {
			break
		}
		c := s[i]
		switch classes[c] {
		case isQuestion:
			query = true
			dst = append(dst, c)
			continue
		case isStar, isDollar:
			if !target && (c == '*' || i == len(s)-1) {
				dst = append(dst, c)
				continue
			}
		case isPercent:
			if i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
				c = unhex(s[i+1])<<4 | unhex(s[i+2])
				i += 2
				if c < 0x80 && (isUnreserved(c) || target && isOne(c, query)) {
					dst = append(dst, c)
					continue
				}
			}
		}
		dst = appendEscape(dst, c)
	}
	return dst
}

// appendCompared appends a piece of a pattern, which is in normal form, as it is compared
// with targets: reserved bytes are decoded that are one with their escape. Query tells
// whether the piece begins in the query; behind a "?" it is there in any case.
func appendCompared(dst []byte, piece string, query bool) []byte {
	for i := 0; i < len(piece); i++ {
		c := piece[i]
		switch c {
		case '?':
			query = true
		case '%':
			if d := unhex(piece[i+1])<<4 | unhex(piece[i+2]); isOne(d, query) {
				c, i = d, i+2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// appendPlain appends a pattern in normal form with a star for each escape that is, or
// may be, one with the byte it stands for.
func appendPlain(dst, pattern []byte) []byte {
	query := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch c {
		case '?', '*': // behind a star may be the query
			query = true
		case '%':
			if isOne(unhex(pattern[i+1])<<4|unhex(pattern[i+2]), query) {
				c, i = '*', i+2
			}
		}
		dst = append(dst, c)
	}
	return dst
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

func appendGoogle(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x80:
			dst = appendEscape(dst, c)
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			dst = appendEscape(dst, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendDecoded appends s in the form escapeDecode.
func appendDecoded[S string | []byte](dst []byte, s S) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		keep := c == '/'
		if c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		}
		if keep || c > ' ' && c < 0x7F && c != '/' && c != '%' && c != '#' {
			dst = append(dst, c)
		} else {
			dst = appendEscape(dst, c)
		}
	}
	return dst
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	return append(dst, '%', hex[c>>4], hex[c&15])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// isUnreserved reports whether c is unreserved (RFC 3986 §2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// view returns b as a string without copying it. The string must be gone before
// b changes; here it ends with the decision that needs it.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}
