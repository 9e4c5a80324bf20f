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

// An Edit writes Text, of one line or several, instead of a line. If Text is empty, the line goes
// with its end.
type Edit struct {
	Line *model.Line
	Text string
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
	names  int // how many the file has
	budget int

	Unsure bool // Keep has left out edits that it could not judge

	// Of the present question:
	crowded bool // there is too much to ask about
	hasty   bool // the first verdict that changes answers it
}

// The budget is in some 10 ns each: what is parsed costs by the byte, the rest by the step. It is no time: a file has
// the same findings on a slow machine.
const (
	costRule   = 6
	costSorted = 20
	costDecide = 60
	costName   = 2 // looked at for a part of it
	costLooked = 1 // at a rule, for what it begins with

	// Findings is a budget for judging each finding on its own: a fraction of a second,
	// whatever the file.
	Findings = 12 << 20

	// Fixes is one for mending a file, of which all findings count and not the first alone.
	Fixes = 60 << 20
)

func New(file *model.File, budget int) *Judge {
	j := &Judge{file: file, budget: budget}
	for _, g := range file.Groups {
		j.names += len(g.Agents)
	}
	return j
}

// Keeps reports whether an edit changes no verdict, and whether that is known.
func (j *Judge) Keeps(edit Edit) bool { return len(j.Keep([]Edit{edit})) > 0 }

// Keep returns as many of the edits as together change no verdict, in the order of the file and one
// for each line: all of a part if they do, else of each half. Each question reads the whole file, and most edits
// change nothing: one by one, the budget would not do.
func (j *Judge) Keep(parts ...[]Edit) (kept []Edit) {
	taken := map[*model.Line]bool{}
	for ; len(parts) > 0; parts = parts[1:] { // the small ones last, for which the budget may not do
		part := slices.DeleteFunc(slices.Clone(parts[0]), func(e Edit) bool { return taken[e.Line] })
		if len(part) == 0 {
			continue
		}
		all := Join(kept, part...)
		half := len(part) / 2
		switch e := j.effect(all, part, true); {
		case e.Known && e.Changes == "":
			kept = all
			for _, e := range part {
				taken[e.Line] = true
			}
		case half > 0 && j.budget >= 0:
			parts = append(parts, part[:half], part[half:])
		case !e.Known:
			j.Unsure = true
		}
	}
	return kept
}

// Join returns edits of different lines in the order of the file.
func Join(edits []Edit, more ...Edit) []Edit {
	all := slices.Concat(edits, more)
	slices.SortFunc(all, func(a, b Edit) int { return cmp.Compare(a.Line.Number, b.Line.Number) })
	return all
}

func (j *Judge) Effect(edit Edit) Effect {
	edits := []Edit{edit}
	return j.effect(edits, edits, false)
}

// effect returns what edits do, if all but more are known to do nothing. If hasty, the first
// verdict that changes is all that it finds.
func (j *Judge) effect(edits, more []Edit, hasty bool) Effect {
	if j.before[0] == nil {
		j.before = j.parse(nil)
	}
	after := j.parse(edits)
	if j.budget < 0 {
		return Effect{}
	}
	tokens, parts := j.tokens(edits, more)
	if len(tokens) > maxTokens || len(parts) > maxNameParts {
		return Effect{}
	}
	j.hasty, j.crowded = hasty, false
	var said summary
	var changed []change
	compared := map[pair][]string{} // a file may name a thousand crawlers for one group
	for d, dialect := range dialects {
		lookup, asked := costDecide, tokens
		if dialect == policy.Yandex {
			lookup, asked = costDecide+costName*j.names, slices.Concat(tokens, parts)
		}
		for _, token := range asked {
			j.budget -= lookup
			before, after := j.before[d].Group(token), after[d].Group(token)
			groups := pair{d, before.Token(), after.Token()}
			targets, ok := compared[groups]
			if !ok && j.budget >= 0 {
				targets = j.compare(d, token, before, after, &said)
				compared[groups] = targets
			}
			if targets != nil {
				changed = append(changed, change{groups, token, targets})
			}
			if hasty && len(changed) > 0 {
				return Effect{Known: j.budget > 0 && !j.crowded, Changes: said.String()}
			}
		}
	}
	e := Effect{Changes: said.String()}
	e.Lost = len(changed) > 0 && j.had(edits, changed)
	e.Known = j.budget > 0 && !j.crowded
	return e
}

// A pair is two groups of a dialect, before an edit and after it, by their tokens.
type pair struct {
	dialect       int
	before, after string
}

// A change is that one crawler is told otherwise.
type change struct {
	pair
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

// A question is about so many crawlers, and so many parts of names, at most.
const (
	maxTokens    = 1 << 10
	maxNameParts = 1 << 12

	maxPart = 64 // bytes
)

// tokens returns the crawlers that more, of the edits, may concern: those that are named near to
// them or in the edits there, and one without a name. Yandex finds a name by any part of it that is
// no name itself: parts are those of names that change or move, or that no crawler has.
func (j *Judge) tokens(edits, more []Edit) (all, parts []string) {
	seen, inParts := map[string]bool{"": true}, map[string]bool{}
	ask := func(name string) {
		if !seen[name] && len(all) <= maxTokens {
			seen[name] = true
			all = append(all, name)
		}
	}
	add := func(value string, changed bool) {
		value = strings.ToLower(value)
		changed = changed || policy.ProductToken(value) != value // or no crawler has this name
		for name := range strings.FieldsFuncSeq(value, inNoName) {
			if !strings.ContainsAny(name, chars.Letters) && !strings.HasPrefix(strings.TrimLeftFunc(value, inNoName), name) {
				continue // a version
			}
			ask(name)
			ask(name[:len(name)-len(strings.TrimLeft(name, chars.Letters+"-_"))]) // as Google reads it
			for i := 0; changed && i < len(name) && len(parts) <= maxNameParts; i++ {
				for end := min(len(name), i+maxPart); end > i; end-- {
					if part := name[i:end]; !inParts[part] {
						inParts[part] = true
						parts = append(parts, part)
					}
				}
			}
		}
	}
	ask(unnamed)
	groups := j.file.Groups
	next := 0 // the first group that was not looked at
	for _, e := range more {
		// All names of the group, and of those that it may become one with. Who does not read a
		// misspelt line takes the rules below it for those of a group further up.
		i := sort.Search(len(groups), func(i int) bool { return groups[i].Agents[0].Number > e.Line.Number })
		near, last := max(0, i-2), min(len(groups), i+1) // i-1 has the line
		first := near
		for first > next && !begins(groups, first) {
			first--
		}
		// Without a rule that all read, the group is one with the next, until it gets one: of the
		// names of a group, parts are found in another order than of those of two.
		fused := i > 0 && !slices.ContainsFunc(groups[i-1].Rules, plain)
		for k := max(first, next); k < last; k++ {
			for _, l := range groups[k].Agents {
				if k >= near || plain(l) {
					add(l.Value, fused)
				}
			}
		}
		next = max(next, last)
		// And those that come and go there.
		for ; len(edits) > 0 && (last == len(groups) || edits[0].Line.Number < groups[last].Agents[0].Number); edits = edits[1:] {
			e := edits[0]
			if e.Line.Meant != model.UserAgent || first > 0 && e.Line.Number < groups[first].Agents[0].Number {
				continue
			}
			lines := append(model.Read([]byte(e.Text)).Lines, e.Line)
			was, is := named(lines[len(lines)-1:]), named(lines[:len(lines)-1])
			for _, l := range lines {
				add(l.Value, !slices.Equal(was, is))
			}
		}
	}
	return all, parts
}

// named returns what those of the lines name that each dialect takes for a user-agent line.
func named(lines []*model.Line) (values []string) {
	for _, l := range lines {
		if l.Kind == model.UserAgent && plain(l) {
			values = append(values, strings.ToLower(l.Value))
		}
	}
	return values
}

// plain reports whether a line is the same to every dialect.
func plain(l *model.Line) bool { return !l.NoColon && strings.EqualFold(l.Field, l.Kind) }

// begins reports whether each dialect has a group begin where groups[i] does.
func begins(groups []*model.Group, i int) bool {
	return slices.ContainsFunc(groups[i].Agents, plain) && slices.ContainsFunc(groups[i-1].Rules, plain)
}

// inNoName tells what no product token has.
func inNoName(r rune) bool { return !strings.ContainsRune(chars.Letters+"-_0123456789", r) }

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
		case l.Rule() && plain(l):
			text = "Disallow:"
		}
		gone = append(gone, Edit{Line: e.Line, Text: text})
		isVacant = isVacant && vacant(e.Line)
	}
	without := j.parse(gone)
	if j.budget < 0 {
		return true
	}
	type outcome struct {
		pair
		less string
	}
	seen := map[outcome]bool{}
	for _, c := range changed {
		was, less := j.before[c.dialect].Group(c.token), without[c.dialect].Group(c.token)
		if o := (outcome{c.pair, less.Token()}); seen[o] {
			continue
		} else {
			seen[o] = true
		}
		for _, target := range c.targets {
			if was.Decide(target).Allowed != less.Decide(target).Allowed {
				return true
			}
		}
		if !isVacant && j.compare(c.dialect, c.token, was, less, new(summary)) != nil {
			return true
		}
	}
	return false
}

// vacant reports whether a rule is about no path that a site has: none has a blank or an
// invisible character.
func vacant(l *model.Line) bool {
	value, _, _ := strings.Cut(l.Value, "\x00") // at which readers end it
	return l.Rule() && strings.ContainsFunc(value, func(r rune) bool {
		return strings.ContainsRune(chars.Blanks, r) || chars.Invisible(r)
	})
}

// compare returns targets that two groups decide otherwise, nil if the groups differ in nothing, and
// notes it. Rules that both have are alike, so what is asked about is where the others match.
func (j *Judge) compare(dialect int, token string, before, after policy.Group, said *summary) (targets []string) {
	was, is := j.rules(dialect, before), j.rules(dialect, after)
	name := cmp.Or(after.Token(), before.Token(), token)
	if name != "*" && policy.ProductToken(name) != name { // the group says more than the name
		name = token
	}
	if now := delay(after); delay(before) != now {
		said.add(dialect, name, "asks", now)
		targets = []string{} // not nil: they differ, though on no path
	}
	rules := difference(was, is)
	if len(rules) == 0 || j.budget < 0 {
		return targets
	}
	for path := range j.probes(rules, was, is) {
		target := strings.ReplaceAll(path, " ", "%20") // no request line has a blank
		if j.budget -= 2 * costDecide; j.budget < 0 {
			break
		}
		b, a := before.Decide(target), after.Decide(target)
		if b.Allowed == a.Allowed {
			continue
		}
		said.decided(dialect, name, target, b, a)
		if len(targets) < maxTargets {
			targets = append(targets, target)
		}
		if j.hasty {
			break
		}
	}
	return targets
}

// rules returns the rules of a group that match anything, and those for a directory that Google makes of those that
// allow its index.html.
func (j *Judge) rules(dialect int, g policy.Group) []policy.Rule {
	var all []policy.Rule
	for r := range g.Rules() {
		j.budget -= costRule
		if r.Pattern != "" {
			r.Line = 0 // a rule that moved is the same
			all = append(all, r)
		}
		slash := strings.LastIndexByte(r.Pattern, '/')
		if r.Allow && dialects[dialect] == policy.Google && slash >= 0 && strings.HasPrefix(r.Pattern[slash:], "/index.htm") {
			r.Pattern = r.Pattern[:slash+1] + "$"
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
	in := map[policy.Rule]int{} // as bits, in which: two pages of a directory make the same rule for it
	for i, rules := range [...][]policy.Rule{was, is} {
		for _, r := range rules {
			in[r] |= 1 << i
		}
	}
	for _, r := range slices.Concat(was, is) {
		if in[r] < 3 {
			all = append(all, r)
		}
	}
	return all
}

// maxRivals bounds how many pairs of rules are asked about for one crawler.
const maxRivals = 2000

// shape is a rule without its length: rules of one shape match the same paths, and at most their
// specificity differs.
type shape struct {
	allow, ends bool
	paths       string
}

func shapeOf(r policy.Rule) shape {
	paths := strings.TrimSuffix(model.Single(r.Pattern), "*$") // which is as good as the star alone
	return shape{r.Allow, strings.HasSuffix(paths, "$"), cmp.Or(strings.TrimSuffix(paths, "*"), "/")}
}

// probes returns paths that tell two groups apart: those of each changed rule alone, unless both
// groups have one of its shape, and those that a rule of the other kind matches too.
func (j *Judge) probes(changed, was, is []policy.Rule) iter.Seq[string] {
	j.budget -= costSorted * (len(was) + len(is))
	in := map[shape]int{} // as bits, in which of the two groups
	for _, r := range changed {
		in[shapeOf(r)] = 0
	}
	for i, rules := range [...][]policy.Rule{was, is} {
		for _, r := range rules {
			s := shapeOf(r)
			if n, ok := in[s]; ok {
				in[s] = n | 1<<i
			}
		}
	}
	rivalsOf := rivals(was, is)
	all := make([][]string, len(changed))
	pairs := 0
	for i, r := range changed {
		var looked int
		all[i], looked = rivalsOf(r, in[shapeOf(r)] == 3)
		j.budget -= looked
		if pairs += len(all[i]); pairs > maxRivals || j.budget < 0 {
			j.crowded = true
			return func(func(string) bool) {}
		}
	}
	return func(yield func(string) bool) {
		for i, r := range changed {
			if in[shapeOf(r)] < 3 && !alone(r.Pattern, yield) {
				return
			}
			for _, other := range all[i] {
				for _, path := range crossings(r.Pattern, other) {
					if !yield(path) {
						return
					}
				}
			}
		}
	}
}

// alone yields paths that a pattern matches, until yield has enough of them.
func alone(pattern string, yield func(string) bool) bool {
	for _, fill := range [...]string{"", "x", "/", "20", "a/b", "%20"} {
		path := filled(pattern, fill)
		for _, end := range [...]string{"", "x", "/", "/x", "?x=1", "20", "%20"} {
			if !yield(path + end) {
				return false
			}
		}
		if !strings.Contains(pattern, "*") {
			break
		}
	}
	return true
}

// rivals returns a function that finds the rivals of a rule: the patterns of the other kind that match
// a part of its paths, and that it may win over. A rule that was only resized has the same paths but
// another length: it wins over much shorter patterns as before, so those are left out. cost is that
// of the search.
func rivals(groups ...[]policy.Rule) func(r policy.Rule, resized bool) (all []string, cost int) {
	type prefixed struct{ pattern, head string }
	patterns := map[bool][]prefixed{} // of what allows, and what disallows, by their length
	for _, r := range slices.Concat(groups...) {
		patterns[r.Allow] = append(patterns[r.Allow], prefixed{r.Pattern, head(r.Pattern)})
	}
	for allow, p := range patterns {
		slices.SortFunc(p, func(a, b prefixed) int {
			return cmp.Or(cmp.Compare(len(a.pattern), len(b.pattern)), cmp.Compare(a.pattern, b.pattern))
		})
		patterns[allow] = slices.Compact(p)
	}
	return func(r policy.Rule, resized bool) (all []string, cost int) {
		others := patterns[!r.Allow]
		longer := func(n int) int {
			return sort.Search(len(others), func(i int) bool { return len(others[i].pattern) > n })
		}
		from := 0
		if resized { // a rule of its shape can lack its stars and a "$": it wins over what is shorter still
			from = longer(len(r.Pattern) - strings.Count(r.Pattern, "*") - 2)
		}
		others = others[from:longer(len(r.Pattern)+1)]
		begin, star := head(r.Pattern), strings.Contains(r.Pattern, "*")
		for _, o := range others {
			n := min(len(begin), len(o.head))
			if begin[:n] == o.head[:n] && (star || strings.Contains(o.pattern, "*")) {
				all = append(all, o.pattern)
			}
		}
		return all, costLooked * len(others)
	}
}

// head returns what all paths begin with that a pattern matches, as far as no escape is in it.
func head(pattern string) string {
	if i := strings.IndexAny(pattern, "*%$"); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// crossings returns paths that both patterns match, if there are any: what follows the first star
// of the one comes before or behind what follows that of the other.
func crossings(p, q string) (all []string) {
	for _, fill := range [...]string{"", "x"} {
		p, q := strings.TrimSuffix(p, "$"), strings.TrimSuffix(q, "$")
		all = append(all, filled(p, fill), filled(q, fill))
		a, restA, _ := strings.Cut(p, "*")
		b, restB, _ := strings.Cut(q, "*")
		if len(a) < len(b) {
			a = b
		}
		restA, restB = fill+filled(restA, fill), fill+filled(restB, fill)
		all = append(all, a+restA+restB, a+restB+restA)
	}
	return all
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
