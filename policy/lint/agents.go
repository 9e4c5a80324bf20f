package lint

import (
	"strings"
	"unicode"
)

// shouting reports each field and each well-known product token in capitals
// (RT009), each spelling once: whoever shouts does so on every line. Names and
// fields match in any case (RFC 9309 §2.2.1), so this is style alone. Tokens that
// nobody knows are left alone: SISTRIX is a name.
func (f *file) shouting(l *line, seen map[string]bool) {
	word, at := l.field, strings.Index(l.text, l.field)
	usual := ""
	if l.kind == userAgent && capitals(l.value) {
		usual = knownAgent(agentName(l))
	}
	if usual != "" && usual != l.value {
		word, at = l.value, l.valueAt
	}
	if l.meant == "" || !capitals(word) || seen[word] {
		return
	}
	seen[word] = true
	replacement := l.with(l.value)
	if at == l.valueAt {
		replacement = l.with(usual)
	}
	f.add("RT009", l, at, replacement, "%s is written in capitals", quote(word))
}

// capitals tells words of at least four letters, all of them capitals.
func capitals(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsLower(r) {
			return false
		}
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters > 3
}

// agentChecks checks user-agent lines and how they form groups.
func (f *file) agentChecks() {
	for _, l := range f.loose { // §2.2.2: rules outside a group are ignored; Yandex calls them an error
		if l.rule() {
			f.add("RT201", l, -1, "User-agent: *\n"+l.with(l.value),
				"no user-agent line stands above this rule, so it binds no crawler")
		}
	}
	for i := range f.groups {
		g := &f.groups[i]
		for _, a := range g.agents {
			f.agent(a)
		}
		f.shape(g, i == len(f.groups)-1)
	}
	f.repeated()
	f.lostStarRules()
	f.allowlistGap()
}

// agent checks the value of one user-agent line. RFC 9309 §2.2.1 gives product
// tokens letters, "-" and "_" alone. Readers differ in what they make of the rest:
// Google compares the leading run of such characters, Yandex and the robots of 1994
// look for a substring, others compare the whole value.
func (f *file) agent(l *line) {
	name := agentName(l)
	written := l.value[:min(len(name), len(l.value))]
	switch {
	case l.value == "":
		f.add("RT005", l, -1, "User-agent: *", "the user-agent line names no crawler")
		return
	case l.value[0] == '/':
		f.add("RT003", l, l.valueAt, "Disallow: "+l.value,
			"%s is a path, not a crawler's name", quote(l.value))
		return
	case name == "*":
		if l.value != "*" { // Google takes "* foo" for "*" and "*foo" for no crawler
			f.add("RT207", l, l.valueAt, "User-agent: *",
				"what follows the * in %s is ignored by some readers, and by others the line", quote(l.value))
		}
		return
	}
	if i := strings.IndexAny(l.value, " \t,;"); i >= 0 {
		f.add("RT207", l, l.valueAt+i, l.eachAgent(),
			"%s is not one product token: Google reads only the first word", quote(l.value))
	}
	if i := strings.IndexByte(l.value, '/'); i >= 0 {
		f.add("RT206", l, l.valueAt+i, l.with(written),
			"%s is more than the product token %s", quote(l.value), quote(written))
	}
	if i := strings.IndexByte(l.value, '*'); i >= 0 {
		f.add("RT209", l, l.valueAt+i, l.with(strings.ReplaceAll(l.value, "*", "")),
			"a * beside other characters in %s is no wildcard", quote(l.value))
	}
	// Of the name itself only: versions are RT206. One real file in ten has such a
	// name, MJ12bot above all.
	if i := strings.IndexAny(written, "0123456789"); i >= 0 {
		f.add("RT208", l, l.valueAt+i, "",
			"the product token %s has a digit, at which Google cuts it", quote(written))
	}
	if use := retired(name); use != "" {
		f.add("RT211", l, l.valueAt, "", "%s is no longer used: %s", quote(written), use)
	}
}

// eachAgent returns a user-agent line for each part of a list, or one for the first
// word.
func (l *line) eachAgent() string {
	if !strings.ContainsAny(l.value, ",;") {
		word, _, _ := strings.Cut(l.value, " ")
		return l.with(word)
	}
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(l.value, func(r rune) bool { return r == ',' || r == ';' }) {
		if part = strings.Trim(part, blanks); part != "" && b.Len() <= maxSuggestion+1 {
			b.WriteString("\n" + l.with(part))
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// shape checks how the lines of a group lie: blank lines inside it (RT203), other
// records between its user-agent lines (RT202), rules that are not there (RT012).
func (f *file) shape(g *group, last bool) {
	// The last group may be empty (RFC 9309 §2.1), but 1994 asks for a Disallow in
	// each record, and an author who names a crawler rarely means to open
	// everything to it.
	if len(g.rules) == 0 && last {
		a := g.agents[len(g.agents)-1]
		f.add("RT012", a, -1, a.text+"\nDisallow:",
			"the group of %s has no allow or disallow line, so it allows everything", quote(g.agents[0].value))
	}
	record := 0 // the first of g.records that may lie after the current agent
	for i := 1; i < len(g.agents); i++ {
		before, a := g.agents[i-1], g.agents[i]
		for record < len(g.records) && g.records[record].number < before.number {
			record++
		}
		// §2.2.4: another record must not end a group, so the two lines share what
		// follows. One file in 25 has this, mostly by a Crawl-delay that its author
		// took for a rule.
		var between *line
		if record < len(g.records) && g.records[record].number < a.number {
			between = g.records[record]
			f.add("RT202", a, -1, "Disallow:\n"+a.text,
				"%s in line %d has no rule of its own: it shares the group of %s, since %s in line %d does not end a group",
				quote(before.value), before.number, quote(a.value), quote(between.field), between.number)
		}
		// Lines that stand together share a group on purpose; a blank line shows
		// that two groups were meant.
		if a.afterBlank || between != nil && between.afterBlank {
			f.add("RT012", before, -1, before.text+"\nDisallow:",
				"%s has no rule before the next user-agent line, so it shares the group of %s",
				quote(before.value), quote(a.value))
		}
	}
	f.blankLines(g)
}

// blankLines reports the first blank line between the user-agent lines and the
// rules, and the first between rules. To RFC 9309 a blank line is nothing; to
// Yandex and to 1994 it ends the group, and the rules below bind no crawler. A line
// that holds a comment is blank to no reader.
func (f *file) blankLines(g *group) {
	var inside *line
	gaps := 0
	agent := g.agents[len(g.agents)-1]
	for i, r := range g.rules {
		switch {
		case i == 0 && r.afterBlank:
			f.add("RT203", r, -1, "",
				"a blank line stands between User-agent: %s and its first rule", quote(agent.value))
		case r.afterBlank:
			if gaps++; inside == nil {
				inside = r
			}
		}
	}
	if inside != nil {
		f.add("RT203", inside, -1, "",
			"%s among the rules of %s, the first of them above this rule", count(gaps, "blank line"), quote(agent.value))
	}
}

// repeated reports product tokens that have several groups. RFC 9309 §2.2.1 and
// Google merge them; Yandex calls several groups for * an error, and the robots of
// 1994 read the first alone. Files that a proxy prepends its own to look so.
func (f *file) repeated() {
	type seen struct{ group, line int }
	first := map[string]seen{}
	for i := range f.groups {
		for _, a := range f.groups[i].agents {
			name := agentName(a)
			was, ok := first[name]
			switch {
			case name == "":
			case !ok:
				first[name] = seen{i, a.number}
			case was.group == i: // twice in one group does no harm
			case name == "*":
				f.add("RT204", a, -1, "",
					"there is another group for * at line %d: most readers merge them, Yandex reports an error",
					was.line)
			default:
				f.add("RT205", a, -1, "",
					"there is another group for %s at line %d: most readers merge them, others read the first only",
					quote(a.value), was.line)
			}
		}
	}
}
