package checks

import (
	"fmt"
	"net/url"
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
	idler *same.Judge     // of lines without effect: their order does not matter
	paths map[string]bool // of the rules, once asked for

	rendered *policy.Policy // the file as Google reads it, once asked for

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
	text, example := f.advice(l, replacement)
	f.Put(report.Finding{
		ID: id, Number: l.Number, Column: column, Message: fmt.Sprintf(format, args...), Replacement: text, Example: example,
	})
}

// superfluous is add for a line without which no verdict changes. If one does, the rule is
// wrong about it.
func (f *checker) superfluous(id string, l *model.Line, format string, args ...any) {
	kept := f.Unbounded || !f.Full(id) && f.idler.Keeps(same.Edit{Line: l})
	if !kept && (f.Full(id) || f.idler.Unsure) {
		f.Doubt(id)
	}
	if kept || f.Full(id) {
		f.add(id, l, l.ValueAt, "", format, args...)
	}
}

// advice returns the replacement if it may be offered: if it changes nothing in any dialect. Of what does, the author
// gets an example.
func (f *checker) advice(l *model.Line, replacement string) (text, example string) {
	text = replacement
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
