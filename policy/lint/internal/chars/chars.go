// Package chars takes text of a robots.txt file apart and quotes it in messages.
package chars

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const Letters = "abcdefghijklmnopqrstuvwxyz"

const Blanks = " \t\v\f"

const maxQuote = 80 // bytes of the file in a message

// Sprintf is fmt.Sprintf, but for strings: %s quotes them, as text of a file, and %v does not.
func Sprintf(format string, args ...any) string {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = Quote(text)
		}
	}
	return fmt.Sprintf(format, args...)
}

// Quote is text from the file that prints cut, escaped and in quotation marks.
type Quote string

// Format writes the text as it is, or with %s as String does.
func (q Quote) Format(w fmt.State, verb rune) {
	text := string(q)
	if verb == 's' {
		text = q.String()
	}
	io.WriteString(w, text)
}

func (q Quote) String() string {
	if len(q) <= maxQuote {
		return strconv.Quote(string(q))
	}
	cut := maxQuote
	for !utf8.RuneStart(q[cut]) && cut > maxQuote-utf8.UTFMax {
		cut--
	}
	return strconv.Quote(string(q[:cut])) + "…"
}

// Count returns "1 rule" or "3 rules".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// CutWord returns the first word and what follows it; ok is false if nothing does.
func CutWord(s string) (word, rest string, ok bool) {
	s = strings.Trim(s, Blanks)
	i := strings.IndexAny(s, Blanks)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// Invisible reports whether r breaks a value and does not show: controls, no-break
// space, zero-width characters and marks of direction, mostly pasted from web pages. A tab
// is a blank.
func Invisible(r rune) bool {
	switch {
	case r == '\t', r == utf8.RuneError:
		return false
	case r < ' ', r >= 0x7F && r <= 0xA0, r == 0xAD,
		r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0xFEFF:
		return true
	}
	return false
}

// Visible is for strings.Map, which drops what is negative.
func Visible(r rune) rune {
	if Invisible(r) {
		return -1
	}
	return r
}

// Printable is for strings.Map: it replaces characters that are invisible or move the
// cursor, so that text of the file cannot steer a terminal.
func Printable(r rune) rune {
	if Invisible(r) {
		return utf8.RuneError
	}
	return r
}

// AbsoluteURL tells a URL with scheme and host. It is more lenient than net/url:
// whether the rest is well-formed is for the fetcher.
func AbsoluteURL(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), Letters+"+-.0123456789") == "" &&
		rest != "" && strings.IndexByte("/?#", rest[0]) < 0
}

// IsURL tells a lone http URL.
func IsURL(s string) bool {
	rest, ok := CutScheme(s)
	return ok && rest != "" && !strings.ContainsAny(rest, Blanks)
}

// CutScheme removes http:// or https:// in any case.
func CutScheme(s string) (rest string, ok bool) {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return s[len(scheme):], true
		}
	}
	return s, false
}
