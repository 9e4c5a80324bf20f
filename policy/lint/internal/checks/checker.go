package checks

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
	"github.com/robotsgate/robotsgate/policy/lint/internal/promise"
	"github.com/robotsgate/robotsgate/policy/lint/internal/report"
)

// checker judges a file. Each family of rules has a file of its own here, and knows of the
// others only what this one says.
type checker struct {
	*model.File
	report.Report
	url   *url.URL // where the file is served; nil if not known
	judge *promise.Judge
	paths map[string]bool // of the rules, once asked for

	idle map[*model.Line]bool // rules with a star at the end that decides nothing, once asked for
}

// add reports a finding of the rule at byte at of l, or about the whole line if at is
// negative, unless a comment silences it there.
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
	text, changes := f.advice(l, replacement)
	f.Put(report.Finding{
		ID: id, Number: l.Number, Column: column, Message: fmt.Sprintf(format, args...), Replacement: text, Changes: changes,
	})
}

// superfluous is add for a line without which no verdict changes. If one does, the rule is
// wrong about it.
func (f *checker) superfluous(id string, l *model.Line, format string, args ...any) {
	kept := f.Unbounded || !f.Full(id) && f.judge.Keeps(promise.Edit{Line: l})
	if !kept && (f.Full(id) || f.judge.Unsure) {
		f.Doubt(id)
	}
	if kept || f.Full(id) {
		f.add(id, l, l.ValueAt, "", format, args...)
	}
}

// advice returns the replacement, and what it changes, if it may be offered: what changes what a
// crawler is told is left to the author, except where the line says nothing as it is.
func (f *checker) advice(l *model.Line, replacement string) (text, changes string) {
	text = replacement
	if l.CommentAt < len(l.Text) && text != "" && !strings.Contains(text, "#") { // the line keeps its comment
		text += " " + strings.TrimRight(l.Text[l.CommentAt:], chars.Blanks)
	}
	switch {
	case text == "" || len(text) > report.MaxReplacement || !utf8.ValidString(text),
		strings.HasPrefix(text, "\ufeff"): // a byte order mark, if the file begins so
		return "", ""
	case f.Unbounded: // judged together later
		return text, ""
	}
	switch e := f.judge.Effect(promise.Edit{Line: l, Text: text}); {
	case !e.Known:
		return "", "could not be judged, the file is too long"
	case e.Harmless():
		return text, e.Changes
	}
	return "", ""
}

// all reports a finding about the file as a whole.
func (f *checker) all(id, format string, args ...any) {
	if !f.Silent(id, 0) {
		f.Whole(id, format, args...)
	}
}
