package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// A Rule is one allow or disallow line (RFC 9309 §2.2.2).
type Rule struct {
	Allow   bool
	Pattern string // as the file writes it
	Line    int    // in the file, counted from 1
}

// String returns the rule as a line of robots.txt, and nothing for the zero Rule.
func (r Rule) String() string {
	if r == (Rule{}) {
		return ""
	}
	field := "Disallow:"
	if r.Allow {
		field = "Allow:"
	}
	if r.Pattern == "" {
		return field
	}
	return field + " " + r.Pattern
}

// A Decision tells whether a target may be accessed, and why. The zero value does not allow and gives no reason.
type Decision struct {
	Allowed bool
	Reason  Reason

	// Rule is the rule that decided. If none did (ReasonNoRule), it is the group's rule with an empty pattern, if there is
	// one, else the zero Rule. A rule with an empty pattern matches nothing; it states that everything is allowed. In the
	// Original dialect it ends the search, and in the Yandex dialect an empty Disallow matches like "Allow: /".
	Rule Rule

	// GroupToken is the name of the group that decided, as the file writes it: "*" for the default group. It is empty if
	// no group applies, and for /robots.txt.
	GroupToken string
}

// String explains the decision in one line, for people. What is long or does not print is cut or escaped:
//
//	disallowed by line 3: Disallow: /private (user-agent: *)
func (d Decision) String() string {
	verdict := "disallowed"
	if d.Allowed {
		verdict = "allowed"
	}
	switch {
	case d.Rule.Line > 0: // an empty pattern matches nothing, but it is why everything is allowed
		d.Rule.Pattern = cut(d.Rule.Pattern)
		verdict += fmt.Sprintf(" by line %d: %v", d.Rule.Line, d.Rule)
	case d.Reason != 0:
		verdict += ": " + d.Reason.String()
	}
	if d.GroupToken != "" {
		verdict += " (user-agent: " + cut(d.GroupToken) + ")"
	}
	return printable(verdict)
}

// cut bounds what a file has in any length.
func cut(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// printable percent-encodes what is not safe in a terminal or log: control characters, marks that change the direction
// of the text, invalid UTF-8.
func printable(s string) string {
	var b []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b = append(b, s[:n]...)
		} else {
			for i := range n {
				b = ascii.AppendEscape(b, s[i])
			}
		}
		s = s[n:]
	}
	return string(b)
}

// A Reason is what a Decision rests on: ReasonNoRule, ReasonRule, ReasonUnavailable, ReasonUnreachable or ReasonUse. It
// distinguishes "the site said no" from "the site could not be asked".
type Reason uint8

const (
	// ReasonNoRule: no rule matched, or no group applies (§2.2.2: allowed). /robots.txt itself is always allowed for this
	// reason.
	ReasonNoRule Reason = iota + 1

	// ReasonRule: the rule in the Decision matched.
	ReasonRule

	// ReasonUnavailable: the site has no robots.txt (§2.3.1.3: allowed).
	ReasonUnavailable

	// ReasonUnreachable: robots.txt could not be fetched (§2.3.1.4: disallowed).
	ReasonUnreachable

	// ReasonUse: a statement in robots.txt disallows a use that was asked about. The rules allow the target, but Allowed
	// is false. No Policy decides so; package client does.
	ReasonUse
)

// String describes the reason in a few words.
func (r Reason) String() string {
	if r == 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
	return [...]string{
		ReasonNoRule: "no rule matches", ReasonRule: "a rule matches", ReasonUnavailable: "robots.txt is unavailable",
		ReasonUnreachable: "robots.txt is unreachable", ReasonUse: "a use is disallowed",
	}[r]
}

// reasonNames are the texts of the reasons. Programs may rely on them.
var reasonNames = [...]string{
	ReasonNoRule: "no-rule", ReasonRule: "rule", ReasonUnavailable: "unavailable", ReasonUnreachable: "unreachable",
	ReasonUse: "use",
}

// MarshalText returns "no-rule", "rule", "unavailable", "unreachable" or "use". For the zero Reason it returns an
// empty text.
func (r Reason) MarshalText() ([]byte, error) {
	if int(r) >= len(reasonNames) {
		return nil, fmt.Errorf("policy: no Reason has the number %d", uint8(r))
	}
	return []byte(reasonNames[r]), nil
}

// UnmarshalText reads what MarshalText writes. Any other text is an error.
func (r *Reason) UnmarshalText(text []byte) error {
	i := slices.Index(reasonNames[:], string(text)) // 0 for an empty text: the zero Reason
	if i < 0 {
		return fmt.Errorf("policy: %q is no Reason: write no-rule, rule, unavailable, unreachable or use",
			printable(string(text)))
	}
	*r = Reason(i)
	return nil
}
