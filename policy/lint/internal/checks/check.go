// Package checks has the rules of package lint about the text of a file, by family. A rule is
// known here by its identifier alone; the registry of package lint says the rest.
package checks

import (
	"net/url"
	"slices"

	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
	"github.com/robotsgate/robotsgate/policy/lint/internal/report"
	"github.com/robotsgate/robotsgate/policy/lint/internal/same"
)

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
		f.lineChecks()
		f.agentChecks()
		f.conflictChecks()
		f.effectChecks()
		f.preferenceChecks()
	}
	return f.Sorted()
}

// lineChecks runs what needs no more than one line, in the order of the file. What
// is reported once for each spelling is remembered over the lines.
func (f *checker) lineChecks() {
	unknown := map[string]bool{}
	for _, l := range f.Lines {
		f.encoding(l)
		f.spelling(l, unknown)
		f.shouting(l)
		if l.Rule() {
			f.path(l)
		}
	}
}
