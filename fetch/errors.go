package fetch

import (
	"fmt"
	"strings"
	"unicode"
)

// cut bounds what an error quotes of its input.
func cut(s string) string { return cutTo(s, 256) }

func cutTo(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// printable escapes what a log or terminal could take for a command, and bounds the text.
func printable(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == unicode.ReplacementChar:
			b.WriteByte('?')
		case unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, "\\u%04x", c)
		}
	}
	return cutTo(b.String(), 1000) // and the ellipsis
}
