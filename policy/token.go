package policy

import (
	"bytes"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// ProductToken returns the product token (RFC 9309 §2.2.1) of a User-Agent header value. It returns "ExampleBot" for
// "ExampleBot/1.0 (+https://example.com/bot)", and also for the form that browsers use, "Mozilla/5.0 (compatible;
// ExampleBot/0.1; +https://example.com/bot)", with or without the word "compatible".
//
// The RFC permits letters, "-" and "_" only. ProductToken keeps digits too, because files name MJ12bot that way. The
// result is empty if the value names no product.
func ProductToken(userAgent string) string {
	first := leadingProduct(userAgent)
	if !ascii.FoldEqual(first, "mozilla") {
		return first
	}
	// Browsers, and crawlers that pose as one, begin with Mozilla. Crawlers name themselves later.
	const before = "compatible;"
	for i := range userAgent {
		if rest := userAgent[i:]; ascii.FoldPrefix(rest, before) {
			if t := leadingProduct(rest[len(before):]); t != "" {
				return t
			}
		}
	}
	// Without that word, a comment that begins with name and version and has an address names one.
	for part := range strings.SplitSeq(userAgent, "(") {
		comment, _, _ := strings.Cut(part, ")")
		name, _, _ := strings.Cut(comment, "/")
		if name != "" && leadingProduct(name) == name && strings.Contains(comment, "; +http") {
			return name
		}
	}
	return first
}

// leadingProduct returns the run of token characters that s begins with, white space aside.
func leadingProduct(s string) string {
	s = strings.TrimLeft(s, " \t")
	for i := range len(s) {
		if c := s[i]; !ascii.IsLetter(c) && !ascii.IsDigit(c) && c != '-' && c != '_' {
			return s[:i]
		}
	}
	return s
}

// wholeToken returns the product token of a user-agent line's value: "ExampleBot/1.0" and "ExampleBot (any)" name
// ExampleBot. It returns nil if the value is a bare token.
func wholeToken(value []byte) []byte {
	if i := bytes.IndexAny(value, "/ \t*;"); i >= 0 {
		return value[:i]
	}
	return nil
}

// leadingToken returns the letters, "-" and "_" that value begins with, which is the form of a product token in the
// grammar of §2.2.
func leadingToken(value []byte) []byte {
	for i, c := range value {
		if !ascii.IsLetter(c) && c != '-' && c != '_' {
			return value[:i]
		}
	}
	return value
}

// namesAll reports whether value is "*", alone or before white space.
func namesAll(value []byte) bool {
	if len(value) < 2 {
		return string(value) == "*"
	}
	next := value[1]
	return value[0] == '*' && (next == ' ' || '\t' <= next && next <= '\f')
}

// containsFold reports whether part occurs in s, without regard to case.
func containsFold(s, part string) bool {
	for ; len(s) >= len(part); s = s[1:] {
		if ascii.FoldPrefix(s, part) {
			return true
		}
	}
	return false
}
