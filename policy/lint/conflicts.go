package lint

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// entry is a rule among those of one product token.
type entry struct {
	*line
	core  string // pattern without wildcards at its end
	plain bool   // core matches what begins with it, and nothing else
	loses bool   // to a rule of the other kind that matches the same
}

// literal tells a pattern that readers without wildcards understand as it is meant.
// Those are the readers that take the first match; what they cannot read is no
// better for standing first.
func (e *entry) literal() bool { return e.plain && e.value == e.core }

// conflictChecks compares the rules for each product token with one another.
func (f *file) conflictChecks() {
	for _, a := range f.audiences() {
		entries := sortedEntries(a.rules)
		entries = f.equals(entries)
		f.covered(entries)
		f.surprises(entries)
		f.caseVariants(a.rules)
		f.enumerations(a.rules)
	}
}

// sortedEntries sorts the rules that have a path so that a plain pattern stands
// before all that it covers.
func sortedEntries(rules []*line) []entry {
	var entries []entry
	for _, r := range rules {
		if r.value == "" {
			continue
		}
		c := core(r.value)
		entries = append(entries, entry{line: r, core: c, plain: plain(c)})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.core, b.core), cmp.Compare(a.number, b.number))
	})
	return entries
}

// plain tells a pattern that is a prefix and no more, for which "covers" is
// strings.HasPrefix. Covering among patterns with wildcards inside is not looked
// for: it is rare, costly to decide, and a miss only leaves a rule unreported.
func plain(pattern string) bool {
	return !strings.Contains(pattern, "*") && !strings.HasSuffix(pattern, "$")
}

// equals reports the rules that match the same paths (RT310, RT311, RT015), and
// returns the entries without the duplicates.
func (f *file) equals(entries []entry) []entry {
	kept := entries[:0] // never ahead of what is still to be read
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].core == entries[0].core {
			n++
		}
		same := entries[:n]
		entries = entries[n:]
		kept = f.equal(same, kept)
	}
	return kept
}

// equal judges rules whose cores are equal. Of each kind only the longest counts.
func (f *file) equal(same, kept []entry) []entry {
	var best [2]*line // disallow, allow
	for _, e := range same {
		b := &best[kindIndex(e.line)]
		if *b == nil || len(e.value) > len((*b).value) {
			*b = e.line
		}
	}
	for _, e := range same {
		mine, other := best[kindIndex(e.line)], best[1-kindIndex(e.line)]
		switch {
		case e.line != mine && e.value == mine.value: // RFC 9309 §2.2.2 lets crawlers drop duplicates
			f.add("RT310", e.line, e.valueAt, "", "line %d is the same rule", mine.number)
			continue
		case e.line != mine: // "/fish" beside "/fish*"
			f.add("RT311", e.line, e.valueAt, "",
				"%s in line %d matches the same paths", quote(mine.value), mine.number)
			continue
		case other == nil:
		case len(other.value) > len(e.value): // wildcards at the end count as octets: "/fish*" beats "/fish"
			e.loses = true
			f.add("RT015", e.line, e.valueAt, "",
				"%s can never win: %s in line %d matches the same paths and is longer",
				quote(e.value), quote(other.text), other.number)
		case len(other.value) == len(e.value) && e.kind == disallow: // "allow" should win (§2.2.2)
			e.loses = true
			f.add("RT015", e.line, e.valueAt, "",
				"%s can never win: line %d allows the same, and allow wins a tie", quote(e.value), other.number)
		}
		kept = append(kept, e)
	}
	return kept
}

// kindIndex is 0 for disallow and 1 for allow.
func kindIndex(l *line) int {
	if l.kind == allow {
		return 1
	}
	return 0
}

// cover is a plain rule on the way from the shortest to the one at hand, each
// beginning with the one before.
type cover struct {
	*entry
	earliest [2]*line // the first in the file of each kind on the way here
}

// covered walks the sorted rules and keeps on a stack those that cover the one at
// hand, as a walk through a tree does. It reports what is shadowed (RT311) and what
// depends on the order (RT312). Each rule is pushed and popped once, so that 40,000
// rules are no more than a sort.
func (f *file) covered(entries []entry) {
	lengths := lengthsOf(entries)
	hidden := hidings{}
	var path []cover
	for i := range entries {
		e := &entries[i]
		for len(path) > 0 && !strings.HasPrefix(e.core, path[len(path)-1].core) {
			path = path[:len(path)-1]
		}
		var earliest [2]*line
		if len(path) > 0 {
			earliest = path[len(path)-1].earliest
			top := winner(path)
			if top.kind == e.kind && !e.loses && top.core != e.core && !lengths.rival(e, len(top.value)) {
				f.add("RT311", e.line, e.valueAt, "",
					"%s in line %d already covers %s", quote(top.value), top.number, quote(e.value))
			}
			hidden.note(e, earliest)
		}
		if !e.plain {
			continue // covers nothing that could be told by its beginning
		}
		k := kindIndex(e.line)
		if e.literal() && (earliest[k] == nil || e.number < earliest[k].number) {
			earliest[k] = e.line
		}
		path = append(path, cover{entry: e, earliest: earliest})
	}
	f.hidden(hidden)
}

// winner returns the last of the path that has not lost to its neighbour of the
// same core.
func winner(path []cover) cover {
	for i := len(path) - 1; i > 0; i-- {
		if !path[i].loses {
			return path[i]
		}
	}
	return path[0]
}

// hidings are the rules that a first-match reader stops at, with what it then never
// comes to.
type hidings map[*line]*hiding

type hiding struct {
	first *line
	count int
}

// note counts e among what is hidden if, of all rules that match its path, the first
// in the file is of the other kind: the author wrote the exception below what it is
// an exception from, or an Allow: / at the top.
func (h hidings) note(e *entry, earliest [2]*line) {
	k := kindIndex(e.line)
	hider, same := earliest[1-k], earliest[k]
	if hider == nil || !e.literal() || hider.number > e.number || hider.value == e.value ||
		same != nil && same.number < hider.number {
		return
	}
	at := h[hider]
	if at == nil {
		at = &hiding{first: e.line}
		h[hider] = at
	}
	at.count++
	if e.number < at.first.number {
		at.first = e.line
	}
}

// hidden reports each hiding rule once. A single rule behind it is what has to
// move; several are named by their number, since an Allow: / at the top of a long
// group would fill the list.
func (f *file) hidden(hidings hidings) {
	order := slices.SortedFunc(maps.Keys(hidings), func(a, b *line) int {
		return cmp.Compare(a.number, b.number)
	})
	for _, hider := range order {
		h := hidings[hider]
		if h.count == 1 {
			f.add("RT312", h.first, h.first.valueAt, "",
				"readers that take the first match stop at %s in line %d and never come to this rule: put it first",
				quote(hider.text), hider.number)
			continue
		}
		f.add("RT312", hider, hider.valueAt, "",
			"readers that take the first match stop here and never come to %s below, such as line %d",
			count(h.count, "rule"), h.first.number)
	}
}

// spelt tells a pattern that may match what another one matches only if both are spelt
// alike: no wildcards, and no escapes, which are one with what they stand for to some
// readers (RFC 9309 §2.2.2) and not to others.
func (e *entry) spelt() bool { return e.literal() && !strings.Contains(e.value, "%") }

// lengths are the sorted lengths of the patterns of each kind: of those with
// wildcards or escapes, and of all.
type lengths struct{ other, all [2][]int }

func lengthsOf(entries []entry) *lengths {
	var n lengths
	for _, e := range entries {
		k := kindIndex(e.line)
		n.all[k] = append(n.all[k], len(e.value))
		if !e.spelt() {
			n.other[k] = append(n.other[k], len(e.value))
		}
	}
	for k := range 2 {
		slices.Sort(n.all[k])
		slices.Sort(n.other[k])
	}
	return &n
}

// rival tells whether a rule of the other kind may be as long as top, which covers
// e, or longer, and yet no longer than e. It may match some of what e matches, and
// then it loses to e and wins over top: both are needed. If neither has wildcards or
// escapes it need not be looked for: it would begin as e does, and lie between top and
// e on the stack.
func (n *lengths) rival(e *entry, top int) bool {
	sorted := n.all
	if e.spelt() {
		sorted = n.other
	}
	others := sorted[1-kindIndex(e.line)]
	i, _ := slices.BinarySearch(others, top)
	return i < len(others) && others[i] <= len(e.value)
}

// surprises reports directories without their slash, where another rule shows that
// they are directories (RT314).
func (f *file) surprises(entries []entry) {
	for _, e := range entries {
		// A star at the end says that the author means what begins alike; a dot
		// makes it a file, a query something else.
		name := strings.TrimPrefix(tail(e.core), "/")
		if e.kind != disallow || !e.literal() || name == "" || strings.ContainsAny(name, ".?=&") {
			continue
		}
		// What begins with the directory stands together, though not next to e:
		// "/fish-soup" sorts before "/fish/".
		dir := e.core + "/"
		i, _ := slices.BinarySearchFunc(entries, dir, func(e entry, dir string) int {
			return cmp.Compare(e.core, dir)
		})
		if i < len(entries) && strings.HasPrefix(entries[i].core, dir) {
			f.add("RT314", e.line, e.valueAt, e.with(dir),
				"%s, a directory as line %d shows, also matches what merely begins alike, such as %s",
				quote(e.value), entries[i].number, quote(tail(e.core)+"-other"))
		}
	}
}

// tail returns the end of a path, from its last slash.
func tail(path string) string { return path[max(0, strings.LastIndexByte(path, '/')):] }

// caseVariants reports rules of one kind that differ only in case (RT313). Paths
// are case-sensitive (RFC 9309 §2.2.2), so both may be right; mostly one is there
// because no crawler knew which.
func (f *file) caseVariants(rules []*line) {
	seen := map[string]*line{}
	for _, r := range rules {
		if r.value == "" {
			continue
		}
		key := r.kind + strings.ToLower(r.value)
		was, ok := seen[key]
		if !ok {
			seen[key] = r
		} else if was.value != r.value {
			f.add("RT313", r, r.valueAt, "",
				"%s differs only in case from line %d", quote(r.value), was.number)
		}
	}
}

const enumeration = 5 // files of one directory that are worth a directory rule

// enumerations reports directories of which many files are listed (RT010). Files of
// the root are no directory that could be closed instead.
func (f *file) enumerations(rules []*line) {
	type files struct {
		first *line
		count int
	}
	listed := map[string]*files{}
	var order []string
	for _, r := range rules {
		slash := strings.LastIndexByte(r.value, '/')
		// A dot in the last element makes it a file; a wildcard or a query makes it
		// something else.
		if r.kind != disallow || slash <= 0 || r.value[0] != '/' ||
			strings.ContainsAny(r.value, "*?=") || !strings.Contains(r.value[slash:], ".") {
			continue
		}
		dir := r.value[:slash+1]
		d := listed[dir]
		if d == nil {
			d = &files{first: r}
			listed[dir] = d
			order = append(order, dir)
		}
		d.count++
	}
	for _, dir := range order {
		if d := listed[dir]; d.count >= enumeration {
			f.add("RT010", d.first, d.first.valueAt, "",
				"%s list files of %s one by one", count(d.count, "rule"), quote(dir))
		}
	}
}
