package checks

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// preferenceChecks checks what the file says about use by AI: Content-Usage
// (draft-ietf-aipref-attach), Content-Signal and License (RSL 1.0).
func (f *checker) preferenceChecks() {
	c := &preferences{checker: f, drafts: map[string]bool{}}
	for _, l := range f.Loose {
		c.record(l, nil)
	}
	for i := range f.Groups {
		g := &f.Groups[i]
		c.usages = map[usage]*model.Line{}
		c.signals = nil
		for _, r := range g.Records {
			c.record(r, g)
		}
		c.groupSignals(g)
	}
	c.starOnly()
	c.disagreements()
}

// preferences is what has been said so far.
type preferences struct {
	*checker
	policy    *policy.Policy // parsed when first needed
	drafts    map[string]bool
	usages    map[usage]*model.Line // of the group at hand: the line that said so
	signals   []signal              // of the group at hand
	said      map[string]signal     // by key: the first of any group
	train     [2]*model.Line        // the first line that refuses training (0) and that grants it (1)
	entered   *model.Group          // that the next three are of
	decider   policy.Group
	allowed   []string    // paths of its allow lines, sorted
	wildAllow bool        // one of them has a wildcard
	star      *model.Line // a signal for *
	silent    *model.Line // a named group that closes not everything and has no signal
}

// usage is a label for a path.
type usage struct{ path, label, value string }

// signal is one key of a Content-Signal.
type signal struct {
	key, value string
	line       *model.Line
}

// record checks a line of group g, nil before the first group. What is a draft is
// said once for each field (RT510), whatever else is right or wrong about it.
func (c *preferences) record(l *model.Line, g *model.Group) {
	switch l.Kind {
	case model.ContentUsage:
		c.contentUsage(l, g)
	case model.ContentSignal:
		c.contentSignal(l)
	case model.License:
		if !chars.AbsoluteURL(l.Value) {
			c.add("RT508", l, l.ValueAt, "",
				"%s is not an absolute URL, so the licence is not found", chars.Quote(l.Value))
		}
	}
	switch l.Kind {
	case model.ContentUsage, model.ContentSignal, model.LLMPolicy, model.DisallowAI, model.AllowAI, model.AgentPurpose:
		if !c.drafts[l.Kind] {
			c.drafts[l.Kind] = true
			c.add("RT510", l, -1, "",
				"%s comes from a draft or a convention, not from a standard", model.FieldName(l.Kind))
		}
	}
}

// contentUsage checks a value of the form [path] label=y, label=n. Whatever does
// not begin with a slash belongs to the dictionary (RT502 is the trap in that), and
// a dictionary that does not parse says nothing at all.
func (c *preferences) contentUsage(l *model.Line, g *model.Group) {
	path, dictionary := "", l.Value
	word, rest, ok := chars.CutWord(l.Value)
	switch {
	case strings.HasPrefix(l.Value, "/"):
		path, dictionary = word, rest
	case ok && !strings.Contains(word, "=") && strings.Contains(rest, "="):
		c.add("RT502", l, l.ValueAt, l.With("/"+l.Value),
			"%s does not begin with a slash, so it is no path and the preference does not parse", chars.Quote(word))
		return
	}
	if strings.Trim(dictionary, chars.Blanks) == "" {
		c.add("RT501", l, l.ValueAt, "", "%s states no preference", chars.Quote(l.Value))
		return
	}
	for _, member := range members(dictionary) {
		c.usage(l, path, member)
	}
	c.onDisallowed(l, g, path)
}

// usage checks one member of the dictionary (RFC 9651 §3.2; parameters are
// ignored).
func (c *preferences) usage(l *model.Line, path, member string) {
	item, _, _ := strings.Cut(member, ";")
	label, value, _ := strings.Cut(item, "=")
	label = strings.Trim(label, chars.Blanks)
	value = strings.Trim(value, chars.Blanks)
	switch {
	// One member that does not parse voids the line, not only itself (RFC 9651 §4.2).
	case !validKey(label):
		c.add("RT501", l, l.ValueAt, "",
			"%s is no key of a structured field (lower case, no blanks), so the whole line is void", chars.Quote(label))
		return
	// Anything else, a bare label (which is "true") among it, means "unknown".
	case value != "y" && value != "n":
		c.add("RT501", l, l.ValueAt, c.yesNo(l, label, value),
			"the value %s of %s is neither y nor n, so the preference is unknown",
			chars.Quote(value), chars.Quote(label))
		return
	}
	c.label(l, label)
	if c.usages == nil {
		return // before any group, where it is for no crawler
	}
	// Statements for one path are combined, and any "n" among them is stronger: the
	// opposite of allow and disallow.
	if path == "" {
		path = "/" // no path is the whole site
	}
	opposite := usage{path, label, "n"}
	if value == "n" {
		opposite.value = "y"
	}
	if was, ok := c.usages[opposite]; ok {
		c.add("RT505", l, l.ValueAt, "",
			"%s=%s contradicts line %d for the same path: n wins", label, value, was.Number)
	}
	c.usages[usage{path, label, value}] = l
	if label == "train-ai" && path == "/" {
		c.trains(l, value == "y")
	}
}

// label checks a label against the vocabulary of the draft.
func (c *preferences) label(l *model.Line, label string) {
	switch label {
	case "train-ai", "ai-use", "search":
	// From vocab-00 to vocab-04; copied from articles of that time.
	case "tdm", "ai", "genai", "train-genai", "inference", "all", "bots", "ai-output":
		c.add("RT503", l, l.ValueAt, "", "the label %s was dropped from the draft", chars.Quote(label))
	default:
		c.add("RT503", l, l.ValueAt, "", "the label %s is unknown", chars.Quote(label))
	}
}

// yesNo returns the line with yes and no as y and n, "" if that is not what it has.
func (c *preferences) yesNo(l *model.Line, label, value string) string {
	switch strings.ToLower(strings.Trim(value, `"`)) {
	case "yes", "y", "allow", "true", "?1":
		return strings.Replace(l.Text[:l.CommentAt], label+"="+value, label+"=y", 1)
	case "no", "n", "disallow", "false", "?0":
		return strings.Replace(l.Text[:l.CommentAt], label+"="+value, label+"=n", 1)
	}
	return ""
}

// members splits a dictionary at its commas, of which those in quotation marks and
// parentheses are none.
func members(s string) []string {
	var all []string
	start, depth, quoted := 0, 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			all = append(all, s[start:i])
			start = i + 1
		}
	}
	return append(all, s[start:])
}

// validKey tells a key of RFC 9651 §3.1.2.
func validKey(s string) bool {
	return s != "" && strings.IndexByte(chars.Letters+"*", s[0]) >= 0 &&
		strings.Trim(s, chars.Letters+"0123456789_-.*") == ""
}

// onDisallowed reports preferences for what may not be crawled (RT504): they attach
// only to what is acquired. A path with wildcards, and one of which a part is
// allowed, are left alone.
func (c *preferences) onDisallowed(l *model.Line, g *model.Group, path string) {
	if g == nil || strings.ContainsAny(path, "*$") {
		return
	}
	if path == "" {
		path = "/"
	}
	c.enter(g)
	i, _ := slices.BinarySearch(c.allowed, path)
	if c.wildAllow || i < len(c.allowed) && strings.HasPrefix(c.allowed[i], path) {
		return // a part is open, or may be
	}
	if d := c.decider.Decide(path); !d.Allowed {
		c.add("RT504", l, l.ValueAt, "",
			"%s is disallowed by line %d, so nothing is collected that the preference could apply to",
			chars.Quote(path), d.Rule.Line)
	}
}

// enter makes g the group whose rules onDisallowed asks.
func (c *preferences) enter(g *model.Group) {
	if c.entered == g {
		return
	}
	c.entered, c.allowed, c.wildAllow = g, nil, false
	for _, r := range g.Rules {
		if r.Kind == model.Allow {
			c.allowed = append(c.allowed, r.Value)
			c.wildAllow = c.wildAllow || strings.Contains(r.Value, "*")
		}
	}
	slices.Sort(c.allowed)
	if c.policy == nil {
		c.policy = policy.Parse([]byte(c.Text))
	}
	c.decider = c.policy.Group(model.AgentName(g.Agents[0]))
}

// contentSignal checks a value of the form search=yes, ai-train=no (RT506). There
// is no path in it.
func (c *preferences) contentSignal(l *model.Line) {
	// A key without a value, "ai_train", "true": each is as if it were not there, which
	// neither grants nor refuses anything.
	for member := range strings.SplitSeq(l.Value, ",") {
		key, value, _ := strings.Cut(member, "=")
		key, value = strings.Trim(key, chars.Blanks), strings.Trim(value, chars.Blanks)
		switch key {
		case "search", "ai-input", "ai-train":
			if value != "yes" && value != "no" {
				c.add("RT506", l, l.ValueAt, "",
					"the value %s of %s is neither yes nor no", chars.Quote(value), key)
				continue
			}
		case "use":
			if value != "immediate" && value != "reference" && value != "full" {
				c.add("RT506", l, l.ValueAt, "",
					"the value %s of use is none of immediate, reference, full", chars.Quote(value))
				continue
			}
		default:
			c.add("RT506", l, l.ValueAt, "", "%s is no key of a content signal", chars.Quote(key))
			continue
		}
		c.signals = append(c.signals, signal{key, value, l})
		if key == "ai-train" {
			c.trains(l, value == "yes")
		}
	}
}

// trains notes the first line that grants training and the first that refuses it.
func (c *preferences) trains(l *model.Line, yes bool) {
	at := &c.train[0]
	if yes {
		at = &c.train[1]
	}
	if *at == nil {
		*at = l
	}
}

// groupSignals compares the signals of a group with its rules and with those of
// other groups (RT507). Nothing published says whether a signal holds for its group
// or for the site, so only equal ones are safe.
func (c *preferences) groupSignals(g *model.Group) {
	if c.said == nil {
		c.said = map[string]signal{}
	}
	for _, s := range c.signals {
		// What may not be crawled cannot be indexed: the signal grants nothing.
		if g.Blocked && s.key == "search" && s.value == "yes" {
			c.add("RT507", s.line, s.line.ValueAt, "",
				"search=yes stands in a group that closes the whole site")
		}
		if was, ok := c.said[s.key]; !ok {
			c.said[s.key] = s
		} else if was.value != s.value {
			c.add("RT507", s.line, s.line.ValueAt, "",
				"%s=%s differs from %s in line %d: readers disagree on which of them holds",
				s.key, s.value, was.value, was.line.Number)
		}
	}
	switch {
	case len(c.signals) > 0:
		if g.Star != nil && c.star == nil {
			c.star = c.signals[0].line
		}
	case c.silent == nil && !g.Blocked && g.Star == nil:
		c.silent = g.Agents[0]
	}
}

// starOnly reports signals that crawlers with a group of their own may not see. A
// group that closes the site needs none, as in the files that a proxy manages,
// where * has the signal and each training crawler is shut out.
func (c *preferences) starOnly() {
	if c.star != nil && c.silent != nil {
		c.add("RT507", c.star, -1, "",
			"the group for %s in line %d has no content signal, and some readers do not fall back to this one",
			chars.Quote(c.silent.Value), c.silent.Number)
	}
}

// disagreements compares the statements on training in their several notations
// (RT509). A crawler that is shut out in part, or let in in part, agrees with
// everything: only the whole site counts.
func (c *preferences) disagreements() {
	refused, granted := c.train[0], c.train[1]
	// Within one notation it is RT505 or RT507.
	if refused != nil && granted != nil && refused.Kind != granted.Kind {
		c.add("RT509", granted, granted.ValueAt, "",
			"%s grants the training of models, and %s in line %d refuses it",
			model.FieldName(granted.Kind), model.FieldName(refused.Kind), refused.Number)
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		a := g.Train
		switch {
		case a == nil || g.Star != nil:
		case granted != nil && g.Blocked:
			c.add("RT509", a, -1, "",
				"%s is shut out, while line %d grants the training of models", chars.Quote(a.Value), granted.Number)
		case refused != nil && !g.Blocked && len(model.Closed(g.Rules)) == 0:
			c.add("RT509", a, -1, "",
				"%s may read everything, while line %d refuses the training of models",
				chars.Quote(a.Value), refused.Number)
		}
	}
}
