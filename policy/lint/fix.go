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
		edits, found := mend(doc, candidates(doc, findings(checks.Candidates(doc, u)), accept))
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

// candidate is a finding and how to follow it.
type candidate struct {
	Finding
	same.Edit
}

// candidates returns the findings that are accepted if they change nothing.
func candidates(doc *model.File, found []Finding, accept func(Finding) bool) (all []candidate) {
	lines := map[int]*model.Line{}
	for _, l := range doc.Lines {
		lines[l.Number] = l
	}
	for _, f := range found {
		if l := lines[f.Line]; l != nil && f.Replacement != l.Text && (accept == nil || accept(f)) {
			all = append(all, candidate{f, same.Edit{Line: l, Text: f.Replacement}})
		}
	}
	return all
}

// mend chooses what to apply in one round: what together changes nothing. A line has one replacement in a round.
func mend(doc *model.File, all []candidate) (edits []same.Edit, applied []Finding) {
	edits = same.New(doc, same.Fixes).Keep(byRule(all)...)
	kept := map[same.Edit]bool{}
	for _, e := range edits {
		kept[e] = true
	}
	for _, c := range all {
		if kept[c.Edit] {
			kept[c.Edit] = false // two findings may ask for the same
			applied = append(applied, c.Finding)
		}
	}
	return edits, applied
}

// byRule returns the edits in parts that are tried together: those of one rule.
func byRule(all []candidate) (parts [][]same.Edit) {
	type kind struct {
		id  string
		nth int // of the rule in its line
	}
	at := map[kind]int{} // in parts
	for i, c := range all {
		k := kind{id: c.ID}
		for ; i > 0 && all[i-1].Edit.Line == c.Edit.Line; i-- {
			if all[i-1].ID == c.ID {
				k.nth++
			}
		}
		if _, ok := at[k]; !ok {
			at[k] = len(parts)
			parts = append(parts, nil)
		}
		parts[at[k]] = append(parts[at[k]], c.Edit)
	}
	return parts
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
