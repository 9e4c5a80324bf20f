package usage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// fact is one line of usage-preferences.jsonl, the shared file or our own. Ours has the
// kinds said and tdmrep.json, and cases of its own instead of those that are told in prose.
type fact struct {
	ID, Kind     string
	Value        string
	Fields       []string            // of Content-Usage
	Header       map[string][]string // of any name
	Meta         [][2]string         // name and content
	Page         string              // of X-Robots-Tag
	Dialect      policy.Dialect
	Robots       string
	Token, Path  string
	PolicyTokens []string
	File         string // tdmrep.json
	Statements   []string
	Purposes     []string
	ContentUse   string `json:"content_use"`
	Case         string
	Expect       json.RawMessage
	Said         []string // what the statements are, in their own words
	Source       string
	Status, Note string
}

// said reads what the fact has, in the order in which a crawler would meet it.
func (f fact) said() (all []usage.Statement) {
	if f.Robots != "" {
		all = usage.ParseRobots(f.Dialect.Parse([]byte(f.Robots)), f.Token, f.Path, f.PolicyTokens...)
	}
	if f.File != "" {
		all = append(all, usage.ParseTDMRep([]byte(f.File), f.Path)...)
	}
	h := http.Header{}
	for name, values := range f.Header {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	all = append(all, usage.ParseHeader(h)...)
	if f.Page != "" {
		all = append(all, usage.ParseRules(page.ParseHeader([]string{f.Page}), f.Dialect, "examplebot")...)
	}
	for _, m := range f.Meta {
		all = append(all, usage.ParseMeta(m[0], m[1], -1)...)
	}
	return all
}

// with returns the fact with one header field.
func (f fact) with(name string, values ...string) fact {
	f.Header = map[string][]string{name: values}
	return f
}

var labels = []string{"train-ai", "ai-use", "search"}

// outcome returns the preferences of the labels that the facts name.
func outcome(said []usage.Statement, labels []string) map[string]string {
	m := map[string]string{}
	for _, label := range labels {
		p, _, _ := usage.For(said, usage.Label(label))
		m[label] = p.String()
	}
	return m
}

// check holds the library to one fact.
func (f fact) check(t *testing.T) {
	t.Helper()
	var got any
	switch f.Kind {
	case "dictionary":
		got = outcome(f.with("Content-Usage", f.Value).said(), labels)
	case "header":
		got = outcome(f.with("Content-Usage", f.Fields...).said(), labels)
	case "combine":
		var said []usage.Statement
		for _, s := range f.Statements {
			said = append(said, f.with("Content-Usage", s).said()...)
		}
		got = outcome(said, labels)
	case "robots.txt":
		got = f.robots()
	case "content-signal":
		got = signals(f.with("Content-Signal", f.Value).said())
	case "content-signal-gate":
		got = f.gate()
	case "tdmrep", "rsl":
		got = f.prose()
	case "said":
		var want map[string]string
		f.decode(t, &want)
		var named []string
		for label := range want {
			named = append(named, label)
		}
		got = outcome(f.said(), named)
	default:
		t.Fatalf("%s: unknown kind %q", f.ID, f.Kind)
	}
	var want any
	f.decode(t, &want)
	if fmt.Sprint(normal(t, got)) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v\nsaid: %v\nnote: %s\nsource: %s", f.ID, got, want, f.said(), f.Note, f.Source)
	}
	if f.Said != nil {
		var words []string
		for _, s := range f.said() {
			word := s.String() + " " + s.Key + "=" + s.Value
			if s.Problem != "" {
				word = s.String() + " " + s.Problem
			}
			words = append(words, word)
		}
		if !slices.Equal(words, f.Said) {
			t.Errorf("%s: got %q, want %q", f.ID, words, f.Said)
		}
	}
}

func (f fact) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(f.Expect, v); err != nil {
		t.Fatal(f.ID, err)
	}
}

// normal returns v as JSON has it.
func normal(t *testing.T, v any) (n any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// robots tells apart that nothing was said and that nothing applies.
func (f fact) robots() any {
	said := f.said()
	if d := policy.Parse([]byte(f.Robots)).Decide(f.Token, f.Path); !d.Allowed && len(said) == 0 {
		return "not crawlable: no preference applies"
	}
	return outcome(said, labels)
}

// signals returns preferences in the words of Content Signals.
func signals(said []usage.Statement) map[string]any {
	words := map[usage.Preference]string{usage.Unknown: "neither", usage.Disallow: "no", usage.Allow: "yes"}
	m := map[string]any{"use": nil}
	for key, label := range map[string]string{"search": "search", "ai-input": "ai-use", "ai-train": "train-ai"} {
		p, _, _ := usage.For(said, usage.Label(label))
		m[key] = words[p]
	}
	least, _, _ := usage.For(said, "use=reference")
	most, _, _ := usage.For(said, "use=full")
	switch {
	case least == usage.Disallow:
		m["use"] = "immediate"
	case most == usage.Disallow:
		m["use"] = "reference"
	case most == usage.Allow:
		m["use"] = "full"
	}
	return m
}

// gate declares purposes as a crawler does: any that is disallowed ends the crawl.
func (f fact) gate() string {
	said := f.with("Content-Signal", f.Value).said()
	uses := []string{"use=" + f.ContentUse}
	for _, p := range f.Purposes {
		uses = append(uses, map[string]string{"search": "search", "ai-input": "ai-use", "ai-train": "train-ai"}[p])
	}
	for _, label := range uses {
		if p, _, _ := usage.For(said, usage.Label(label)); p == usage.Disallow {
			return "rejected"
		}
	}
	return "goes ahead"
}

// prose answers the facts that the shared file tells in words.
func (f fact) prose() string {
	const file = `[{"location":"/a/*","tdm-reservation":1},{"location":"/*","tdm-reservation":0}]`
	const licenses = "License: https://example.com/all.xml\n" +
		"User-agent: ExampleBot\nLicense: https://example.com/own.xml\nAllow: /\n" +
		"User-agent: TwoBot\nLicense: https://example.com/1.xml\nLicense: https://example.com/2.xml\n"
	of := func(token string) []usage.Statement {
		return usage.ParseRobots(policy.Parse([]byte(licenses)), token, "/")
	}
	switch f.ID {
	case "UP-060":
		return reserved(usage.ParseTDMRep([]byte(file), "/a/x"))
	case "UP-062":
		return reserved(usage.ParseTDMRep([]byte(`[{"location":"/a/*","tdm-reservation":1}]`), "/b"))
	case "UP-066":
		said := usage.ParseHeader(http.Header{"Tdm-Reservation": {"1"}, "Tdm-Policy": {"https://e/p.json"}})
		return reserved(said) + ", policy " + said[1].Value
	case "UP-067":
		if s := of("ExampleBot"); len(s) == 1 && s[0].Value == "https://example.com/own.xml" && s[0].Line == 3 &&
			of("OtherBot")[0].Value == "https://example.com/all.xml" {
			return "the group's"
		}
	case "UP-069":
		if s := of("TwoBot"); len(s) == 2 && s[0].Line == 6 && s[1].Line == 7 {
			return "both are to be checked"
		}
	case "UP-070":
		s := usage.ParseRobots(policy.Parse([]byte("License: /rsl.xml")), "ExampleBot", "/")
		if len(s) == 1 && s[0].Problem == "not an absolute URL" {
			return "invalid: absolute URI required"
		}
	case "UP-073", "UP-074":
		// The document is a contract. It is not read: whatever it says, the address is
		// handed over and nothing is known.
		s := of("ExampleBot")
		for _, label := range labels {
			if p, _, _ := usage.For(s, usage.Label(label)); p != usage.Unknown {
				return label + " is " + p.String()
			}
		}
		return strings.Trim(string(f.Expect), `"`)
	}
	return "unknown case: " + f.Case
}

func reserved(said []usage.Statement) string {
	if p, _, _ := usage.For(said, "train-ai"); p == usage.Disallow {
		return "reserved"
	}
	return "unset"
}

func TestUsageFacts(t *testing.T) {
	facts := vectors.Read[fact](t, "vectors/usage-preferences.jsonl")
	for _, f := range facts {
		f.check(t)
	}
	t.Logf("%d facts", len(facts))
}

func ownFacts(t testing.TB) []fact {
	return vectors.ReadOwn[fact](t, "testdata/usage-preferences.jsonl")
}

func TestOwnFacts(t *testing.T) {
	for _, f := range ownFacts(t) {
		f.check(t)
	}
}
