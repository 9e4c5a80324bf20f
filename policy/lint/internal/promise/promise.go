// Package promise decides what an edit of a robots.txt file does to crawlers: by asking package
// policy before and after, in each dialect that reads rules by their length, for the crawlers
// and paths that the file and the edit name.
package promise

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// dialects are those that a promise is about. Original is not: what it makes of a file changes
// with the order of its lines.
var dialects = [...]policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing}

// The names that no file has: of a crawler, and of a group that shall bind none.
const (
	unnamed = "robots-lint-any"
	nobody  = "robots-lint-none"
)

// An Edit writes Text, of one line or several, instead of a line. If Remove, the line goes with
// its end.
type Edit struct {
	Line   *model.Line
	Text   string
	Remove bool
}

// An Effect is what an edit does.
type Effect struct {
	Known   bool   // it was found out within the budget
	Changes string // in words, after "the replacement"; "" if no verdict changes
	Lost    bool   // the lines had an effect for a crawler that is told otherwise after the edit
}

// Harmless reports whether the edit may be offered: no verdict changes, or the lines were
// without effect as they are written.
func (e Effect) Harmless() bool { return e.Known && !e.Lost }

// A Judge answers for one file, within a budget.
type Judge struct {
	file   *model.File
	before [len(dialects)]*policy.Policy
	budget int
	unsure bool // the present question has too many answers
	hasty  bool // the first verdict that changes answers it
}

// The budget is in some 10 ns each: what is parsed costs by the byte, the rest by the step.
const (
	costRule   = 6
	costSorted = 20
	costDecide = 60

	// Findings is a budget for judging each finding on its own: a fraction of a second,
	// whatever the file.
	Findings = 12 << 20

	// Fixes is one for mending a file, of which all findings count and not the first alone.
	Fixes = 60 << 20
)

// New returns a judge of the file.
func New(file *model.File, budget int) *Judge {
	return &Judge{file: file, budget: budget}
}

// Keeps reports whether edits of different lines together change no verdict, and whether that
// is known. They are in the order of the file.
func (j *Judge) Keeps(edits ...Edit) bool {
	j.hasty = true
	e := j.Effect(edits...)
	j.hasty = false
	return e.Known && e.Changes == ""
}

// Effect returns what the edits do.
func (j *Judge) Effect(edits ...Edit) Effect {
	if j.before[0] == nil {
		j.before = j.parse(nil)
	}
	tokens := j.tokens(edits)
	if len(tokens) > maxTokens {
		return Effect{}
	}
	after := j.parse(edits)
	if j.budget < 0 {
		return Effect{}
	}
	j.unsure = false
	var said summary
	var changed []change
	for d := range dialects {
		for _, token := range tokens {
			c := change{dialect: d, token: token}
			if j.compare(&c, j.before[d].Group(token), after[d].Group(token), &said) {
				changed = append(changed, c)
			}
			if j.hasty && len(changed) > 0 {
				return Effect{}
			}
		}
	}
	e := Effect{Changes: said.String()}
	e.Lost = len(changed) > 0 && j.had(edits, changed)
	e.Known = j.budget > 0 && !j.unsure
	return e
}

// A change is that one crawler is told otherwise.
type change struct {
	dialect int
	token   string
	targets []string // some that are decided otherwise
}

// maxTargets is how many are kept.
const maxTargets = 64

// parse reads the file with the edits in all dialects, if the budget allows.
func (j *Judge) parse(edits []Edit) (p [len(dialects)]*policy.Policy) {
	if j.budget -= len(dialects) * len(j.file.Text); j.budget >= 0 {
		text := []byte(Apply(j.file, edits))
		for i, d := range dialects {
			p[i] = d.Parse(text)
		}
	}
	return p
}

// maxTokens bounds for how many crawlers a file is compared.
const maxTokens = 256

// tokens returns the crawlers that edits may concern: those that are named near to them, in
// the edit itself, or by a slightly different name; and one without a name.
func (j *Judge) tokens(edits []Edit) []string {
	seen := map[string]bool{unnamed: true}
	all := []string{unnamed}
	ask := func(name string, likewise bool) {
		if name == "" || seen[name] || len(all) > maxTokens {
			return
		}
		seen[name] = true
		if all = append(all, name); likewise {
			all = append(all, name+"x", "x"+name)
		}
	}
	add := func(value string, likewise bool) {
		for part := range strings.FieldsFuncSeq(strings.ToLower(value), isMark) {
			first := true
			for name := range strings.FieldsFuncSeq(part, inNoName) {
				// Yandex finds a name behind what is no part of one, as in ":x1" or "a/x1"; a version is none.
				if first || strings.ContainsAny(name, chars.Letters) {
					ask(name, likewise)
					ask(name[:len(name)-len(strings.TrimLeft(name, chars.Letters+"-_"))], likewise) // as Google reads it
				}
				first = false
			}
		}
	}
	add("yandexbot", false) // which Yandex finds by a part of a name
	for _, e := range edits {
		if e.Line.Meant == model.UserAgent {
			for line := range strings.SplitSeq(e.Line.Text+"\n"+e.Text, "\n") {
				_, value, _ := strings.Cut(line, ":")
				add(value, true)
			}
		}
		// All names of the group, and of those that it may become one with.
		i := sort.Search(len(j.file.Groups), func(i int) bool { return j.file.Groups[i].Agents[0].Number > e.Line.Number })
		for _, g := range j.file.Groups[max(0, i-2):min(len(j.file.Groups), i+1)] {
			for _, l := range g.Agents {
				add(l.Value, false)
			}
		}
	}
	return all
}

// inNoName tells what no product token has.
func inNoName(r rune) bool { return !strings.ContainsRune(chars.Letters+"-_0123456789", r) }

// isMark tells what parts names in the value of a user-agent line.
func isMark(r rune) bool {
	return strings.ContainsRune(chars.Blanks+",;*()<>\"'“”‘’", r) || chars.Invisible(r)
}

// had reports whether one of the crawlers minds the lines as they are written: whether a
// verdict would change without them. A user-agent line stays, for a crawler that there is
// not, and so does a rule, for no path: they part groups.
func (j *Judge) had(edits []Edit, changed []change) bool {
	var gone []Edit
	isVacant := true
	for _, e := range edits {
		text := "#"
		switch l := e.Line; {
		case l.Kind == model.UserAgent:
			text = "User-agent: " + nobody
		case l.Rule() && !l.NoColon && strings.EqualFold(l.Field, l.Kind): // to every reader
			text = "Disallow:"
		}
		gone = append(gone, Edit{Line: e.Line, Text: text})
		isVacant = isVacant && vacant(e.Line)
	}
	without := j.parse(gone)
	if j.budget < 0 {
		return true
	}
	for _, c := range changed {
		was, less := j.before[c.dialect].Group(c.token), without[c.dialect].Group(c.token)
		for _, target := range c.targets {
			if was.Decide(target).Allowed != less.Decide(target).Allowed {
				return true
			}
		}
		if !isVacant && j.compare(&change{}, was, less, new(summary)) {
			return true
		}
	}
	return false
}

// vacant reports whether a rule is about no path that a site has: none has a blank or an
// invisible character.
func vacant(l *model.Line) bool {
	return l.Rule() && strings.ContainsFunc(l.Value, func(r rune) bool {
		return strings.ContainsRune(chars.Blanks, r) || chars.Invisible(r)
	})
}

// compare reports whether a crawler is told otherwise, and notes what. Rules that both groups
// have are alike, so what is asked about is where the others match.
func (j *Judge) compare(c *change, before, after policy.Group, said *summary) (differs bool) {
	was, is := j.rules(before), j.rules(after)
	name := cmp.Or(after.Token(), before.Token(), c.token)
	if name != "*" && policy.ProductToken(name) != name { // the group says more than the name
		name = c.token
	}
	if now := delay(after); delay(before) != now {
		said.add(c.dialect, name, "asks", now)
		differs = true
	}
	rules := difference(was, is)
	if len(rules) == 0 || j.budget < 0 {
		return differs
	}
	j.budget -= costSorted * (len(was) + len(is))
	paths, ok := probes(rules, was, is)
	if !ok {
		j.unsure = true
		return true
	}
	for path := range paths {
		target := strings.ReplaceAll(path, " ", "%20")
		if j.budget -= 2 * costDecide; j.budget < 0 {
			return true
		}
		b, a := before.Decide(target), after.Decide(target)
		if b.Allowed == a.Allowed {
			continue
		}
		said.decided(c.dialect, name, target, b, a)
		if differs = true; j.hasty {
			return true
		}
		if len(c.targets) < maxTargets {
			c.targets = append(c.targets, target)
		}
	}
	return differs
}

// rules returns the rules of a group that match anything.
func (j *Judge) rules(g policy.Group) []policy.Rule {
	var all []policy.Rule
	for r := range g.Rules() {
		j.budget -= costRule
		if r.Pattern != "" {
			r.Line = 0
			all = append(all, r)
		}
	}
	return all
}

// difference returns the rules that only one of two groups has.
func difference(was, is []policy.Rule) (all []policy.Rule) {
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	n := map[policy.Rule]int{}
	for _, r := range slices.Concat(was, is) {
		n[r]++
	}
	for _, r := range slices.Concat(was, is) {
		if n[r] == 1 {
			all = append(all, r)
		}
	}
	return all
}

// maxRivals bounds how many pairs of rules are asked about for one crawler.
const maxRivals = 2000

// probes yields paths that tell two groups apart: those of each changed rule alone, and those
// that a rule of the other kind matches too, if the two are about as long. ok is false if there
// are too many.
func probes(changed, was, is []policy.Rule) (paths iter.Seq[string], ok bool) {
	rivals := rivalsOf(was, is)
	pairs := 0
	for _, r := range changed {
		pairs += len(rivals(r))
	}
	return func(yield func(string) bool) {
		for _, r := range changed {
			for _, fill := range [...]string{"", "x", "/", "20", "a/b", "%20"} {
				path := filled(r.Pattern, fill)
				for _, end := range [...]string{"", "x", "/", "/x", "?x=1", "20", "%20"} {
					if !yield(path + end) {
						return
					}
				}
				if !strings.Contains(r.Pattern, "*") {
					break
				}
			}
			for _, other := range rivals(r) {
				mine, its := filled(r.Pattern, ""), filled(other, "")
				for _, path := range [...]string{mine + its, its + mine, its, filled(r.Pattern, its), filled(other, mine)} {
					if !yield(path) {
						return
					}
				}
			}
		}
	}, pairs <= maxRivals
}

// rivalsOf returns for a rule the patterns of the other kind that it wins over or loses to by a
// few bytes, or by its stars: if it is written otherwise, that may change.
func rivalsOf(groups ...[]policy.Rule) func(policy.Rule) []string {
	patterns := map[bool][]string{} // of what allows, and what disallows, by their length
	for _, r := range slices.Concat(groups...) {
		patterns[r.Allow] = append(patterns[r.Allow], r.Pattern)
	}
	for allow, p := range patterns {
		slices.SortFunc(p, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
		patterns[allow] = slices.Compact(p)
	}
	return func(r policy.Rule) []string {
		others := patterns[!r.Allow]
		low, high := len(r.Pattern)-strings.Count(r.Pattern, "*")-1, len(r.Pattern)+1
		from := sort.Search(len(others), func(i int) bool { return len(others[i]) >= low })
		to := sort.Search(len(others), func(i int) bool { return len(others[i]) > high })
		return others[from:to]
	}
}

// filled returns a path that a pattern matches: with fill for each star.
func filled(pattern, fill string) string {
	return strings.ReplaceAll(strings.TrimSuffix(pattern, "$"), "*", fill)
}

func delay(g policy.Group) string {
	d, ok := g.CrawlDelay()
	if !ok {
		return "for no delay"
	}
	return "for a delay of " + d.String()
}
