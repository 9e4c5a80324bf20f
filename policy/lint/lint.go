// Package lint finds the mistakes in a robots.txt file (RFC 9309) before crawlers
// do.
//
// [File] judges the text alone. [Answer.Findings] also judges how the file was served: its
// name, status code, redirects and content type. [Name] judges the name of a file on disk.
// [Lines] shows a file as a dialect reads it. The package uses no network and never fails: a
// file that cannot be read as robots.txt is itself a finding.
//
// Lines are read as lenient crawlers read them, with Google's misspellings and without a
// colon, because the author meant them so. The finding names the engines that read the line
// otherwise. Every rule has an identifier that never changes, RT001 to RT510. [Rules] lists
// them all, also those that need more than a file.
//
// The work is linear in the size of the file, except for sorting. The result is bounded: at
// most [MaxPerRule] findings for each rule, at most 80 bytes of the file in a message.
package lint

import (
	"encoding/json"
	"math/bits"
	"net/url"
	"path"
	"strings"
)

// MaxPerRule is how many findings of one rule are listed for one file. If there are more,
// one last Finding of that rule counts them, in Message and in More.
const MaxPerRule = 20

// Severity is how bad a finding is. The zero value is Info.
type Severity uint8

// The severities, in rising order.
const (
	Info    Severity = iota // style, or worth knowing
	Warning                 // works differently between crawlers
	Error                   // has no effect, or the opposite one
)

// String returns "info", "warning" or "error".
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	}
	return "error"
}

// MarshalText returns the same word as String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Engines is a set of readers of robots.txt, as a bit mask. The zero value is the
// empty set.
type Engines uint16

// The engines. RFC9309, Google, Yandex, Bing and Original are the dialects of
// package policy.
const (
	RFC9309 Engines = 1 << iota
	Google
	Yandex
	Bing
	Original // robots of the 1994 and 1996 descriptions: prefixes only, the first match wins
	Apple
	Amazon
	Seznam
	CrawlerCommons // Common Crawl, Nutch, StormCrawler
	AIPREF         // readers of Content-Usage (draft-ietf-aipref-attach)
	ContentSignals // readers of Content-Signal
	RSL            // readers of License

	All = RFC9309 | Google | Yandex | Bing | Original
)

// Names returns the names of the engines in the set, in the order of the constants.
func (e Engines) Names() []string {
	names := []string{}
	for ; e != 0; e &= e - 1 {
		names = append(names, engineName(bits.TrailingZeros16(uint16(e))))
	}
	return names
}

func engineName(bit int) string {
	const names = "rfc9309 google yandex bing original apple amazon seznam crawler-commons aipref content-signals rsl"
	all := strings.Fields(names)
	if bit >= len(all) {
		return "unknown"
	}
	return all[bit]
}

// String returns the names joined by commas, or "all" if the five dialects are in
// the set.
func (e Engines) String() string {
	if e&All == All {
		return strings.Join(append([]string{"all"}, (e&^All).Names()...), ",")
	}
	return strings.Join(e.Names(), ",")
}

// MarshalJSON returns an array of names.
func (e Engines) MarshalJSON() ([]byte, error) { return json.Marshal(e.Names()) }

// Finding is one mistake.
type Finding struct {
	ID         string   `json:"id"`   // "RT101"
	Name       string   `json:"name"` // "missing-colon"
	Severity   Severity `json:"severity"`
	Line       int      `json:"line"`           // from 1, as policy.Rule.Line; 0: the file or its answer as a whole
	Column     int      `json:"column"`         // from 1, in characters, not bytes; 0: the whole line
	Message    string   `json:"message"`        // one sentence; what it quotes is cut and printable
	Engines    Engines  `json:"engines"`        // that are affected
	Suggestion string   `json:"suggestion"`     // text to replace the line, or in words what to do
	More       int      `json:"more,omitempty"` // findings of this rule beyond MaxPerRule, on the last one only
}

// File returns the mistakes in the text of a robots.txt file, sorted by line, column and
// rule. It does not retain data. Do not pass it the body of an answer without rules, such as
// a 404: an empty file is a finding.
func File(data []byte) []Finding { return check(data, nil) }

// check judges a file that is served at u, nil if that is not known.
func check(data []byte, u *url.URL) []Finding {
	f := readFile(data)
	f.url = u
	f.format()
	if f.wide { // one cause would give a finding for every line
		return f.sorted()
	}
	f.group()
	f.lineChecks()
	f.agentChecks()
	f.conflictChecks()
	f.effectChecks()
	f.preferenceChecks()
	return f.sorted()
}

// Name judges the name of a file on disk or the path of a URL. Only the last element counts.
// A name that is no attempt at robots.txt, such as "draft.txt", has no findings.
func Name(name string) []Finding {
	var r report
	r.name(name)
	return r.sorted()
}

func (r *report) name(name string) {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	switch {
	case base == "robots.txt":
	case strings.EqualFold(base, "robots.txt"):
		r.add("RT001", nil, 0, "robots.txt",
			"the file is named %s, and names are case-sensitive (RFC 9309 §2.3)", quote(base))
	case strings.EqualFold(base, "robot.txt"):
		r.add("RT002", nil, 0, "robots.txt",
			"the file is named %s, which no crawler asks for (RFC 9309 §2.3)", quote(base))
	}
}
