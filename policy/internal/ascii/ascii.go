// Package ascii reads names as robots.txt files and pages have them: names are ASCII, and the folding
// of Unicode would make "K" of the Kelvin sign.
package ascii

// IsLetter reports whether c is one of the 52 letters.
func IsLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsUnreserved reports whether c is unreserved (RFC 3986 §2.3).
func IsUnreserved(c byte) bool {
	return IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

// Unescape returns the byte of an escape, of which s begins with what follows the "%". It
// reports false if that is not two hexadecimal digits.
func Unescape[S string | []byte](s S) (c byte, ok bool) {
	if len(s) < 2 || !isHex(s[0]) || !isHex(s[1]) {
		return 0, false
	}
	return unhex(s[0])<<4 | unhex(s[1]), true
}

// AppendEscape appends the escape of c (RFC 3986 §2.1).
func AppendEscape(dst []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}

func isHex(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// Lower returns c in lower case.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// AppendLower appends s in lower case.
func AppendLower(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, Lower(s[i]))
	}
	return dst
}

// FoldCompare orders a and b without regard to case.
func FoldCompare[A, B string | []byte](a A, b B) int {
	for i := range min(len(a), len(b)) {
		if d := int(Lower(a[i])) - int(Lower(b[i])); d != 0 {
			return d
		}
	}
	return len(a) - len(b)
}

// FoldEqual compares a and b without regard to case.
func FoldEqual[A, B string | []byte](a A, b B) bool { return len(a) == len(b) && FoldPrefix(a, b) }

// FoldPrefix reports whether s begins with prefix, without regard to case.
func FoldPrefix[A, B string | []byte](s A, prefix B) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if s[i] != prefix[i] && Lower(s[i]) != Lower(prefix[i]) {
			return false
		}
	}
	return true
}
