// Package report collects findings in bounded memory, whatever the file.
package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
)

// MaxReplacement is how many bytes a replacement may have. A longer one would be most of a
// hostile line, and the advice in words does without.
const MaxReplacement = 400

// maxListed is how many further lines the one remark of a rule names.
const maxListed = 5

// MaxPerRule is how many findings of one rule are listed.
const MaxPerRule = 20

// Finding is a finding without what its rule says about all of them.
type Finding struct {
	ID             string
	Number, Column int // 0: the file, or the line, as a whole
	Message        string
	Replacement    string // changes nothing
	Example        string // of what was meant
	More           int
}

// Report collects findings, at most MaxPerRule of each rule. The zero value is empty.
type Report struct {
	// Unbounded is for a program that mends the file: no rule is cut short, and none remarks
	// on one line for all.
	Unbounded bool

	found []Finding
	rules map[string]*tally
}

// tally is what is known of one rule.
type tally struct {
	count    int
	overflow int // line of the first finding beyond maxPerRule
	doubtful bool

	// A remark is one finding that speaks for others.
	remark int // its index in found, from 1
	others int
	lines  []string // the numbers of the first of those
}

func (r *Report) of(id string) *tally {
	if r.rules == nil {
		r.rules = map[string]*tally{}
	}
	if r.rules[id] == nil {
		r.rules[id] = &tally{}
	}
	return r.rules[id]
}

// Doubt notes that some findings of the rule were not judged, so that their number is not known.
func (r *Report) Doubt(id string) { r.of(id).doubtful = true }

// Full reports whether the rule has as many findings as are listed.
func (r *Report) Full(id string) bool { return !r.Unbounded && r.of(id).count >= MaxPerRule }

// Listed counts a finding of the rule at a line, 0 for the file, and reports whether it is to be
// Put. Of remarks that is the first, which counts all others: what is style, done once, is mostly
// done on every line.
func (r *Report) Listed(id string, number int, remark bool) bool {
	t := r.of(id)
	if remark && t.remark > 0 && !r.Unbounded {
		if t.others++; len(t.lines) < maxListed {
			t.lines = append(t.lines, strconv.Itoa(number))
		}
		return false
	}
	if t.count++; t.count > MaxPerRule && !r.Unbounded {
		t.overflow = cmp.Or(t.overflow, number)
		return false
	}
	if remark {
		t.remark = len(r.found) + 1
	}
	return true
}

// Put adds a finding that is Listed.
func (r *Report) Put(f Finding) { r.found = append(r.found, f) }

// Whole reports a finding about the file, its name or its answer as a whole.
func (r *Report) Whole(id, format string, args ...any) {
	if r.Listed(id, 0, false) {
		r.Put(Finding{ID: id, Message: chars.Sprintf(format, args...)})
	}
}

// Sorted returns the findings by line, column and rule. Those that count the rest of a rule
// come last.
func (r *Report) Sorted() []Finding {
	ids := slices.Sorted(maps.Keys(r.rules))
	for _, id := range ids {
		t := r.rules[id]
		least := map[bool]string{true: "at least "}[t.doubtful]
		if t.others > len(t.lines) {
			t.lines = append(t.lines, "…")
		}
		if t.others > 0 { // ends the message of a remark
			r.found[t.remark-1].Message += fmt.Sprintf(" (likewise %s%s: %s)", least, chars.Count(t.others, "more line"), strings.Join(t.lines, ", "))
		}
	}
	slices.SortStableFunc(r.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID))
	})
	for _, id := range ids {
		t := r.rules[id]
		if n := t.count - MaxPerRule; n > 0 && !r.Unbounded {
			perhaps := map[bool]string{true: "perhaps "}[t.doubtful]
			r.found = append(r.found, Finding{ID: id, Number: t.overflow, More: n, Message: fmt.Sprintf("and %s%d more, the first of them here", perhaps, n)})
		}
	}
	return r.found
}
