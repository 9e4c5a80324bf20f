package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxQuote      = 80  // bytes of the file in a message
	maxSuggestion = 400 // bytes; instead of a longer replacement, the rule's advice is given
)

// report collects findings, at most MaxPerRule of each rule. The zero value is
// empty.
type report struct {
	findings []Finding
	counts   [len(rules)]int
	overflow [len(rules)]int // line of the first finding beyond MaxPerRule
}

// add reports a finding of the rule at byte at of l. It is about the whole line if at is
// negative, and about the whole file if l is nil. If suggestion is empty, the rule's advice
// is used. Arguments are formatted only if the finding is kept.
func (r *report) add(id string, l *line, at int, suggestion, format string, args ...any) {
	i, ok := ruleIndex(id)
	if !ok {
		return // a test proves that each reported id is in the registry
	}
	number, column := 0, 0
	if l != nil {
		number = l.number
	}
	r.counts[i]++
	if r.counts[i] > MaxPerRule {
		if r.overflow[i] == 0 {
			r.overflow[i] = number
		}
		return
	}
	// Editors and SARIF count characters. The count is made only for what is kept:
	// a line may be long.
	if l != nil && at >= 0 && at <= len(l.text) {
		column = utf8.RuneCountInString(l.text[:at]) + 1
	}
	suggestion = strings.ToValidUTF8(suggestion, "\uFFFD") // may lengthen it
	if suggestion == "" || len(suggestion) > maxSuggestion {
		suggestion = rules[i].Advice
	}
	r.findings = append(r.findings, rules[i].finding(number, column, fmt.Sprintf(format, args...), suggestion))
}

// finding returns a finding of the rule.
func (r Rule) finding(line, column int, message, suggestion string) Finding {
	return Finding{ID: r.ID, Name: r.Name, Severity: r.Severity, Line: line, Column: column,
		Message: message, Engines: r.Engines, Suggestion: suggestion}
}

// sorted returns the findings by line, column and rule. Those that count the rest of a rule
// come last.
func (r *report) sorted() []Finding {
	slices.SortStableFunc(r.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID))
	})
	for i, n := range r.counts {
		if n -= MaxPerRule; n > 0 {
			message := fmt.Sprintf("and %d more, the first of them here", n)
			last := rules[i].finding(r.overflow[i], 0, message, rules[i].Advice)
			last.More = n
			r.findings = append(r.findings, last)
		}
	}
	return r.findings
}

// quote is text from the file that prints cut, escaped and in quotation marks. As a type
// instead of a function it costs nothing for findings that are not kept.
type quote string

func (q quote) String() string {
	if len(q) <= maxQuote {
		return strconv.Quote(string(q))
	}
	cut := maxQuote
	for !utf8.RuneStart(q[cut]) && cut > maxQuote-utf8.UTFMax {
		cut--
	}
	return strconv.Quote(string(q[:cut])) + "…"
}

// count returns "1 rule" or "3 rules".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
