package answer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Verdict is an answer about one URL. check, filter, match and the service write it alike, by the tags of its fields, and
// schema.json describes it. Each field is always there; a zero that means "does not apply" is null, see written. What a
// reader decodes is a Verdict, too.
type Verdict struct {
	Number     int                  `json:"number"`            // of the argument or the line, counted from 1
	ID         json.RawMessage      `json:"id" zero:"null"`    // match --jsonl: the record's own
	URL        string               `json:"url"`               // as the user wrote it
	Asked      string               `json:"asked" zero:"null"` // the URL that was decided on, if that is another
	Agent      string               `json:"agent" zero:"null"`
	Dialect    string               `json:"dialect" zero:"null"`
	DialectBy  string               `json:"dialect_by" zero:"null"` // ByFlag, ByCrawler or ByDefault
	Fallback   string               `json:"fallback" zero:"null"`   // whose group binds the crawler, as none names it
	Allowed    bool                 `json:"allowed"`
	Covers     string               `json:"covers"`
	Reason     string               `json:"reason"`           // a policy.Reason as text, or ReasonMalformed
	Line       int                  `json:"line" zero:"null"` // of the rule that decided, or of the empty one that allows all
	Rule       string               `json:"rule" zero:"null"`
	Group      string               `json:"group" zero:"null"`       // its product token, as the file writes it
	CrawlDelay *float64             `json:"crawl_delay" zero:"null"` // of the group that binds the crawler, in seconds
	Use        *Use                 `json:"use" zero:"null"`         // with policy.ReasonUse
	Agreement  *agreement.Agreement `json:"agreement" zero:"null"`
	Error      string               `json:"error" zero:"null"`  // why robots.txt could not be read, or what is wrong with the URL
	Robots     *Answer              `json:"robots" zero:"null"` // check: where the rules come from
	Lines      []FileLine           `json:"lines" zero:"null"`  // check --explain
	Record     json.RawMessage      `json:"record" zero:"null"` // filter: the line, if it was a JSON object
	Purpose    string               `json:"purpose,omitempty"`  // check --crawlers, diff: of the crawler, see Everyone
}

type Use struct {
	Label string    `json:"label"`
	By    Statement `json:"by"`
	said  string    // By as text
}

// ReasonMalformed is a reason beside those of package policy: the question could not be understood.
const ReasonMalformed = "malformed"

// ReasonAgreement is the reason of a rule that the site has agreed to, in place of its robots.txt.
const ReasonAgreement = "agreement"

// coversURL tells what a decision covers: this URL, and none that it redirects to. A client that
// follows redirects itself has to ask for each hop, so each decision says so.
const coversURL = "url"

// NewVerdict is a about a URL, as the user wrote it. Of a zero a, it is malformed.
func NewVerdict(url string, a client.Answer) Verdict {
	v := Verdict{
		URL: url, Allowed: a.Allowed, Covers: coversURL, Reason: ReasonName(a.Reason), Group: a.GroupToken,
	}
	if a.Use != "" {
		v.Use = &Use{Label: a.Use, said: a.By}
	}
	if a.Rule.Line > 0 {
		v.Line, v.Rule = a.Rule.Line, a.Rule.String()
	}
	return v
}

// Cut cuts what a site may have made as long as its robots.txt, for those who hold many verdicts.
func (v *Verdict) Cut() {
	const most = 512
	v.Rule, v.Group = cut(v.Rule, most), cut(v.Group, most)
	if u := v.Use; u != nil {
		u.By.Key, u.By.Value, u.By.Text = cut(u.By.Key, most), cut(u.By.Value, most), cut(u.By.Text, most)
	}
}

// About says in v which URL was asked about, and which one was decided on, if that is another. u may be nil.
func (v *Verdict) About(text string, u *url.URL) {
	v.URL = Redacted(text)
	if u != nil && HasDots(text) {
		v.Asked = u.Redacted()
	}
}

func (v *Verdict) Outcome() string {
	switch {
	case v.Reason == ReasonMalformed, v.Unreachable():
		return v.Reason
	case v.Allowed:
		return "allowed"
	default:
		return "refused"
	}
}

// Unreachable reports whether nothing is allowed because robots.txt is not known.
func (v *Verdict) Unreachable() bool { return v.Reason == ReasonName(policy.ReasonUnreachable) }

// Kind tells in one word what refuses: the rules, or that they are not known.
func (v *Verdict) Kind() string {
	if v.Unreachable() {
		return v.Reason
	}
	return "rule"
}

// Because says in one phrase, safe to print, what the verdict rests on.
func (v *Verdict) Because() string {
	switch {
	case v.Unreachable() && v.Error == "":
		return "robots.txt is unreachable"
	case v.Unreachable():
		cause := v.Error
		if v.Robots != nil { // its URL is shown anyway
			cause = strings.TrimPrefix(strings.TrimPrefix(cause, "fetch: "), v.Robots.URL+": ")
		}
		return "robots.txt is unreachable: " + Visible(cause)
	case v.Reason == ReasonMalformed:
		return Visible(v.Error)
	case v.Use != nil:
		return fmt.Sprintf("%s is disallowed by %s", v.Use.Label, Visible(v.Use.said))
	case v.Agreement != nil:
		return fmt.Sprintf("line %d of the agreements, until %s: %s (%s)",
			v.Line, v.Agreement.Until.Format(time.RFC3339), Visible(v.Rule), Visible(v.Agreement.Reason))
	case v.Line > 0:
		return fmt.Sprintf("line %d: %s", v.Line, Visible(v.Rule))
	case v.Reason == ReasonName(policy.ReasonUnavailable):
		return "robots.txt is unavailable" + v.Robots.why()
	default:
		return "no rule matches"
	}
}

type Statement struct{ usage.Statement }

func (s Statement) MarshalJSON() ([]byte, error) {
	var offset, engine any
	if s.In == usage.InMeta {
		offset = s.Offset
	}
	if s.By == usage.PageRule {
		engine = s.Engine.String()
	}
	return Object{
		"mechanism", string(s.By), "in", string(s.In), "line", OrNull(s.Line), "offset", offset, "key", OrNull(s.Key),
		"value", OrNull(s.Value), "engine", engine, "inherited", s.Inherited, "text", s.Text, "problem", OrNull(s.Problem),
	}.MarshalJSON()
}

// Visible makes text from the network safe to print: control characters, bytes that are not UTF-8, and the invisible
// characters that reorder text become escapes. So no file can steer the terminal or forge a line of output.
func Visible(s string) string {
	if !strings.ContainsFunc(s, Hidden) {
		return s
	}
	quoted := strconv.Quote(s) // which escapes these, and quotes and backslashes, too
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// Hidden reports whether Visible escapes r. A space is not hidden; a tab is.
func Hidden(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// Quoted is text from a user for a message: short, safe to print, and without the password of a URL.
func Quoted(text string) string { return fmt.Sprintf("%q", Brief(Redacted(text))) }

// Brief is the beginning of a long text, cut between characters. It is not safe to print: Quoted is.
func Brief(text string) string { return cut(text, 60) }

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Plural is a number with its word, in the plural unless it is 1.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// OrNull is nil, which JSON writes as null, for the zero value.
func OrNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// ReasonName is how JSON names a reason, or that there is none; scripts may rely on it.
func ReasonName(r policy.Reason) string {
	text, _ := r.MarshalText()
	return cmp.Or(string(text), ReasonMalformed)
}
