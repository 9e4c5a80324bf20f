package answer

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Verdict is an answer about one URL. check, filter, match and the service write it alike: AppendJSON has its form, and
// schema.json describes it. What a reader decodes is a Verdict, too, but for Use.
type Verdict struct {
	Number    int             // of the argument or the line, counted from 1
	ID        json.RawMessage // match --jsonl: the record's own
	URL       string          // as the user wrote it
	Agent     string
	Dialect   string
	Allowed   bool
	Reason    string // a policy.Reason as text; empty if the question was malformed
	Line      int    // of the rule that decided, or of the empty one that allows all; 0: none
	Rule      string
	Group     string           // its product token, as the file writes it
	Error     string           // why robots.txt could not be read, or what is wrong with the URL
	Use       string           // what --uses has, with policy.ReasonUse
	By        *usage.Statement // and what disallows it
	Agreement *client.Agreement
	Robots    *Answer    // check: where the rules come from
	Lines     []FileLine // check --explain

	Record json.RawMessage // filter: the line, if it was a JSON object
}

// ReasonMalformed is a reason beside those of package policy: the question could not be understood.
const ReasonMalformed = "malformed"

// coversURL tells what a decision covers: this URL, and none that it redirects to. A client that
// follows redirects itself has to ask for each hop, so each decision says so.
const coversURL = "url"

// NewVerdict is a about a URL, as the user wrote it.
func NewVerdict(url string, a client.Answer) Verdict {
	v := Verdict{
		URL: url, Allowed: a.Allowed, Reason: ReasonName(a.Reason), Group: a.Group, Use: a.Use, By: a.By, Agreement: a.Agreement,
	}
	if a.Rule.Line > 0 {
		v.Line, v.Rule = a.Rule.Line, a.Rule.String()
	}
	return v
}

// Outcome is the verdict in one word.
func (v *Verdict) Outcome() string {
	switch {
	case v.Reason == "":
		return ReasonMalformed
	case v.Allowed:
		return "allowed"
	case v.Unreachable():
		return v.Reason
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
	case v.Reason == "":
		return Visible(v.Error)
	case v.By != nil:
		return fmt.Sprintf("%s is disallowed by %s", v.Use, Visible(v.By.String()))
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

// Statement is a usage.Statement in JSON.
func Statement(s usage.Statement) Object {
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
	}
}
