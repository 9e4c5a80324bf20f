// Package lint finds the mistakes in a robots.txt file (RFC 9309) before crawlers do.
//
// [File] judges the text alone. [Answer.Findings] also judges how the file was served: its name, status code, redirects
// and content type. [Name] judges the name of a file on disk. [Lines] shows a file as a dialect reads it. The package
// uses no network and never fails: a file that cannot be read as robots.txt is itself a finding.
//
// Lines are read as lenient crawlers read them, with Google's misspellings and without a colon, because that is what
// the author meant. The finding names the engines that read the line differently. Every rule has an identifier that
// never changes, RT001 to RT510. [Rules] lists them all, including those that need more than a file.
//
// A replacement is offered where it changes nothing: the file says the same to all crawlers, in each dialect of
// package policy. Everything else is a message, since only the author knows what was meant. [Fix] applies replacements.
//
// A mistake is reported once, by the rule that says most about it. Matters of style are mentioned
// once for each file. If a line is meant as it is written, a comment silences its findings:
//
//	# robots-lint: ignore-file RT403
//
//	User-agent: *
//	# robots-lint: ignore RT314 the shop's pages, too
//	Disallow: /shop
//	Disallow: /*.php$ # robots-lint: ignore RT007
//
// The first form is for the whole file. The second is for the next record if the comment stands alone, and for its own
// line if not. Identifiers are separated by commas or blanks; what follows them is the reason.
//
// The work is linear in the size of the file, except for sorting. What replacements do is worked
// out within a fixed budget, so a large file may get fewer of them. The result is bounded: at most
// [MaxPerRule] findings for each rule, at most 80 bytes of the file in a quotation.
package lint

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// File returns the mistakes in the text of a robots.txt file, sorted by line, column and rule. It does not retain data.
// Do not pass it the body of an answer without rules, such as a 404: an empty file is a finding.
func File(data []byte) []Finding { return check(model.Read(data), &url.URL{}) }

// MaxPerRule is how many findings of one rule are listed for one file. If there are more,
// one last Finding of that rule counts them, in Message and in More.
const MaxPerRule = 20

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

// Engines are readers of robots.txt, by their names with commas between them. "all" stands for the five that package
// policy has a Dialect for; the others are apple, amazon, seznam, crawler-commons (Common Crawl, Nutch, StormCrawler), and
// the readers of Content-Usage (aipref), of Content-Signal (content-signals) and of License (rsl).
type Engines string

// Names returns the names one by one, those of the dialects for "all".
func (e Engines) Names() []string {
	names := strings.Replace(string(e), "all", "rfc9309,google,yandex,bing,original", 1)
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
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
