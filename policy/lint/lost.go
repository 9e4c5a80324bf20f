package lint

import (
	"slices"
	"sort"
	"strings"
)

// lostStarRules reports named groups that close something, yet leave open what *
// closes (RT210). A group that closes nothing at all is taken for a free pass that
// was meant.
func (f *file) lostStarRules() {
	var star []string
	for i := range f.groups {
		if g := &f.groups[i]; g.star != nil { // several of them are one (§2.2.1)
			star = append(star, closed(g.rules)...)
		}
	}
	slices.Sort(star)
	star = slices.Compact(star)
	if _, everything := slices.BinarySearch(star, "/"); everything || len(star) == 0 {
		return // a group that is named at all is meant to differ from a closed site
	}
	for _, a := range f.audiences() {
		own := closed(a.rules)
		if a.name == "*" || len(own) == 0 {
			continue
		}
		if lost, example := lostFrom(star, own); lost > 0 {
			f.add("RT210", a.first, a.first.valueAt, "",
				"the group for %s leaves open %d of the %d paths that * closes, such as %s",
				quote(a.first.value), lost, len(star), quote(example))
		}
	}
}

// closed returns the cores of what the rules disallow.
func closed(rules []*line) []string {
	var cores []string
	for _, r := range rules {
		if r.kind == disallow && r.value != "" {
			cores = append(cores, core(r.value))
		}
	}
	return cores
}

// lostFrom returns how many of the sorted patterns of star no pattern of own
// covers, and the first of them.
func lostFrom(star, own []string) (lost int, example string) {
	// Each pattern of own covers a span of the sorted star, found by two binary
	// searches; what no span holds is lost. Comparing each with each would take
	// seconds for the files that list thousands of crawlers.
	type span struct{ from, to int }
	var spans []span
	for _, p := range own {
		from := sort.SearchStrings(star, p)
		to := from
		switch {
		case !plain(p): // covers at least itself
			if from < len(star) && star[from] == p {
				to++
			}
		case p == "/":
			return 0, ""
		default: // what begins with p stands together
			to += sort.Search(len(star)-from, func(i int) bool { return !strings.HasPrefix(star[from+i], p) })
		}
		spans = append(spans, span{from, to})
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	end, first := 0, -1
	for _, s := range append(spans, span{len(star), len(star)}) {
		if s.from > end {
			lost += s.from - end
			if first < 0 {
				first = end
			}
		}
		end = max(end, s.to)
	}
	if first >= 0 {
		example = star[first]
	}
	return lost, example
}

// forgotten are product tokens that lists of welcome crawlers often lack: those
// that came late, and those that fetch nothing and so show up in no log. Applebot
// follows the group of Googlebot if it has none, but says so only in its own
// documentation.
var forgotten = [...]string{"Applebot", "Applebot-Extended", "Amzn-SearchBot", "Google-Extended"}

// allowlistGap reports what a list of welcome crawlers forgot (RT213). A file that
// lets no crawler in is no such list.
func (f *file) allowlistGap() {
	named := map[string]bool{}
	var star *line
	welcome := false
	for i := range f.groups {
		g := &f.groups[i]
		for _, a := range g.agents {
			name := agentName(a)
			named[name] = true
			switch {
			case name == "*" && g.blocked && star == nil:
				star = a
			case name != "*" && !g.blocked && len(g.rules) > 0:
				welcome = true
			}
		}
	}
	if star == nil || !welcome {
		return
	}
	var missing []string
	for _, name := range forgotten {
		if !named[strings.ToLower(name)] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		f.add("RT213", star, -1, "User-agent: "+strings.Join(missing, "\nUser-agent: ")+"\nDisallow:\n\n"+star.text,
			"only named crawlers are let in, and %s are not named", strings.Join(missing, ", "))
	}
}
