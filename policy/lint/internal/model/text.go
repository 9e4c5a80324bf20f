package model

import (
	"fmt"
	"io"
	"slices"
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
		if s, ok := a.(string); ok {
			args[i] = text(s)
		}
	}
	return fmt.Sprintf(format, args...)
}

type text string

func (t text) Format(w fmt.State, verb rune) {
	s := string(t)
	if verb == 's' {
		s = Quote(s)
	}
	io.WriteString(w, s)
}

// Quote returns text of the file cut, escaped and in quotation marks.
func Quote(s string) string {
	if len(s) <= maxQuote {
		return strconv.Quote(s)
	}
	cut := maxQuote
	for !utf8.RuneStart(s[cut]) && cut > maxQuote-utf8.UTFMax {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

// Count returns "1 rule" or "3 rules".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// CutWord returns the first word and what follows it.
func CutWord(s string) (word, rest string) {
	s = strings.Trim(s, Blanks)
	if i := strings.IndexAny(s, Blanks); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// Invisible reports whether r breaks a value and does not show: controls, no-break space, zero-width characters and
// marks of direction, mostly pasted from web pages. A tab is a blank.
func Invisible(r rune) bool {
	return r != '\t' && (r < ' ' || r >= 0x7F && r <= 0xA0 || r == 0xAD || r >= 0x200B && r <= 0x200F ||
		r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0xFEFF)
}

// Visible returns s without what is invisible.
func Visible(s string) string { return exchange(s, -1) }

// Printable returns s with a mark for what is invisible or moves the cursor, so that text of the file cannot steer a
// terminal.
func Printable(s string) string { return exchange(s, utf8.RuneError) }

func exchange(s string, invisible rune) string {
	return strings.Map(func(r rune) rune {
		if Invisible(r) {
			return invisible
		}
		return r
	}, s)
}

// AbsoluteURL tells a URL with scheme and host. It is more lenient than net/url: whether the rest is well-formed is for
// the fetcher.
func AbsoluteURL(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), Letters+"+-.0123456789") == "" &&
		rest != "" && strings.IndexByte("/?#", rest[0]) < 0
}

// CutScheme removes http:// or https:// in any case.
func CutScheme(s string) (rest string, ok bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		return rest, true
	}
	return s, false
}

// Undisguised returns a text as its author sees it: without characters that do not show, and with ASCII for those that
// look like it. odd is the first character that was exchanged, at byte at; zero if there is none.
func Undisguised(text string) (plain string, odd rune, at int) {
	var b strings.Builder
	for i, r := range text {
		seen := looksLike(r)
		if seen != r && odd == 0 {
			odd, at = r, i
		}
		if seen >= 0 {
			b.WriteRune(seen)
		}
	}
	return b.String(), odd, at
}

// foreign are letters of other alphabets, and ascii those that they look like.
const (
	foreign = "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0501\u04cf\u0458\u04bb\u0261\u0131\u03bf\u03b1" +
		"\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0391\u0395\u0399\u039f"
	ascii = "aeopcyxisdljhgioaABEKMHOPCTXSIAEIO"
)

// looksLike returns what r looks like, or -1 for a character that does not show, or is a quotation mark around.
func looksLike(r rune) rune {
	if i := slices.Index([]rune(foreign), r); i >= 0 {
		return rune(ascii[i])
	}
	switch {
	case r == 0x3000, r == 0xA0, r == 0x202F, r == 0x205F, r == 0x1680, r >= 0x2000 && r <= 0x200A:
		return ' '
	case Invisible(r), r == 0x180E, r >= 0x2028 && r <= 0x2064, r >= 0xFE00 && r <= 0xFE0F,
		r == '"', r == '\'', r == '`', r >= 0x2018 && r <= 0x201F, r == 0xAB, r == 0xBB:
		return -1
	case r >= 0x2010 && r <= 0x2015, r == 0x2212, r == 0xFE58, r == 0xFE63:
		return '-'
	case r == 0x02D0, r == 0x2236, r == 0xA789, r == 0xFE55:
		return ':'
	case r >= 0xFF01 && r <= 0xFF5E: // full width
		return r - 0xFEE0
	}
	return r
}

// Name says which character r is, for a person who cannot see it.
func Name(r rune) string {
	name := map[rune]string{
		0xFEFF: "byte order mark", 0x200B: "zero-width space", 0xA0: "no-break space", 0xAD: "soft hyphen",
		0x2010: "hyphen", 0x2011: "no-break hyphen", 0x2013: "en dash", 0x2014: "em dash", 0x2212: "minus sign",
		0x2060: "word joiner", 0x3000: "ideographic space", 0x200E: "left-to-right mark", 0x200F: "right-to-left mark",
		'"': "quotation mark", '\'': "apostrophe", '`': "backquote",
	}[r]
	if name == "" {
		return fmt.Sprintf("the character U+%04X", r)
	}
	return fmt.Sprintf("a %s (U+%04X)", name, r)
}
