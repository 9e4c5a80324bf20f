package usage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/robotsgate/robotsgate/policy"
)

// A Preference is what is preferred about a use. The zero value is Unknown.
type Preference uint8

const (
	// Unknown: nothing was said that is understood. It is neither permission nor refusal.
	Unknown Preference = iota

	// Disallow: the use is not wanted.
	Disallow

	// Allow: the use is welcome.
	Allow
)

// String returns "unknown", "disallow" or "allow".
func (p Preference) String() string {
	return cmp.Or(map[Preference]string{Disallow: "disallow", Allow: "allow"}[p], "unknown")
}

// MarshalText returns what String does.
func (p Preference) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// A Mechanism is a way in which sites say something about use.
type Mechanism string

const (
	ContentUsage  Mechanism = "Content-Usage"
	ContentSignal Mechanism = "Content-Signal"
	TDMRep        Mechanism = "TDMRep"
	RSL           Mechanism = "RSL"
	PageRule      Mechanism = "page rule"
	PolicyToken   Mechanism = "policy token"
)

// A Place is where a statement stands.
type Place string

const (
	InRobots Place = "robots.txt"
	InTDMRep Place = "tdmrep.json"
	InHeader Place = "header"
	InMeta   Place = "meta"
)

const licenseField = "License" // of RSL

// A Statement is one thing that a site said about use. It may be stored with what it is
// about. Its text comes from the network and may hold any bytes.
//
// The zero value says nothing.
type Statement struct {
	By Mechanism
	In Place

	// Line is the line of robots.txt, the entry of tdmrep.json, or the field line of the header, counted from 1. It is
	// 0 if there is none: the field lines of Content-Usage are one dictionary.
	Line int

	// Offset is where in the page the meta element begins, in bytes from 0. It is -1 if
	// that is not known, and outside of meta elements.
	Offset int64

	// Key and Value are what was said: train-ai and n, ai-train and no, tdm-reservation
	// and 1, License and an address, noai and "", Google-Extended and disallow. Keys
	// without case are in lower case, but for policy tokens, which are as asked for.
	Key, Value string

	// Engine is the dialect that a page rule was read in.
	Engine policy.Dialect

	// Inherited says that the statement is one of the group for "*", which counts because the
	// crawler's own group has none.
	Inherited bool

	// Text is the value of the line, field or element as written.
	Text string

	// Problem is why the statement has no effect, or empty.
	Problem string
}

// String returns the statement with the place where it stood:
//
//	robots.txt line 3, Content-Usage: "train-ai=n"
//
// The zero Statement is "no statement".
func (s Statement) String() string {
	if s == (Statement{}) {
		return "no statement"
	}
	place := string(s.In)
	switch {
	case s.In == InTDMRep && s.Line > 0:
		place += fmt.Sprintf(" entry %d", s.Line)
	case s.Line > 0:
		place += fmt.Sprintf(" line %d", s.Line)
	case s.In == InMeta && s.Offset >= 0:
		place += fmt.Sprintf(" at byte %d", s.Offset)
	}
	if s.Inherited {
		place += " (the group for *)"
	}
	name := s.By
	if s.By == TDMRep || s.By == RSL || s.By == PolicyToken {
		name = cmp.Or(Mechanism(s.Key), s.By)
	}
	return fmt.Sprintf("%s, %s: %.256q", place, name, s.Text)
}

// For combines what was said about one label: any Disallow is Disallow; else any Allow is Allow; else it is Unknown
// (vocab-08 §5.1). It also returns the first statement that says so, or the zero Statement.
//
// The table translates the statements, each by those rows that fit it. Without one it is [Table]. A label that no row
// has is an error: nothing can disallow it, so that a misspelt one would never be refused.
//
// Of several TDM reservations only those count that stand closest to the content: in meta
// elements, else in the header, else in tdmrep.json.
func For(said []Statement, label Label, table ...Mapping) (what Preference, by Statement, err error) {
	if table == nil {
		table = mappings
	}
	if !slices.ContainsFunc(table, func(m Mapping) bool { return m.Label == label }) {
		return Unknown, Statement{}, fmt.Errorf("usage: nothing can disallow %q: no row of the table has that label", label)
	}
	closest := 0 // rank of the place whose reservation counts
	for i := range said {
		if said[i].isReservation() {
			closest = max(closest, rank(said[i].In))
		}
	}
	for i := range said {
		s := &said[i]
		if s.isReservation() && rank(s.In) < closest {
			continue
		}
		switch p := s.says(table, label); {
		case p == Disallow:
			return Disallow, *s, nil
		case p == Allow && what == Unknown:
			what, by = Allow, *s
		}
	}
	return what, by, nil
}

// says returns what the statement alone says about a label.
func (s *Statement) says(table []Mapping, label Label) (p Preference) {
	if s.Problem != "" {
		return Unknown
	}
	for i := range table {
		m := &table[i]
		fits := m.Key == s.Key && m.Value == s.Value && m.By == s.By && (m.Engine == policy.RFC9309 || m.Engine == s.Engine)
		if fits && m.Label == label && m.Preference != Unknown && p != Disallow {
			p = m.Preference
		}
	}
	return p
}

func (s *Statement) isReservation() bool {
	return s.By == TDMRep && s.Key == reservation && s.Problem == ""
}

// rank orders the places of a TDM reservation.
func rank(in Place) int { return slices.Index([]Place{InTDMRep, InHeader, InMeta}, in) }

// A Mapping is a row of a table: what a statement says about a label. It fits the
// statements with the same By, Key and Value.
type Mapping struct {
	By         Mechanism
	Key, Value string

	// Engine is the dialect that a page rule must have been read in, such as policy.Bing. If
	// zero, any: RFC 9309 knows no page rules.
	Engine policy.Dialect

	Label      Label
	Preference Preference
}

// Table returns the rows that For uses by itself. The package documentation shows them. The
// slice is the caller's own, to add rows to and to take rows from.
func Table() []Mapping { return slices.Clone(mappings) }

// A Label names a use. Tables may have others than these.
type Label string

// The labels that [Table] has. The package documentation says what each means.
const (
	TrainAI      Label = "train-ai"
	AIUse        Label = "ai-use"
	Search       Label = "search"
	UseReference Label = "use=reference"
	UseFull      Label = "use=full"
	TrainAIImage Label = "train-ai:image"
	AIUseImage   Label = "ai-use:image"
)

// mappings are never written to.
var mappings = []Mapping{
	{ContentUsage, "train-ai", "n", 0, TrainAI, Disallow},
	{ContentUsage, "train-ai", "y", 0, TrainAI, Allow},
	{ContentUsage, "ai-use", "n", 0, AIUse, Disallow},
	{ContentUsage, "ai-use", "y", 0, AIUse, Allow},
	{ContentUsage, "search", "n", 0, Search, Disallow},
	{ContentUsage, "search", "y", 0, Search, Allow},

	{ContentSignal, "ai-train", "no", 0, TrainAI, Disallow},
	{ContentSignal, "ai-train", "yes", 0, TrainAI, Allow},
	{ContentSignal, "ai-input", "no", 0, AIUse, Disallow},
	{ContentSignal, "ai-input", "yes", 0, AIUse, Allow},
	{ContentSignal, "search", "no", 0, Search, Disallow},
	{ContentSignal, "search", "yes", 0, Search, Allow},
	{ContentSignal, "use", "immediate", 0, TrainAI, Disallow},
	{ContentSignal, "use", "immediate", 0, UseReference, Disallow},
	{ContentSignal, "use", "immediate", 0, UseFull, Disallow},
	{ContentSignal, "use", "reference", 0, UseReference, Allow},
	{ContentSignal, "use", "reference", 0, UseFull, Disallow},
	{ContentSignal, "use", "full", 0, UseReference, Allow},
	{ContentSignal, "use", "full", 0, UseFull, Allow},

	{TDMRep, reservation, "1", 0, TrainAI, Disallow},

	{PageRule, "noai", "", 0, TrainAI, Disallow},
	{PageRule, "noai", "", 0, AIUse, Disallow},
	{PageRule, "noml", "", 0, TrainAI, Disallow},
	{PageRule, "noml", "", 0, AIUse, Disallow},
	{PageRule, "noimageai", "", 0, TrainAIImage, Disallow},
	{PageRule, "noimageai", "", 0, AIUseImage, Disallow},
	{PageRule, "noindex", "", 0, Search, Disallow},
	{PageRule, "none", "", 0, Search, Disallow},
	{PageRule, "noarchive", "", policy.Bing, TrainAI, Disallow},
	{PageRule, "noarchive", "", policy.Bing, AIUse, Disallow},
	{PageRule, "nosnippet", "", policy.Google, AIUse, Disallow},
	{PageRule, "max-snippet", "0", policy.Google, AIUse, Disallow},

	{PolicyToken, "Google-Extended", "disallow", 0, TrainAI, Disallow},
	{PolicyToken, "Google-Extended", "disallow", 0, AIUse, Disallow},
	{PolicyToken, "Applebot-Extended", "disallow", 0, TrainAI, Disallow},
}

// Combine returns what a site prefers about a use of a page, and the statement that says it: what the page has said of
// itself (see [ParseHeader], [ParseMeta], [ParseRules]), and what robots.txt says about its target to the crawler with
// the product token. If they differ, "no" wins.
//
// The target is that of the response, which redirects may have changed: url.URL.RequestURI of its request. If robots.txt
// is nil or unreachable, what it says is not known: then the answer is no, with an error.
func Combine(use Label, robots *policy.Policy, token, target string, said ...Statement) (Preference, Statement, error) {
	if robots == nil || robots.Reason() == policy.ReasonUnreachable {
		return Disallow, Statement{}, errors.New("usage: robots.txt is unreachable, so what it says about use is not known")
	}
	all := append(said[:len(said):len(said)], ParseRobots(robots, token, target)...)
	what, by, err := For(all, use)
	if err != nil {
		what = Disallow
	}
	return what, by, err
}
