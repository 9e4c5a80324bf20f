package lint

import (
	"iter"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// A Line is one line of a robots.txt file as a dialect reads it. It is meant for tools that
// show a file to people; permission is asked of a [policy.Policy].
type Line struct {
	Number int // counted from 1
	Kind   LineKind
	Text   string // without its end, but with all else

	// Field and Value stand before and after the colon, without white space around them
	// and without comment. Both are empty if the line has no field.
	Field, Value string

	Comment  bool // has a "#"
	Misspelt bool // Field is a misspelling that the dialect accepts (Google)
	NoColon  bool // white space stands for the colon (Google)
	Cut      bool // longer than the dialect reads; Value lacks the rest (Google)
}

// A LineKind tells what a line is to the dialect.
type LineKind uint8

// The kinds of lines.
const (
	LineBlank     LineKind = iota + 1 // only white space
	LineComment                       // only a comment
	LineUserAgent                     // begins or widens a group
	LineAllow                         // a rule
	LineDisallow                      // a rule
	LineSitemap                       // a record that names a sitemap
	LineRecord                        // any other field
	LineInvalid                       // no field, or nothing before the colon: skipped
)

// String returns the kind in a word.
func (k LineKind) String() string {
	names := [...]string{"", "blank", "comment", "user-agent", "allow", "disallow", "sitemap", "record", "invalid"}
	return names[min(int(k), len(names)-1)]
}

// Lines yields the lines of a file, up to 500 KiB, as the dialect's parser reads them. If
// the file ends with a line end, one more line follows, which is blank.
func Lines(d policy.Dialect, data []byte) iter.Seq[Line] {
	reading := scan.RFC9309 // all dialects but one divide lines alike
	if d == policy.Google {
		reading = scan.Google
	}
	return func(yield func(Line) bool) {
		s := scan.New(reading, data)
		for text := string(s.Data); s.Next(); { // one copy for all lines
			if !yield(Line{
				Number: s.Number, Kind: LineKind(s.Kind), Text: text[s.Start:s.End],
				Field: text[s.FieldAt:s.FieldEnd], Value: text[s.ValueAt:s.ValueEnd],
				Comment: s.Comment, Misspelt: s.Misspelt, NoColon: s.NoColon, Cut: s.Cut,
			}) {
				return
			}
		}
	}
}
