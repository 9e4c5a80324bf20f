// Package checks has the rules of package lint about the text of a file, by family. A rule is
// known here by its identifier alone; the registry of package lint says the rest.
package checks

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
	"github.com/robotsgate/robotsgate/policy/lint/internal/report"
	"github.com/robotsgate/robotsgate/policy/lint/internal/same"
)

// checker judges a file. Each family of rules has a file of its own here, and knows of the
// others only what this one says.
type checker struct {
	*model.File
	report.Report
	url   *url.URL // where the file is served; nil if not known
	judge *same.Judge
	idler *same.Judge // of lines without effect: their order does not matter

	// What follows is worked out once it is asked for.
	paths    map[string]bool      // of the rules
	rendered *policy.Policy       // the file as Google reads it
	idle     map[*model.Line]bool // rules with a star at the end that decides nothing
}

// Check returns what is wrong with the text of a file that is served at u, nil if that is not
// known.
func Check(doc *model.File, u *url.URL) []report.Finding {
	f := &checker{File: doc, url: u, judge: same.New(doc, same.Findings), idler: same.New(doc, same.Findings)}
	f.idler.Ordered = true
	return f.check()
}

// Candidates returns the findings that say what to write, all of them, with replacements that
// were not judged.
func Candidates(doc *model.File, u *url.URL) []report.Finding {
	f := &checker{File: doc, url: u}
	f.Unbounded = true
	return slices.DeleteFunc(f.check(), func(r report.Finding) bool { return r.Replacement == "" })
}

func (f *checker) check() []report.Finding {
	// The order of the families decides only which of two findings at one place comes first.
	if f.format() {
		unknown := map[string]bool{} // fields, of which each is reported once
		for _, l := range f.Lines {
			f.encoding(l)
			f.spelling(l, unknown)
			f.shouting(l)
			if l.Rule() {
				f.path(l)
			}
		}
		f.agentChecks()
		f.conflictChecks()
		f.effectChecks()
		f.preferenceChecks()
	}
	return f.Sorted()
}

// add reports a finding of the rule at byte at of l, or about the whole line if at is
// negative, unless a comment silences it there. Of the arguments, %s quotes a string, which is
// mostly text of the file, and %v does not.
func (f *checker) add(id string, l *model.Line, at int, replacement, format string, args ...any) {
	f.put(false, id, l, at, replacement, format, args...)
}

// once is add for a rule of which each file gets a single remark.
func (f *checker) once(id string, l *model.Line, at int, replacement, format string, args ...any) {
	f.put(true, id, l, at, replacement, format, args...)
}

func (f *checker) put(remark bool, id string, l *model.Line, at int, replacement, format string, args ...any) {
	if f.Silent(id, l.Number) || !f.Listed(id, l.Number, remark) {
		return // what is not listed costs little: a line may be long
	}
	column := 0
	if at >= 0 { // editors and SARIF count characters
		column = utf8.RuneCountInString(l.Text[:at]) + 1
	}
	text, example := f.advice(l, replacement)
	f.Put(report.Finding{
		ID: id, Number: l.Number, Column: column, Message: chars.Sprintf(format, args...), Replacement: text, Example: example,
	})
}

// superfluous is add for a line without which no verdict changes. If one does, the rule is
// wrong about it.
func (f *checker) superfluous(id string, l *model.Line, format string, args ...any) {
	full := f.Full(id)
	kept := f.Unbounded || !full && f.idler.Keeps(same.Edit{Line: l})
	if !kept && (full || f.idler.Unsure) {
		f.Doubt(id)
	}
	if kept || full {
		f.add(id, l, l.ValueAt, "", format, args...)
	}
}

// advice returns the replacement if it may be offered: if it changes nothing in any dialect. Of what does, the author
// gets an example.
func (f *checker) advice(l *model.Line, text string) (replacement, example string) {
	if l.CommentAt < len(l.Text) && text != "" && !strings.Contains(text, "#") { // the line keeps its comment
		text += " " + strings.TrimRight(l.Text[l.CommentAt:], chars.Blanks)
	}
	switch {
	case text == "" || len(text) > report.MaxReplacement || !utf8.ValidString(text),
		strings.HasPrefix(text, "\ufeff"): // a byte order mark, if the file begins so
		return "", ""
	case f.Unbounded, f.judge.Keeps(same.Edit{Line: l, Text: text}): // if unbounded, judged together later
		return text, ""
	}
	return "", text
}

// all reports a finding about the file as a whole.
func (f *checker) all(id, format string, args ...any) {
	if !f.Silent(id, 0) {
		f.Whole(id, format, args...)
	}
}
