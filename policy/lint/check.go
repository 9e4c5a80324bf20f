package lint

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// checker judges a file. Each family of rules has its own file, and knows of the others only through this one.
type checker struct {
	*model.File
	report
	url   *url.URL // where the file is served; empty if not known
	host  string   // that serves it, as far as the URL or the sitemaps tell
	judge *judge   // nil for Fix, which judges replacements together
	idler *judge   // of lines without effect: their order does not matter

	// What follows is worked out once it is asked for.
	paths   map[string]bool         // of the rules
	google  *policy.Policy          // the file as Google reads it
	idle    map[*model.Line]bool    // rules with a star at the end that decides nothing
	closers map[string]map[int]bool // lines of rules that close assets, by crawler
	asked   int                     // how many decisions were asked for, of those that are as many as the lines
}

// check returns what is wrong with the text of a file that is served at u, empty if that is not known.
func check(doc *model.File, u *url.URL) []Finding {
	f := &checker{File: doc, url: u}
	f.judge = &judge{file: doc, asked: dialects[:], budget: findingsBudget}
	f.idler = &judge{file: doc, asked: unordered, budget: findingsBudget}
	return f.check()
}

// candidates returns the findings that say what to write, all of them, with replacements that were not judged.
func candidates(doc *model.File, u *url.URL) []Finding {
	f := &checker{File: doc, url: u, report: report{unbounded: true}}
	return slices.DeleteFunc(f.check(), func(f Finding) bool { return f.Replacement == "" })
}

func (f *checker) check() []Finding {
	// The order of the families decides only which of two findings at one place comes first.
	if f.format() {
		f.host, _ = f.home()
		f.closers = map[string]map[int]bool{}
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
	return f.sorted()
}

// add reports a finding of the rule at byte at of l, or about the whole line if at is negative, unless a comment
// silences it there. Of the arguments, %s quotes a string, which is mostly text of the file, and %v does not.
func (f *checker) add(id string, l *model.Line, at int, replacement, format string, args ...any) {
	f.put(false, id, l, at, replacement, format, args...)
}

// value and line are add at the value of l, and about the whole line, without a replacement.
func (f *checker) value(id string, l *model.Line, format string, args ...any) {
	f.put(false, id, l, l.ValueAt, "", format, args...)
}

func (f *checker) line(id string, l *model.Line, format string, args ...any) {
	f.put(false, id, l, -1, "", format, args...)
}

// once is add for a rule of which each file gets a single remark.
func (f *checker) once(id string, l *model.Line, at int, replacement, format string, args ...any) {
	f.put(true, id, l, at, replacement, format, args...)
}

func (f *checker) put(remark bool, id string, l *model.Line, at int, replacement, format string, args ...any) {
	if f.Silent(id, l.Number) || !f.listed(id, l.Number, remark) {
		return // what is not listed costs little: a line may be long
	}
	found := newFinding(id, l.Number, model.Sprintf(format, args...))
	if at >= 0 { // editors and SARIF count characters
		found.Column = utf8.RuneCountInString(l.Text[:at]) + 1
	}
	found.Replacement, found.Example = f.advice(l, replacement)
	f.found = append(f.found, found)
}

// superfluous is add for a line without which no verdict changes. If one does, the rule is wrong about it.
func (f *checker) superfluous(id string, l *model.Line, format string, args ...any) {
	full := !f.unbounded && f.of(id).count >= MaxPerRule
	kept := f.unbounded || !full && f.idler.keeps(edit{line: l})
	if !kept && (full || f.idler.unsure) {
		f.of(id).doubtful = true
	}
	if kept || full {
		f.add(id, l, l.ValueAt, "", format, args...)
	}
}

// maxReplacement is how many bytes a replacement may have. A longer one would be most of a hostile line, and the advice
// in words does without.
const maxReplacement = 400

// advice returns the replacement if it may be offered: if it changes nothing in any dialect. Of what does, the author
// gets an example.
func (f *checker) advice(l *model.Line, text string) (replacement, example string) {
	if l.CommentAt < len(l.Text) && text != "" && !strings.Contains(text, "#") { // the line keeps its comment
		text += " " + strings.TrimRight(l.Text[l.CommentAt:], model.Blanks)
	}
	switch {
	case text == "" || len(text) > maxReplacement || !utf8.ValidString(text),
		strings.HasPrefix(text, "\ufeff"): // a byte order mark, if the file begins so
		return "", ""
	case f.judge == nil, f.judge.keeps(edit{l, text}):
		return text, ""
	case l.Rule() && model.Core(l.Value) != "/" && slices.ContainsFunc(model.Read([]byte(text)).Lines, isAll):
		return "", "" // a slip in a path must not close all of a site
	}
	return "", text
}

// isAll reports whether a line is a rule about all of the site.
func isAll(l *model.Line) bool { return l.Rule() && model.Core(l.Value) == "/" }

// A report collects findings in bounded memory, whatever the file: at most MaxPerRule of each rule.
type report struct {
	unbounded bool // for Fix: no rule is cut short, and none remarks on one line for all
	found     []Finding
	rules     map[string]*tally
}

// tally is what is known of one rule.
type tally struct {
	count    int
	overflow int  // line of the first finding beyond MaxPerRule
	doubtful bool // some findings were not judged, so that their number is not known

	// A remark is one finding that speaks for others.
	remark int // its index in found, from 1
	others int
	lines  []string // the numbers of the first of those
}

// maxNamed is how many further lines the one remark of a rule names.
const maxNamed = 5

func (r *report) of(id string) *tally {
	if r.rules == nil {
		r.rules = map[string]*tally{}
	}
	if r.rules[id] == nil {
		r.rules[id] = &tally{}
	}
	return r.rules[id]
}

// listed counts a finding of the rule at a line, 0 for the file, and reports whether it is the next of found. Of
// remarks that is the first, which counts all others: what is style, done once, is mostly done on every line.
func (r *report) listed(id string, number int, remark bool) bool {
	t := r.of(id)
	switch {
	case r.unbounded:
		return true
	case remark && t.remark > 0:
		if t.others++; len(t.lines) < maxNamed {
			t.lines = append(t.lines, strconv.Itoa(number))
		}
		return false
	}
	if t.count++; t.count > MaxPerRule {
		t.overflow = cmp.Or(t.overflow, number)
		return false
	}
	if remark {
		t.remark = len(r.found) + 1
	}
	return true
}

// whole reports a finding about the file, its name or its answer as a whole.
func (r *report) whole(id, format string, args ...any) {
	if r.listed(id, 0, false) {
		r.found = append(r.found, newFinding(id, 0, model.Sprintf(format, args...)))
	}
}

// sorted returns the findings by line, column and rule. Those that count the rest of a rule come last.
func (r *report) sorted() []Finding {
	var rest []Finding
	for _, id := range slices.Sorted(maps.Keys(r.rules)) {
		t, least, perhaps := r.rules[id], "", ""
		if t.doubtful {
			least, perhaps = "at least ", "perhaps "
		}
		if t.others > len(t.lines) {
			t.lines = append(t.lines, "…")
		}
		if t.others > 0 { // ends the message of a remark
			r.found[t.remark-1].Message += fmt.Sprintf(" (likewise %s%s: %s)", least, model.Count(t.others, "more line"), strings.Join(t.lines, ", "))
		}
		if n := t.count - MaxPerRule; n > 0 {
			more := newFinding(id, t.overflow, fmt.Sprintf("and %s%d more, the first of them here", perhaps, n))
			more.More = n
			rest = append(rest, more)
		}
	}
	slices.SortStableFunc(r.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID))
	})
	return append(r.found, rest...)
}

// newFinding returns a finding with what the registry says about its rule. A test proves that each rule that is
// reported is there.
func newFinding(id string, line int, message string) Finding {
	r := rules()[ruleIndex(id)]
	return Finding{ID: id, Name: r.Name, Severity: r.Severity, Engines: r.Engines, Line: line, Message: message, Suggestion: r.Advice}
}
