package lint

import (
	"encoding/json"
	"math/bits"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/report"
)

// MaxPerRule is how many findings of one rule are listed for one file. If there are more,
// one last Finding of that rule counts them, in Message and in More.
const MaxPerRule = 20

// The report cannot import this package: the two must be equal.
const _ = uint(MaxPerRule-report.MaxPerRule) + uint(report.MaxPerRule-MaxPerRule)

// Severity is how bad a finding is. The zero value is SeverityInfo.
type Severity uint8

// The severities, in rising order.
const (
	SeverityInfo    Severity = iota // style, or worth knowing
	SeverityWarning                 // works differently between crawlers
	SeverityError                   // has no effect, or the opposite one
)

var severities = [...]string{SeverityInfo: "info", SeverityWarning: "warning", SeverityError: "error"}

// String returns "info", "warning" or "error".
func (s Severity) String() string { return severities[min(s, SeverityError)] }

// MarshalText returns the same word as String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Engines is a set of readers of robots.txt, as a bit mask. The zero value is the
// empty set.
type Engines uint64

// The engines. EngineDialects are those that package policy has a Dialect for.
const (
	EngineRFC9309 Engines = 1 << iota
	EngineGoogle
	EngineYandex
	EngineBing
	EngineOriginal // robots of the 1994 and 1996 descriptions: prefixes only, the first match wins
	EngineApple
	EngineAmazon
	EngineSeznam
	EngineCrawlerCommons // Common Crawl, Nutch, StormCrawler
	EngineAIPREF         // readers of Content-Usage (draft-ietf-aipref-attach)
	EngineContentSignals // readers of Content-Signal
	EngineRSL            // readers of License

	EngineDialects = EngineRFC9309 | EngineGoogle | EngineYandex | EngineBing | EngineOriginal
)

// engineNames are in the order of the constants.
var engineNames = [...]string{"rfc9309", "google", "yandex", "bing", "original",
	"apple", "amazon", "seznam", "crawler-commons", "aipref", "content-signals", "rsl"}

// Names returns the names of the engines in the set, in the order of the constants.
func (e Engines) Names() []string {
	names := []string{}
	for ; e != 0; e &= e - 1 {
		if bit := bits.TrailingZeros64(uint64(e)); bit < len(engineNames) {
			names = append(names, engineNames[bit])
		} else {
			names = append(names, "unknown")
		}
	}
	return names
}

// String returns the names joined by commas, or "all" if the five dialects are in
// the set.
func (e Engines) String() string {
	if e&EngineDialects == EngineDialects {
		return strings.Join(append([]string{"all"}, (e&^EngineDialects).Names()...), ",")
	}
	return strings.Join(e.Names(), ",")
}

// MarshalJSON returns an array of names.
func (e Engines) MarshalJSON() ([]byte, error) { return json.Marshal(e.Names()) }

// Finding is one mistake.
type Finding struct {
	ID       string // of the rule: "RT101"
	Name     string // of the rule: "missing-colon"
	Severity Severity
	Line     int     // from 1, as policy.Rule.Line; 0: the file or its answer as a whole
	Column   int     // from 1, in characters, not bytes; 0: the whole line
	Message  string  // one sentence; what it quotes is cut and printable
	Engines  Engines // that are affected

	// Suggestion says in words what to do. It is never empty.
	Suggestion string

	// Replacement is the text to write instead of the whole line, perhaps several lines. It changes nothing of
	// what the file says to crawlers, in any dialect of package policy. It is "" where it would: then only
	// the author can know what was meant.
	Replacement string

	// Example is what the line was perhaps meant to be, where Replacement is "" because that would change what the
	// file says. It is "" if there is no guess.
	Example string

	More int // findings of this rule beyond MaxPerRule; 0 but on the last one
}
