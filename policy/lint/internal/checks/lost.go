package checks

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// lostStarRules reports named groups that leave open what * closes (RT210). Who allows one path, or writes "Allow: /",
// believes that the rest stays closed. A group of an empty Disallow alone is how a site opens itself to one crawler on
// purpose: that is worth knowing, no more (RT214).
func (f *checker) lostStarRules() {
	var star []string
	for _, g := range f.Groups {
		if g.Star != nil { // several of them are one (§2.2.1)
			// What matches no path closes nothing, so nothing of it can be lost.
			matching := slices.DeleteFunc(slices.Clone(g.Rules), func(r *model.Line) bool { return !r.Matches() })
			star = append(star, model.Closed(matching)...)
		}
	}
	slices.Sort(star)
	star = slices.Compact(star)
	if _, everything := slices.BinarySearch(star, "/"); everything || len(star) == 0 {
		return // a group that is named at all is meant to differ from a closed site
	}
	for _, a := range f.Audiences() {
		own := model.Closed(a.Rules)
		// Rules for a crawler that is gone need not be complete (RT211), nor those for one that
		// never reads the group for *.
		if a.Name == "*" || model.Retired(a.Name) != "" || model.IgnoresStar(a.Name) {
			continue
		}
		if lost, example := lostFrom(star, own); lost > 0 {
			id := "RT210"
			if isFreePass(a.Rules) {
				id = "RT214"
			}
			f.add(id, a.First, a.First.ValueAt, "",
				"the group for %s leaves open %d of %v that * closes, such as %s",
				a.First.Value, lost, chars.Count(len(star), "path"), example)
		}
	}
}

// isFreePass reports whether rules are empty Disallows alone.
func isFreePass(rules []*model.Line) bool {
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(r *model.Line) bool { return r.Kind != model.Disallow || r.Value != "" })
}

// lostFrom returns how many of the sorted patterns of star no pattern of own
// covers, and the first of them.
func lostFrom(star, own []string) (lost int, example string) {
	// Each pattern of own covers a span of the sorted star, found by two binary
	// searches; what no span holds is lost. Comparing each with each would take
	// seconds for the files that list thousands of crawlers.
	spans := make([]int, len(star)+1) // how many begin at a place, less those that end there
	for _, p := range own {
		from := sort.SearchStrings(star, p)
		to := from
		switch {
		case !model.Plain(p): // covers at least itself
			if from < len(star) && star[from] == p {
				to++
			}
		case p == "/":
			return 0, ""
		default: // what begins with p stands together
			to += sort.Search(len(star)-from, func(i int) bool { return !strings.HasPrefix(star[from+i], p) })
		}
		spans[from]++
		spans[to]--
	}
	covering := 0
	for i, p := range star {
		if covering += spans[i]; covering == 0 {
			example = cmp.Or(example, p)
			lost++
		}
	}
	return lost, example
}

// forgotten are crawlers of search engines that lists of welcome crawlers often lack, as
// they came late. Applebot follows the group of Googlebot if it has none, but says so only in
// its own documentation. The tokens that stand for the training of models are not missed: a
// list that leaves them out keeps that out, too.
var forgotten = [...]string{"Applebot", "Amzn-SearchBot"}

// allowlistGap reports what a list of welcome crawlers forgot (RT213). A file that
// lets no crawler in is no such list.
func (f *checker) allowlistGap() {
	named := map[string]bool{}
	var star *model.Line
	for _, g := range f.Groups {
		for _, a := range g.Agents {
			named[model.AgentName(a)] = true
		}
		if g.Blocked && star == nil {
			star = g.Star
		}
	}
	if star == nil || !f.Welcomes() {
		return
	}
	var missing []string
	for _, name := range forgotten {
		if !named[strings.ToLower(name)] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		f.add("RT213", star, -1, "", "only named crawlers are let in, and not among them: %v", strings.Join(missing, ", "))
	}
}
