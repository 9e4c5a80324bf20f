package chars

import (
	"fmt"
	"strings"
)

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
	foreign = "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0501\u04cf\u0458\u04bb\u0261\u0131\u03bf\u03b1\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0391\u0395\u0399\u039f\u0405"
	ascii   = "aeopcyxisdljhgioaABEKMHOPCTXSIAEIOS"
)

// looksLike returns what r looks like, or -1 for a character that does not show, or is a quotation mark around.
func looksLike(r rune) rune {
	switch {
	case r < 0x80 && r != '"' && r != '\'' && r != '`':
		return r
	case r == 0x3000, r == 0xA0, r == 0x202F, r == 0x205F, r == 0x1680, r >= 0x2000 && r <= 0x200A:
		return ' '
	case Invisible(r), r == 0x180E, r >= 0x2028 && r <= 0x2064, r >= 0xFE00 && r <= 0xFE0F:
		return -1
	case r == '"', r == '\'', r == '`', r >= 0x2018 && r <= 0x201F, r == 0xAB, r == 0xBB:
		return -1
	case r >= 0x2010 && r <= 0x2015, r == 0x2212, r == 0xFE58, r == 0xFE63:
		return '-'
	case r == 0x02D0, r == 0x2236, r == 0xA789, r == 0xFE55:
		return ':'
	case r >= 0xFF01 && r <= 0xFF5E: // full width
		return r - 0xFEE0
	}
	n := 0
	for _, f := range foreign {
		if f == r {
			return rune(ascii[n])
		}
		n++
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
