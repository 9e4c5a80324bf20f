package answer

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy"
)

// Visible makes text from the network safe to print: control characters, bytes that
// are not UTF-8, and the invisible characters that reorder text become escapes. So no
// file can steer the terminal or forge a line of output.
func Visible(s string) string {
	if !strings.ContainsFunc(s, Hidden) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch quoted := strconv.QuoteRune(r); {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case Hidden(r):
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Hidden reports whether Visible escapes r. A space is not hidden; a tab is.
func Hidden(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// Quoted is text from a user for a message: short, safe to print, and without the password of a URL.
func Quoted(text string) string { return fmt.Sprintf("%q", Brief(Redacted(text))) }

// Brief is the beginning of a long text, cut between characters. It is not safe to print: Quoted is.
func Brief(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Plural is a number with its word, in the plural unless it is 1.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// OrNull is nil, which JSON writes as null, for the zero value.
func OrNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// ReasonName is how JSON names a reason, or that there is none; scripts may rely on it.
func ReasonName(r policy.Reason) string { return reasonNames[r] }

// reasonNames are by number. They are made once: MarshalText allocates, and each verdict has one.
var reasonNames = func() (names []string) {
	for r := policy.Reason(0); ; r++ {
		text, err := r.MarshalText()
		if err != nil {
			return names
		}
		names = append(names, cmp.Or(string(text), ReasonMalformed))
	}
}()
