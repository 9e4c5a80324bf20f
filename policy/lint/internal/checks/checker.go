package checks

import (
	"net/url"

	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
	"github.com/robotsgate/robotsgate/policy/lint/internal/report"
)

// checker judges a file. Each family of rules has a file of its own here, and knows of the
// others only what this one says.
type checker struct {
	*model.File
	report.Report
	url *url.URL // where the file is served; nil if not known
}

// add reports a finding of the rule at byte at of l, or about the whole line if at is
// negative, unless a comment silences it there.
func (f *checker) add(id string, l *model.Line, at int, replacement, format string, args ...any) {
	if !f.Silent(id, l.Number) {
		f.Put(id, l.Number, l.Text, at, replacement, format, args...)
	}
}

// once is add for a rule of which each file gets a single remark.
func (f *checker) once(id string, l *model.Line, at int, replacement, format string, args ...any) {
	if !f.Silent(id, l.Number) {
		f.Remark(id, l.Number, l.Text, at, replacement, format, args...)
	}
}

// all reports a finding about the file as a whole.
func (f *checker) all(id, format string, args ...any) {
	if !f.Silent(id, 0) {
		f.Whole(id, format, args...)
	}
}
