package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// preferences is what has been said so far about use by AI: in Content-Usage (draft-ietf-aipref-attach),
// Content-Signal and License (RSL 1.0). Package usage reads them.
type preferences struct {
	*checker
	table    []usage.Mapping
	policy   *policy.Policy
	drafts   map[string]bool
	usages   map[preference]*model.Line // of the group at hand: the line that said so
	said     map[string]usage.Statement // by key: the first signal of any group
	signaled *model.Group               // the last that has a signal
	train    [2]*model.Line             // the first line that refuses training (0) and that grants it (1)
	star     *model.Line                // a signal for *
	silent   *model.Line                // a named group that closes not everything and has no signal
}

// preference is a label for a path, with its value.
type preference struct{ path, label, value string }

func (f *checker) preferenceChecks() {
	c := &preferences{checker: f, drafts: map[string]bool{}, said: map[string]usage.Statement{}, table: usage.Table()}
	for _, l := range f.Loose {
		c.record(l)
	}
	for _, g := range f.Groups {
		c.usages = map[preference]*model.Line{}
		for _, r := range g.Records {
			c.record(r)
		}
		if c.silent == nil && c.signaled != g && !g.Blocked && g.Star == nil {
			c.silent = g.Agents[0]
		}
	}
	// Crawlers with a group of their own may not see a signal for *. A group that closes the site needs none, as in the
	// files that a proxy manages, where * has the signal and each training crawler is shut out.
	if c.star != nil && c.silent != nil {
		c.line("RT507", c.star, "the group for %s in line %d has no content signal, and some readers do not fall back to this one",
			c.silent.Value, c.silent.Number)
	}
	c.disagreements()
}

// record checks a line. What is a draft is said once for each field (RT510), whatever else is right or wrong about it.
func (c *preferences) record(l *model.Line) {
	switch l.Kind {
	case model.ContentUsage:
		c.contentUsage(l)
	case model.ContentSignal:
		c.contentSignal(l)
	case model.License:
		if _, said := read(l, l.Value); said[0].Problem != "" {
			c.value("RT508", l, "%s is %v, so the licence is not found", l.Value, said[0].Problem)
		}
		return
	case "llm-policy", "disallowaitraining", "allowaitraining", "user-agent-purpose":
	default:
		return
	}
	if !c.drafts[l.Kind] {
		c.drafts[l.Kind] = true
		c.line("RT510", l, "%v comes from a draft or a convention, not from a standard", model.FieldName(l.Kind))
	}
}

// read returns what a value of the line says.
func read(l *model.Line, value string) (path string, said []usage.Statement) {
	return usage.ParseRecord(policy.Record{Field: model.FieldName(l.Kind), Value: value, Line: l.Number})
}

// contentUsage checks a value of the form [path] label=y, label=n. Whatever does not begin with a slash belongs to the
// dictionary (RT502 is the trap in that), and a dictionary that does not parse says nothing at all.
func (c *preferences) contentUsage(l *model.Line) {
	path, said := read(l, l.Value)
	dictionary := strings.Trim(l.Value[len(path):], model.Blanks)
	word, rest := model.CutWord(l.Value)
	switch s := said[0]; {
	case s.Key != "":
		c.unheard(l, dictionary, said)
		for _, s := range said {
			c.usage(l, path, s)
		}
	case path == "" && !strings.Contains(word, "=") && strings.Index(strings.TrimLeft(rest, model.Blanks), "=") > 0:
		c.add("RT502", l, l.ValueAt, l.With("/"+l.Value), "%s does not begin with a slash, so it is no path and the preference does not parse", word)
		return
	case dictionary == "":
		c.value("RT501", l, "%s %v", l.Value, s.Problem)
		return
	default:
		c.value("RT501", l, "%s: %v", dictionary, s.Problem)
	}
	c.onDisallowed(l, path)
}

// usage checks one member of the dictionary.
func (c *preferences) usage(l *model.Line, path string, s usage.Statement) {
	switch {
	case s.Key == "":
		c.value("RT501", l, "%v", s.Problem)
		return
	case s.Value == "?1" && !strings.Contains(l.Value, s.Key+"="): // which stands for true
		c.value("RT501", l, "%s has no value, so the preference is unknown", s.Key)
		return
	case s.Problem != "":
		c.add("RT501", l, l.ValueAt, yesNo(l, path, s.Key, s.Value), "the value %s of %s is neither y nor n, so the preference is unknown",
			s.Value, s.Key)
		return
	}
	switch s.Key {
	// From vocab-00 to vocab-04; copied from articles of that time.
	case "tdm", "ai", "genai", "train-genai", "inference", "all", "bots", "ai-output":
		c.value("RT503", l, "the label %s was dropped from the draft", s.Key)
	default:
		if !c.knows(s) {
			c.value("RT503", l, "the label %s is unknown", s.Key)
		}
	}
	if c.usages == nil {
		return // before any group, where it is for no crawler
	}
	// Statements for one path are combined, and any "n" among them is stronger: the opposite of allow and disallow.
	path = cmp.Or(path, "/") // no path is the whole site
	opposite := map[string]string{"y": "n", "n": "y"}[s.Value]
	if was := c.usages[preference{path, s.Key, opposite}]; was != nil {
		c.value("RT505", l, "%v=%v contradicts line %d for the same path: n wins", s.Key, s.Value, was.Number)
	}
	c.usages[preference{path, s.Key, s.Value}] = l
	if path == "/" {
		c.trains(l, s)
	}
}

// unheard reports what a dictionary states without effect: behind a semicolon, where it is a
// parameter, and before another value of the same label, of which the last counts.
func (c *preferences) unheard(l *model.Line, dictionary string, said []usage.Statement) {
	parts := strings.FieldsFunc(dictionary, func(r rune) bool { return r == ',' || r == ';' })
	if len(parts) == len(said) {
		return
	}
	for _, part := range parts {
		_, alone := read(l, strings.Trim(part, model.Blanks))
		if len(alone) != 1 || alone[0].Problem != "" || !c.knows(alone[0]) {
			continue
		}
		s := alone[0]
		switch i := slices.IndexFunc(said, func(o usage.Statement) bool { return o.Key == s.Key }); {
		case i < 0:
			before, _ := strings.CutSuffix(l.Value, dictionary)
			c.add("RT501", l, l.ValueAt, l.Text[:l.ValueAt]+before+strings.ReplaceAll(dictionary, ";", ","),
				"%v=%v stands behind a semicolon, so it is a parameter and says nothing", s.Key, s.Value)
		case said[i].Value != s.Value:
			c.value("RT505", l, "%v=%v and %v=%v stand in one line: the last one counts", s.Key, s.Value, s.Key, said[i].Value)
		}
	}
}

// knows reports whether the key of a statement means anything.
func (c *preferences) knows(s usage.Statement) bool {
	return slices.ContainsFunc(c.table, func(m usage.Mapping) bool { return m.By == s.By && m.Key == s.Key })
}

// yesNo returns the line with yes and no as y and n, "" if that is not what it has.
func yesNo(l *model.Line, path, label, value string) string {
	word := ""
	switch strings.ToLower(strings.Trim(value, `"`)) {
	case "yes", "y", "allow", "true", "?1":
		word = "y"
	case "no", "n", "disallow", "false", "?0":
		word = "n"
	}
	members := strings.Split(l.Value[len(path):], ",")
	for i, m := range members {
		if said, _, _ := strings.Cut(m, ";"); word != "" && strings.Trim(said, model.Blanks) == label+"="+value {
			members[i] = strings.Replace(m, "="+value, "="+word, 1)
			return l.Text[:l.ValueAt] + path + strings.Join(members, ",")
		}
	}
	return ""
}

// onDisallowed reports preferences for what may not be crawled (RT504): they attach only to what is acquired. A path
// with wildcards, and one of which a part is allowed, are left alone.
func (c *preferences) onDisallowed(l *model.Line, path string) {
	path = cmp.Or(path, "/")
	if !c.mayAsk() || l.Group == nil || strings.ContainsAny(path, "*$") || slices.ContainsFunc(l.Group.Rules, func(r *model.Line) bool {
		return r.Kind == model.Allow && (strings.Contains(r.Value, "*") || strings.HasPrefix(r.Value, path))
	}) {
		return
	}
	if c.policy == nil {
		c.policy = policy.Parse([]byte(c.Text))
	}
	if d := c.policy.Decide(model.AgentName(l.Group.Agents[0]), path); !d.Allowed {
		c.value("RT504", l, "%s is disallowed by line %d, so nothing is collected that the preference could apply to", path, d.Rule.Line)
	}
}

// contentSignal checks a value of the form search=yes, ai-train=no (RT506). There is no path in it. A key without a
// value, "ai_train", "true": each is as if it were not there, which neither grants nor refuses anything.
func (c *preferences) contentSignal(l *model.Line) {
	_, said := read(l, l.Value)
	if said == nil {
		c.value("RT506", l, "%s states no signal", l.Value)
	}
	for _, s := range said {
		switch {
		case !c.knows(s):
			c.value("RT506", l, "%s is no key of a content signal", s.Key)
			continue
		case s.Problem != "" && s.Key == "use":
			c.value("RT506", l, "the value %s of use is none of immediate, reference, full", s.Value)
			continue
		case s.Problem != "":
			c.value("RT506", l, "the value %s of %v is neither yes nor no", s.Value, s.Key)
			continue
		case !strings.Contains(l.Value, s.Key) || !strings.Contains(l.Value, s.Value):
			c.value("RT506", l, "%v=%v has capitals, which not every reader may ignore", s.Key, s.Value)
		}
		c.trains(l, s)
		if l.Group != nil {
			c.signal(l, s)
		}
	}
}

// trains notes the first line that grants training and the first that refuses it.
func (c *preferences) trains(l *model.Line, s usage.Statement) {
	what, _, _ := usage.For([]usage.Statement{s}, usage.TrainAI, c.table...)
	if at := map[usage.Preference]**model.Line{usage.Disallow: &c.train[0], usage.Allow: &c.train[1]}[what]; at != nil {
		*at = cmp.Or(*at, l)
	}
}

// signal compares a signal of a group with its rules and with those of other groups (RT507). No
// publication tells a signal of a group from one of the site, so only equal ones are safe.
func (c *preferences) signal(l *model.Line, s usage.Statement) {
	g := l.Group
	// What may not be crawled cannot be indexed: the signal grants nothing.
	if g.Blocked && s.Key == "search" && s.Value == "yes" {
		c.value("RT507", l, "search=yes stands in a group that closes the whole site")
	}
	if was, ok := c.said[s.Key]; !ok {
		c.said[s.Key] = s
	} else if was.Value != s.Value {
		c.value("RT507", l, "%v=%v differs from %v in line %d: readers disagree on which of them holds", s.Key, s.Value, was.Value, was.Line)
	}
	if c.signaled = g; g.Star != nil {
		c.star = cmp.Or(c.star, l)
	}
}

// disagreements compares the statements on training in their several notations (RT509). A crawler that is shut out in
// part, or let in in part, agrees with everything: only the whole site counts.
func (c *preferences) disagreements() {
	refused, granted := c.train[0], c.train[1]
	// Within one notation it is RT505 or RT507.
	if refused != nil && granted != nil && refused.Kind != granted.Kind {
		c.value("RT509", granted, "%v grants the training of models, and %v in line %d refuses it",
			model.FieldName(granted.Kind), model.FieldName(refused.Kind), refused.Number)
	}
	for _, g := range c.Groups {
		switch a := g.Train; {
		case a == nil || g.Star != nil:
		case granted != nil && g.Blocked:
			c.line("RT509", a, "%s is shut out, while line %d grants the training of models", a.Value, granted.Number)
		case refused != nil && !g.Blocked && !slices.ContainsFunc(g.Rules, (*model.Line).Closes):
			c.line("RT509", a, "%s may read everything, while line %d refuses the training of models", a.Value, refused.Number)
		}
	}
}
