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
// package policy. Everything else is a message, since only the author knows what was meant. [Answer.Fix] applies
// replacements.
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
	_ "embed"
	"encoding/json"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
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

// Rule is one entry of the registry. ID and Name never change: configurations and links may refer to them.
type Rule struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Engines  Engines  `json:"engines"` // that a finding concerns
	Summary  string   `json:"summary"` // the mistake, in half a sentence
	Advice   string   `json:"advice"`  // how to mend it

	// Example is a file with the mistake, or in words what is wrong with an answer.
	Example string `json:"example"`

	// Unchecked is why this package cannot find the mistake, for rules that need more than a file and its answer. It is ""
	// for all others.
	Unchecked string `json:"-"`
}

// manual is the registry: a section for each rule, sorted by identifier. A rule is an error if the line has no effect
// or the opposite one, a warning if crawlers differ on it, and info if it is a matter of style or merely worth knowing.
// Engines are those that are misled, not those that warn.
//
//go:embed README.md
var manual string

var rules = sync.OnceValue(func() []Rule { return readManual(manual) })

// readManual reads a manual. A test proves that ours has no section in another form.
func readManual(text string) (all []Rule) {
	section := regexp.MustCompile(`(?s)^(RT\d+) (\S+)\n\n(\w+): (.*?)\. Engines: (.*?)\.\n\n` +
		`(?:This is not checked: (.*?)\.\n\n)?(?:    )?(.*?)\n(?:\nFinding: .*?\n)?\nFix: (.*?)\.\n`)
	text = strings.ReplaceAll(text, "\r", "") // a checkout for Windows may have its line ends
	for _, text := range strings.Split(text, "\n## ")[1:] {
		part := section.FindStringSubmatch(text)
		r := Rule{ID: part[1], Name: part[2], Summary: part[4], Engines: Engines(part[5]), Unchecked: part[6], Advice: part[8]}
		r.Severity = Severity(slices.Index(severities[:], part[3]))
		example := strings.NewReplacer(`"`, `\"`, "\n    ", `\n`, "\n", `\n`).Replace(part[7])
		r.Example, _ = strconv.Unquote(`"` + example + `"`)
		all = append(all, r)
	}
	return all
}

// URL returns where the rule is explained.
func (r Rule) URL() string {
	return "https://" + home + "/blob/main/policy/lint/README.md#" + strings.ToLower(r.ID) + "-" + r.Name
}

// Rules returns the registry in the order of the identifiers.
func Rules() []Rule { return slices.Clone(rules()) }

func ruleIndex(id string) int {
	return slices.IndexFunc(rules(), func(r Rule) bool { return r.ID == id })
}

// home is the module, which is also its page.
const home = "github.com/robotsgate/robotsgate"

// A Line is one line of a robots.txt file as a dialect reads it. It is meant for tools that
// show a file to people; permission is asked of a [policy.Policy].
type Line struct {
	Number int // counted from 1
	Kind   LineKind
	Text   string // without its end, but with all else

	// Field and Value stand before and after the colon, without white space around them
	// and without comment. Both are empty if the line has no field.
	Field, Value string

	Comment  bool // has a "#"
	Misspelt bool // Field is a misspelling that the dialect accepts (Google)
	NoColon  bool // white space stands for the colon (Google)
	Cut      bool // longer than the dialect reads; Value lacks the rest (Google)
}

// A LineKind tells what a line is to the dialect.
type LineKind uint8

// The kinds of lines.
const (
	LineBlank     LineKind = iota + 1 // only white space
	LineComment                       // only a comment
	LineUserAgent                     // begins or widens a group
	LineAllow                         // a rule
	LineDisallow                      // a rule
	LineSitemap                       // a record that names a sitemap
	LineRecord                        // any other field
	LineInvalid                       // no field, or nothing before the colon: skipped
)

// String returns the kind in a word.
func (k LineKind) String() string {
	names := [...]string{"", "blank", "comment", "user-agent", "allow", "disallow", "sitemap", "record", "invalid"}
	return names[min(int(k), len(names)-1)]
}

// Lines yields the lines of a file, up to 500 KiB, as the dialect's parser reads them. If
// the file ends with a line end, one more line follows, which is blank.
func Lines(d policy.Dialect, data []byte) iter.Seq[Line] {
	reading := scan.RFC9309 // all dialects but one divide lines alike
	if d == policy.Google {
		reading = scan.Google
	}
	return func(yield func(Line) bool) {
		s := scan.New(reading, data)
		for text := string(s.Data); s.Next(); { // one copy for all lines
			if !yield(Line{
				Number: s.Number, Kind: LineKind(s.Kind), Text: text[s.Start:s.End],
				Field: text[s.FieldAt:s.FieldEnd], Value: text[s.ValueAt:s.ValueEnd],
				Comment: s.Comment, Misspelt: s.Misspelt, NoColon: s.NoColon, Cut: s.Cut,
			}) {
				return
			}
		}
	}
}
