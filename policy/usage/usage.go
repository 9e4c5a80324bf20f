package usage

import (
	"cmp"
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
	switch p {
	case Disallow:
		return "disallow"
	case Allow:
		return "allow"
	}
	return "unknown"
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
	return fmt.Sprintf("%s, %s: %q", place, name, s.Text)
}

// For combines what was said about one label: any Disallow is Disallow; else any Allow is Allow; else it is Unknown
// (vocab-08 §5.1). It also returns the first statement that says so, or the zero Statement.
//
// The table translates the statements, each by those rows that fit it. Without one it is [Table]. A label that no row
// has is an error: nothing can disallow it, so that a misspelt one would never be refused.
//
// Of several TDM reservations only those count that stand closest to the content: in meta
// elements, else in the header, else in tdmrep.json.
func For(said []Statement, label Label, table ...Mapping) (Preference, Statement, error) {
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
	result, first := Unknown, -1
	for i := range said {
		s := &said[i]
		if s.isReservation() && rank(s.In) < closest {
			continue
		}
		switch p := s.says(table, label); {
		case p == Disallow:
			return Disallow, *s, nil
		case p == Allow && first < 0:
			result, first = Allow, i
		}
	}
	if first < 0 {
		return Unknown, Statement{}, nil
	}
	return result, said[first], nil
}

// says returns what the statement alone says about a label.
func (s *Statement) says(table []Mapping, label Label) (p Preference) {
	if s.Problem != "" {
		return Unknown
	}
	for i := range table {
		m := &table[i]
		fits := m.Key == s.Key && m.Value == s.Value && m.By == s.By && (m.Engine == policy.RFC9309 || m.Engine == s.Engine)
		switch {
		case !fits || m.Label != label || m.Preference == Unknown:
		case m.Preference == Disallow:
			return Disallow
		default:
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
