package lint

import (
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/checks"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
	"github.com/robotsgate/robotsgate/policy/lint/internal/same"
)

// Fix returns the file with the replacements of its findings applied, and the findings that are
// gone because of that, with their lines in data. Nothing of what the file says to crawlers changes, in any dialect of
// package policy. If accept is not nil, Fix applies the replacements of those findings that it agrees to. Line ends,
// the byte order mark and all other bytes stay.
//
// Fix also mends what File does not list: findings beyond [MaxPerRule], and those that another
// finding says more about. No finding with an accepted Replacement is left, unless the work exceeds
// a fixed budget.
func Fix(data []byte, accept func(Finding) bool) (fixed []byte, applied []Finding) {
	return fix(data, nil, accept)
}

// Fix is [Fix] for the Body. The URL completes relative sitemaps.
func (a Answer) Fix(accept func(Finding) bool) (fixed []byte, applied []Finding) {
	return fix(a.Body, hosted(a.asked()), accept)
}

// maxRounds bounds how often the result is judged anew. A line has one replacement in a round.
const maxRounds = 16

func fix(data []byte, u *url.URL, accept func(Finding) bool) (fixed []byte, applied []Finding) {
	first := func(line int) int { return line } // line of the first text
	for range maxRounds {
		doc := model.Read(data)
		edits, found := mend(doc, findings(checks.Candidates(doc, u)), accept)
		if len(edits) == 0 {
			break
		}
		for _, f := range found {
			f.Line = first(f.Line)
			applied = append(applied, f)
		}
		first = origin(edits, first)
		data = []byte(same.Apply(doc, edits))
	}
	return data, applied
}

// mend chooses what to apply in one round: replacements that are accepted and together change nothing. Tried together
// are those of one rule, and of one place among several in a line.
func mend(doc *model.File, found []Finding, accept func(Finding) bool) (edits []same.Edit, applied []Finding) {
	lines := map[int]*model.Line{}
	for _, l := range doc.Lines {
		lines[l.Number] = l
	}
	type place struct {
		id   string
		line *model.Line
		nth  int
	}
	at := map[place]int{} // how many a line has of a rule, and which part has the nth ones
	var parts [][]same.Edit
	ask := map[same.Edit]Finding{} // two findings may ask for the same
	for _, f := range found {
		l := lines[f.Line]
		e := same.Edit{Line: l, Text: f.Replacement}
		if _, asked := ask[e]; asked || l == nil || f.Replacement == l.Text || accept != nil && !accept(f) {
			continue
		}
		ask[e] = f
		at[place{f.ID, l, 0}]++
		part := place{id: f.ID, nth: at[place{f.ID, l, 0}]}
		if _, ok := at[part]; !ok {
			at[part] = len(parts)
			parts = append(parts, nil)
		}
		parts[at[part]] = append(parts[at[part]], e)
	}
	edits = same.New(doc, same.Fixes).Keep(parts...)
	for _, e := range edits {
		applied = append(applied, ask[e])
	}
	return edits, applied
}

// origin returns for a line of the edited file which line it was before, by way of what
// earlier rounds did.
func origin(edits []same.Edit, earlier func(int) int) func(int) int {
	return func(line int) int {
		for _, e := range edits {
			if line <= e.Line.Number {
				break
			}
			line -= min(line-e.Line.Number, strings.Count(e.Text, "\n"))
		}
		return earlier(line)
	}
}
