package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// verdict is an answer about one URL. check, filter and match write it alike.
type verdict struct {
	Number  int             // of the argument or the line, counted from 1
	ID      json.RawMessage // match --jsonl: the record's own
	URL     string          // as the user wrote it
	Agent   string
	Dialect string
	Allowed bool
	Reason  string // a policy.Reason as text; empty if the question was malformed
	Line    int    // of the rule that decided, or of the empty one that allows all; 0: none
	Rule    string
	Group   string           // its product token, as the file writes it
	Error   string           // why robots.txt could not be read, or what is wrong with the URL
	Use     string           // what --uses has, with policy.ReasonUse
	By      *usage.Statement // and what disallows it
	Robots  *answer          // check: where the rules come from
	Lines   []fileLine       // check --explain

	Record json.RawMessage // filter: the line, if it was a JSON object
}

// reasonMalformed is a reason beside those of package policy: the question could not be understood.
const reasonMalformed = "malformed"

// useRecord is a disallowed use in JSON.
type useRecord struct {
	Label string           `json:"label"`
	By    *statementRecord `json:"by"`
}

// decisionRecord is a verdict in JSON. Every field is always there, and null if it does not apply;
// schema.json describes them.
type decisionRecord struct {
	Number  int             `json:"number"`
	ID      json.RawMessage `json:"id"`
	URL     string          `json:"url"`
	Agent   *string         `json:"agent"`
	Dialect *string         `json:"dialect"`
	Allowed bool            `json:"allowed"`
	Covers  string          `json:"covers"`
	Reason  string          `json:"reason"`
	Line    *int            `json:"line"`
	Rule    *string         `json:"rule"`
	Group   *string         `json:"group"`
	Use     *useRecord      `json:"use"`
	Error   *string         `json:"error"`
	Robots  *answer         `json:"robots"`
	Lines   []fileLine      `json:"lines"`
	Record  json.RawMessage `json:"record"`
}

// record is v as output.json writes it.
func (v *verdict) record() decisionRecord {
	r := decisionRecord{
		Number: v.Number, ID: v.ID, URL: v.URL, Agent: orNull(v.Agent), Dialect: orNull(v.Dialect),
		Allowed: v.Allowed, Covers: coversURL, Reason: v.Reason, Line: orNull(v.Line), Rule: orNull(v.Rule), Group: orNull(v.Group),
		Error: orNull(v.Error), Robots: v.Robots, Lines: v.Lines, Record: v.Record,
	}
	if r.Reason == "" {
		r.Reason = reasonMalformed
	}
	if v.By != nil {
		r.Use = &useRecord{v.Use, newStatement(*v.By)}
	}
	return r
}

// coversURL tells what a decision covers: this URL, and none that it redirects to. A client that
// follows redirects itself has to ask for each hop, so each decision says so.
const coversURL = "url"

// orNull is nil, which JSON writes as null, for the zero value.
func orNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// newVerdict is a about a URL, as the user wrote it.
func newVerdict(url string, a client.Answer) verdict {
	v := verdict{URL: url}
	v.answered(a)
	return v
}

// answered fills v from a.
func (v *verdict) answered(a client.Answer) {
	v.Allowed, v.Reason, v.Group, v.Use, v.By = a.Allowed, reasonName(a.Reason), a.Group, a.Use, a.By
	if a.Rule.Line > 0 {
		v.Line, v.Rule = a.Rule.Line, a.Rule.String()
	}
}

// decide is client.DecideWith, which knows no FTP.
func decide(p *policy.Policy, agent string, u *url.URL, uses []string) (client.Answer, error) {
	if strings.EqualFold(u.Scheme, "ftp") {
		return decideFTP(p, agent, u, uses)
	}
	return client.DecideWith(p, agent, u, uses...)
}

// decideFTP decides on all that an FTP client may make of the path: "/%2Fa", "//a" and
// "/a;type=i" can mean "/a", as for client.Transport.
func decideFTP(p *policy.Policy, agent string, u *url.URL, uses []string) (a client.Answer, err error) {
	if u.RawQuery != "" || u.ForceQuery {
		return a, errors.New("FTP knows no query: write the question mark as %3F")
	}
	path := u.EscapedPath()
	file, _, _ := strings.Cut(path, ";type=")
	plain := strings.NewReplacer("%2F", "/", "%2f", "/").Replace(file)
	for _, form := range []string{path, file, plain, "/" + strings.TrimLeft(plain, "/")} {
		page, err := url.Parse("http://" + u.Host + form)
		if err != nil {
			return a, err
		}
		if a, err = decide(p, agent, page, uses); err != nil || !a.Allowed {
			break
		}
	}
	return a, err
}

// status is the exit status that v stands for. A refusal because robots.txt is unreachable
// is "could not find out": the site has not said no.
func (v *verdict) status() int {
	switch {
	case v.Reason == "", v.Reason == reasonName(policy.ReasonUnreachable):
		return exitUnknown
	case v.Allowed:
		return exitOK
	default:
		return exitRefused
	}
}

// outcome is the verdict in one word.
func (v *verdict) outcome() string {
	switch {
	case v.Reason == "":
		return reasonMalformed
	case v.Allowed:
		return "allowed"
	case v.Reason == reasonName(policy.ReasonUnreachable):
		return v.Reason
	default:
		return "refused"
	}
}

// because says in one phrase, safe to print, what the verdict rests on.
func (v *verdict) because() string {
	switch {
	case v.Reason == reasonName(policy.ReasonUnreachable) && v.Error == "":
		return "robots.txt is unreachable"
	case v.Reason == reasonName(policy.ReasonUnreachable):
		return "robots.txt is unreachable: " + visible(v.cause())
	case v.Reason == "":
		return visible(v.Error)
	case v.By != nil:
		return fmt.Sprintf("%s is disallowed by %s", v.Use, visible(v.By.String()))
	case v.Line > 0:
		return fmt.Sprintf("line %d: %s", v.Line, visible(v.Rule))
	case v.Reason == reasonName(policy.ReasonUnavailable):
		return "robots.txt is unavailable" + v.Robots.why()
	default:
		return "no rule matches"
	}
}

// cause is the error without the URL, where that is shown anyway.
func (v *verdict) cause() string {
	if v.Robots == nil {
		return v.Error
	}
	return strings.TrimPrefix(strings.TrimPrefix(v.Error, "fetch: "), v.Robots.URL+": ")
}

// why says what about the answer makes the file unavailable. The answer may be nil.
func (a *answer) why() string {
	switch {
	case a == nil || a.Status == nil:
		return ""
	case a.Truncated:
		return fmt.Sprintf(": longer than %d bytes", fetch.MaxBytes)
	case *a.Status >= 300 && *a.Status < 400:
		return ": too many redirects"
	default:
		return fmt.Sprintf(": %d %s", *a.Status, http.StatusText(*a.Status))
	}
}

// reasonName is how JSON names a reason; scripts may rely on it.
func reasonName(r policy.Reason) string {
	text, _ := r.MarshalText()
	return string(text)
}
