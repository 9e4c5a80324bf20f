package lint

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// agentChecks checks user-agent lines and how they form groups.
func (f *checker) agentChecks() {
	for _, l := range f.Loose { // §2.2.2: rules outside a group are ignored; Yandex calls them an error
		// One line is missing, however many rules lack it. A rule that names a crawler is RT003.
		if l.Rule() && model.KnownAgent(l.Value) == "" {
			f.once("RT201", l, l.FieldAt(), "User-agent: *\n"+l.With(l.Value), "no user-agent line stands above this rule, so it binds no crawler")
		}
	}
	for i, g := range f.Groups {
		for _, a := range g.Agents {
			f.agent(a)
		}
		f.shape(g, i == len(f.Groups)-1)
	}
	f.repeated()
	f.lostStarRules()
	f.allowlistGap()
}

// agent checks the value of one user-agent line. RFC 9309 §2.2.1 gives product tokens letters, "-" and "_" alone.
// Readers differ in what they make of the rest: Google compares the leading run of such characters, Yandex and the
// robots of 1994 look for a substring, others compare the whole value.
func (f *checker) agent(l *model.Line) {
	name := model.AgentName(l)
	switch {
	case l.Value == "":
		f.add("RT005", l, l.ValueAt, "User-agent: *", "the user-agent line names no crawler")
	case l.Value[0] == '/':
		f.value("RT003", l, "%s is a path, not a crawler's name", l.Value)
	case name != "*":
		f.token(l, name, l.Value[:min(len(name), len(l.Value))])
	case l.Value != "*": // Google takes "* foo" for "*" and "*foo" for no crawler
		f.add("RT207", l, l.ValueAt, "User-agent: *", "what follows the * in %s is ignored by some readers, and by others the line", l.Value)
	}
}

// token checks the name of a crawler as it is written in l.
func (f *checker) token(l *model.Line, name, written string) {
	// The first slip says it all: what follows "Mozilla/5.0 (" is part of the version, and somewhere in it is the name.
	switch i := strings.IndexAny(l.Value, " \t,;/"); {
	case i < 0:
	case l.Value[i] != '/':
		f.add("RT207", l, l.ValueAt+i, eachAgent(l), "%s is not one product token: Google reads only the first word", l.Value)
		return
	case model.IsHeader(l.Value):
		f.once("RT206", l, l.ValueAt+i, "", "%s is a User-Agent header: most readers look for the product token %s in it, which may be another's",
			l.Value, written)
	default:
		token := ""
		if written != "" && !strings.ContainsAny(l.Value, model.Blanks) && !strings.Contains(l.Value, "://") {
			token = l.With(written)
		}
		f.add("RT206", l, l.ValueAt+i, token, "%s is more than the product token %s", l.Value, written)
	}
	if i := strings.IndexByte(l.Value, '*'); i >= 0 {
		replacement := ""
		if bare := strings.ReplaceAll(l.Value, "*", ""); policy.ProductToken(bare) != "" {
			replacement = l.With(bare)
		}
		f.add("RT209", l, l.ValueAt+i, replacement, "a * beside other characters in %s is no wildcard", l.Value)
	}
	// Of the name itself only: versions are RT206. One real file in ten has such a name, MJ12bot above all.
	if i := strings.IndexAny(written, "0123456789"); i >= 0 {
		f.once("RT208", l, l.ValueAt+i, "", "the product token %s has a digit, at which Google cuts it", written)
	}
	if use := model.Retired(name); use != "" {
		f.once("RT211", l, l.ValueAt, "", "%s is no longer used: %v", written, use)
	}
}

// eachAgent returns a user-agent line for each part of a list, "" if l is none. The first
// word of a name with blanks is another crawler's name, or the beginning of many.
func eachAgent(l *model.Line) string {
	parts := strings.FieldsFunc(l.Value, func(r rune) bool { return r == ',' || r == ';' })
	for i, part := range parts {
		if parts[i] = strings.Trim(part, model.Blanks); strings.ContainsAny(parts[i], model.Blanks) {
			return ""
		}
	}
	return eachLine(l, parts)
}

// shape checks how the lines of a group lie: blank lines inside it (RT203), other
// records between its user-agent lines (RT202), rules that are not there (RT012).
func (f *checker) shape(g *model.Group, last bool) {
	// The last group may be empty (RFC 9309 §2.1), but 1994 asks for a Disallow in each record, and an author who names
	// a crawler rarely means to open everything to it.
	if len(g.Rules) == 0 && last {
		a := g.Agents[len(g.Agents)-1]
		replacement := a.Text + "\nDisallow:"
		if strings.Contains(a.Value, ":") {
			replacement = "" // the rule may be there, in the same line
		}
		f.add("RT012", a, -1, replacement, "the group of %s has no allow or disallow line, so it allows everything", g.Agents[0].Value)
	}
	records := g.Records
	for i, a := range g.Agents[1:] {
		before, between := g.Agents[i], 0
		for between < len(records) && records[between].Number < a.Number {
			between++
		}
		// Lines that stand together share a group on purpose; a blank line shows that two groups were meant.
		if between > 0 {
			f.fused(before, records[:between], a)
		} else if a.AfterBlank {
			f.line("RT012", before, "%s has no rule before the blank line: it shares the group of %s, but for old readers its group is empty",
				before.Value, a.Value)
		}
		records = records[between:]
	}
	f.blankLines(g)
}

// fused reports two groups that are one because only records stand between them (RT202): another record must not end a
// group (§2.2.4). One file in 25 has this, mostly by a Crawl-delay that its author took for a rule. There is no text to
// replace the line by: an empty Disallow would open to the first crawler what the group closes to it now.
func (f *checker) fused(before *model.Line, between []*model.Line, a *model.Line) {
	preferences := ""
	if slices.ContainsFunc(between, func(r *model.Line) bool { return r.Kind == model.ContentUsage }) { // as package usage reads it
		preferences = "; what Content-Usage permits is for the names directly above it alone, what it refuses may bind both"
	}
	f.line("RT202", a, "%s in line %d has no rule of its own: it shares the group of %s, since %s in line %d does not end a group%v",
		before.Value, before.Number, a.Value, between[0].Field, between[0].Number, preferences)
}

// blankLines reports the first blank line between the user-agent lines and the rules, and the first between rules. To
// RFC 9309 and to Yandex's tester a blank line is nothing; to 1994, and to Yandex's help, it ends the group, and the
// rules below bind no crawler. A line that holds a comment is blank to no reader.
func (f *checker) blankLines(g *model.Group) {
	agent := g.Agents[len(g.Agents)-1]
	gaps := slices.DeleteFunc(slices.Clone(g.Rules), func(r *model.Line) bool { return !r.AfterBlank })
	if len(gaps) > 0 && gaps[0] == g.Rules[0] {
		f.line("RT203", gaps[0], "a blank line stands between User-agent: %s and its first rule: for old readers the group ends there, empty", agent.Value)
		gaps = gaps[1:]
	}
	if len(gaps) > 0 {
		f.line("RT203", gaps[0], "a blank line ends the group of %s here for old readers, and the rules below bind no crawler (%v in this group)",
			agent.Value, model.Count(len(gaps), "blank line"))
	}
}

// repeated reports product tokens that have several groups. RFC 9309 §2.2.1, Google and Yandex's tester merge them;
// Yandex's help calls several groups for * an error, and the robots of 1994 read the first alone. Files that a proxy
// prepends its own to look so.
func (f *checker) repeated() {
	first := map[string]*model.Line{}
	for _, g := range f.Groups {
		for _, a := range g.Agents {
			name := model.AgentName(a)
			was := first[name]
			switch {
			case name == "", model.IsHeader(a.Value): // which begins as those of other crawlers do
			case was == nil:
				first[name] = a
			case was.Group == g: // twice in one group does no harm
			case name == "*":
				f.once("RT204", a, -1, "", "line %d begins another group for *: most readers merge them, Yandex's help calls it an error, "+
					"and old ones never come to these rules", was.Number)
			default:
				f.once("RT205", a, -1, "", "another group for %s begins at line %d: most readers merge them, "+
					"old ones never come to these rules", a.Value[:min(len(name), len(a.Value))], was.Number)
			}
		}
	}
}

// lostStarRules reports named groups that leave open what * closes (RT210). Authors who allow one path, or write
// "Allow: /", believe that the rest stays closed. A group of an empty Disallow alone is how a site opens itself to one
// crawler on purpose: that is worth knowing, no more (RT214).
func (f *checker) lostStarRules() {
	var star []string
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			if g.Star != nil && r.Closes() && r.Matches() { // several groups for * are one (§2.2.1)
				star = append(star, model.Core(r.Value))
			}
		}
	}
	slices.Sort(star)
	star = slices.Compact(star)
	if _, everything := slices.BinarySearch(star, "/"); everything || len(star) == 0 {
		return // a group that is named at all is meant to differ from a closed site
	}
	asks := 0
	for _, a := range f.Audiences() {
		// Rules for a crawler that is gone need not be complete (RT211), nor those for one that
		// never reads the group for *.
		if a.Name == "*" || model.Retired(a.Name) != "" || model.IgnoresStar(a.Name) {
			continue
		}
		if asks += len(star); asks > maxLost {
			f.of("RT210").doubtful = true
			return
		}
		if lost := opened(a.Rules, star); len(lost) > 0 {
			id := "RT210"
			if isFreePass(a.Rules) {
				id = "RT214"
			}
			f.value(id, a.First, "the group for %s leaves open %d of %v that * closes, such as %s",
				a.First.Value, len(lost), model.Count(len(star), "path"), lost[0])
		}
	}
}

// maxLost bounds how often the groups of a file are asked about a path.
const maxLost = 1 << 18

// opened returns those of the patterns that a group with the rules does not close.
func opened(rules []*model.Line, patterns []string) []string {
	text := []byte("User-agent: *\n")
	for _, r := range rules {
		text = append(text, r.With(r.Value)+"\n"...)
	}
	group := policy.Parse(text).Group("*")
	return slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool {
		path, whole := strings.CutSuffix(pattern, "$")
		if !whole {
			path += "x" // what begins alike is closed, too
		}
		return !group.Decide(path).Allowed
	})
}

// isFreePass reports whether rules are empty Disallows alone.
func isFreePass(rules []*model.Line) bool {
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(r *model.Line) bool { return r.Kind == model.Allow || r.Closes() })
}

// forgotten are crawlers of search engines that lists of welcome crawlers often lack, as they came late. Applebot
// follows the group of Googlebot if it has none, but says so only in its own documentation. The tokens that stand for
// the training of models are not missed: a list that leaves them out keeps that out, too.
var forgotten = []string{"Applebot", "Amzn-SearchBot"}

// allowlistGap reports what a list of welcome crawlers forgot (RT213). A file that lets no crawler in is no such list.
func (f *checker) allowlistGap() {
	var star *model.Line
	missing := slices.Clone(forgotten)
	for _, g := range f.Groups {
		missing = slices.DeleteFunc(missing, func(name string) bool { return g.Names(strings.ToLower(name)) })
		if g.Blocked && star == nil {
			star = g.Star
		}
	}
	if star != nil && len(missing) > 0 && f.Welcomes() {
		f.line("RT213", star, "only named crawlers are let in, and not among them: %v", strings.Join(missing, ", "))
	}
}
