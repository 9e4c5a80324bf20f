package lint

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// entry is a rule among those of one product token.
type entry struct {
	*model.Line
	core  string // pattern without wildcards at its end
	plain bool   // core matches what begins with it, and nothing else
	loses bool   // to a rule of the other kind that matches the same
}

// literal tells a pattern that readers without wildcards understand as it is meant. Those are the readers that take the
// first match; what they cannot read is no better for standing first.
func (e *entry) literal() bool { return e.plain && e.Value == e.core }

// conflictChecks compares the rules for each product token with one another.
func (f *checker) conflictChecks() {
	for _, a := range f.Audiences() {
		entries := f.equals(sortedEntries(a.Rules))
		f.covered(entries)
		f.surprises(entries)
		f.caseVariants(a.Rules)
		f.enumerations(a.Rules)
		f.indexPages(a.Rules)
	}
}

// sortedEntries sorts the rules that have a path so that a plain pattern stands before all that it covers.
func sortedEntries(rules []*model.Line) (entries []entry) {
	for _, r := range rules {
		if r.Matches() { // else RT004, RT013 and RT301 report it
			c := model.Core(r.Value)
			entries = append(entries, entry{Line: r, core: c, plain: model.Plain(c)})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.core, b.core), cmp.Compare(a.Number, b.Number))
	})
	return entries
}

// equals reports the rules that match the same paths (RT310, RT311, RT015), and returns the entries without the
// duplicates. Of each kind only the longest counts.
func (f *checker) equals(entries []entry) (kept []entry) {
	type key struct{ core, kind string }
	best := map[key]*model.Line{}
	for _, e := range entries {
		k := key{e.core, e.Kind}
		if b := best[k]; b == nil || len(e.Value) > len(b.Value) {
			best[k] = e.Line
		}
	}
	otherKind := map[string]string{model.Allow: model.Disallow, model.Disallow: model.Allow}
	for _, e := range entries {
		mine, other := best[key{e.core, e.Kind}], best[key{e.core, otherKind[e.Kind]}]
		switch {
		case e.Line != mine && e.Value == mine.Value: // RFC 9309 §2.2.2 lets crawlers drop duplicates
			f.superfluous("RT310", e.Line, "line %d is the same rule", mine.Number)
			continue
		case e.Line != mine: // "/fish" beside "/fish*"
			f.superfluous("RT311", e.Line, "%s in line %d matches the same paths", mine.Value, mine.Number)
			continue
		case other == nil:
		case len(other.Value) > len(e.Value): // wildcards at the end count as octets: "/fish*" beats "/fish"
			e.loses = true
			f.superfluous("RT015", e.Line, "%s can never win: %s in line %d matches the same paths and is longer", e.Value, other.Text, other.Number)
		case len(other.Value) == len(e.Value) && e.Kind == model.Disallow: // "allow" should win (§2.2.2)
			e.loses = true
			f.superfluous("RT015", e.Line, "%s can never win: line %d allows the same, and allow wins a tie", e.Value, other.Number)
		}
		kept = append(kept, e)
	}
	return kept
}

// covered walks the sorted rules and keeps those that cover the one at hand, as a walk through a tree does. It reports
// what is shadowed (RT311), if no rule of the other kind needs it, and what depends on the order (RT312): of all rules
// that match its path, the first in the file is of the other kind. The author wrote the exception below what it is an
// exception from, or an Allow: / at the top.
func (f *checker) covered(entries []entry) {
	hidden := map[*model.Line][]*model.Line{} // by the rule that a first-match reader stops at
	var path []*entry                         // each begins with the one before: no more than the last has bytes
	for i := range entries {
		e := &entries[i]
		for len(path) > 0 && !strings.HasPrefix(e.core, path[len(path)-1].core) {
			path = path[:len(path)-1]
		}
		winner, first := e, e
		for _, p := range path {
			if !p.loses {
				winner = p
			}
			if p.literal() && p.Number < first.Number {
				first = p
			}
		}
		if winner.Kind == e.Kind && winner.core != e.core && !e.loses {
			f.superfluous("RT311", e.Line, "%s in line %d already covers %s", winner.Value, winner.Number, e.Value)
		}
		if first.Kind != e.Kind && first.Value != e.Value && e.literal() {
			hidden[first.Line] = append(hidden[first.Line], e.Line)
		}
		if e.plain {
			path = append(path, e)
		}
	}
	f.hidden(hidden)
}

// hidden reports each hiding rule once. A single rule behind it is what has to move; several are named by their number,
// since an Allow: / at the top of a long group would fill the list.
func (f *checker) hidden(by map[*model.Line][]*model.Line) {
	byNumber := func(a, b *model.Line) int { return cmp.Compare(a.Number, b.Number) }
	for _, hider := range slices.SortedFunc(maps.Keys(by), byNumber) {
		if first := slices.MinFunc(by[hider], byNumber); len(by[hider]) == 1 {
			f.once("RT312", first, first.ValueAt, "",
				"readers that take the first match stop at %s in line %d and never come to this rule: put it first", hider.Text, hider.Number)
		} else {
			f.once("RT312", hider, hider.ValueAt, "", "readers that take the first match stop here and never come to %v below, such as line %d",
				model.Count(len(by[hider]), "rule"), first.Number)
		}
	}
}

// surprises reports directories without their slash, where an exception from the rule shows that they are directories
// (RT314). Where a second disallow shows it, that one is merely superfluous (RT311); one of the directory itself says
// that both are meant.
func (f *checker) surprises(entries []entry) {
	for _, e := range entries {
		// A star at the end says that the author means what begins alike; a dot makes it a file, a query something else.
		name := e.core[strings.LastIndexByte(e.core, '/')+1:]
		if e.Kind != model.Disallow || e.loses || !e.literal() || name == "" || strings.ContainsAny(name, ".?=&") {
			continue
		}
		// What begins with the directory stands together, though not next to it: "/fish-soup" sorts before "/fish/".
		dir := e.core + "/"
		i, same := slices.BinarySearchFunc(entries, dir, func(e entry, dir string) int { return cmp.Compare(e.core, dir) })
		if !same && i < len(entries) && entries[i].Kind == model.Allow && strings.HasPrefix(entries[i].core, dir) {
			f.add("RT314", e.Line, e.ValueAt, "", "%s, a directory as line %d shows, also matches what merely begins alike, such as %s",
				e.Value, entries[i].Number, e.core+"-other")
		}
	}
}

// caseVariants remarks on rules of one kind that differ only in case (RT313). Paths are case-sensitive (RFC 9309
// §2.2.2), and on servers that are not, a site needs both: so this is no mistake, but a reason to look.
func (f *checker) caseVariants(rules []*model.Line) {
	seen := map[string]*model.Line{}
	for _, r := range rules {
		key := r.Kind + strings.ToLower(r.Value)
		if was := seen[key]; was == nil {
			seen[key] = r
		} else if was.Value != r.Value {
			f.once("RT313", r, r.ValueAt, "", "%s differs only in case from line %d", r.Value, was.Number)
		}
	}
}

// enumeration is how many files of one directory are worth a rule for the directory. The articles on the classic
// mistakes show three.
const enumeration = 3

// enumerations reports directories of which several files are listed (RT010). Files of the root are no directory that
// could be closed instead.
func (f *checker) enumerations(rules []*model.Line) {
	listed := map[string][]*model.Line{}
	closed := map[string]bool{"": true} // a rule that closes the directory already makes the list superfluous (RT311)
	for _, r := range rules {
		dir := documentIn(r)
		listed[dir] = append(listed[dir], r)
		closed[r.Value] = closed[r.Value] || r.Kind == model.Disallow
	}
	for _, r := range rules {
		dir := documentIn(r)
		if d := listed[dir]; d[0] == r && len(d) >= enumeration && !closed[dir] {
			f.value("RT010", d[0], "%v list files of %s one by one, the last in line %d", // where the author may want to see it end
				model.Count(len(d), "rule"), dir, d[len(d)-1].Number)
		}
	}
}

// documentIn returns the directory of the file that r disallows, "" if it names none. A wildcard or a query makes it
// something else. So does the name of a program: of those, bulletin boards close some in a directory and live by the
// others.
func documentIn(r *model.Line) string {
	slash, dot := strings.LastIndexByte(r.Value, '/'), strings.LastIndexByte(r.Value, '.')
	if r.Kind != model.Disallow || slash <= 0 || r.Value[0] != '/' || strings.ContainsAny(r.Value, "*?=") || dot < slash ||
		model.IsProgram(strings.ToLower(strings.TrimRight(r.Value[dot+1:], "$"))) {
		return ""
	}
	return r.Value[:slash+1]
}

// indexPages reports allow lines for a page that Google takes for its directory, too (RT315): its parser tries the rule
// once more as dir/$. No other reader is known to, so to them the directory may be closed.
func (f *checker) indexPages(rules []*model.Line) {
	var pages []*model.Line
	var dirs []string
	for _, r := range rules {
		i := strings.LastIndexByte(r.Value, '/')
		if r.Kind == model.Allow && r.Matches() && strings.HasPrefix(r.Value[i+1:], "index.htm") && f.mayAsk() {
			pages, dirs = append(pages, r), append(dirs, r.Value[:i+1]+"$")
		}
	}
	open := opened(rules, dirs)
	for i, r := range pages {
		said := slices.ContainsFunc(rules, func(o *model.Line) bool { return o.Kind == model.Allow && o.Value == dirs[i] })
		if !said && !slices.Contains(open, dirs[i]) {
			dir := strings.TrimSuffix(dirs[i], "$")
			f.add("RT315", r, r.ValueAt, r.Text+"\nAllow: "+dirs[i], "%s also allows %s, for Google only", r.Value, dir)
		}
	}
}
