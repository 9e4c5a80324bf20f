package answer

// An Asker decides what check, filter, match and serve answer. What they ask about comes in three forms: a
// URL and a robots.txt (Check), a URL or path as written (Match), and a line of a list (Listed: Decide, and
// Verdict for an output that has more than the line).

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Asker is who asks, and how robots.txt is read to it. Flags fill it, and serve changes a copy for each
// question. No method but the two that set a field changes it, so it may be used concurrently.
type Asker struct {
	Agent   string // a product token, the first of a list; "*" is a crawler that no group names
	Named   bool   // by --agent
	Dialect policy.Dialect
	All     bool     // read in every dialect; Dialect is RFC9309 then
	Uses    []string // refuse what is disallowed for one of them
	Agreed  *agreement.Agreements
	Explain bool // with the lines of the file that matter

	also []string // whose group counts if none names Agent, see SetAgent
	name string   // all of a list
	by   string   // what chose Dialect

	purpose string // of one that Everyone made
}

// Readings are res as k wants it read: in its dialect, or in all.
func (k *Asker) Readings(res *fetch.Result) []*fetch.Result {
	if k.All {
		return InAllDialects(res)
	}
	return []*fetch.Result{res.In(k.Dialect)}
}

// Check is the verdict about a URL by one reading of its site's robots.txt, which came as from says.
func (k *Asker) Check(u *url.URL, r *fetch.Result, from *Answer) (*Verdict, error) {
	a, err := k.Judge(r.Policy, u)
	if err != nil {
		return nil, err
	}
	v := k.verdict("", r.Dialect, r.Policy, u, a)
	v.Robots = from
	if from.Error != nil {
		v.Error = *from.Error
	}
	if k.Explain {
		d := a.Decision
		if a.Overridden {
			d.Rule = policy.Rule{} // of another file
		}
		v.Lines = append([]FileLine{}, BoundBy(r, k.Obeys(r.Policy)).Explain(u.RequestURI(), d)...)
		if v.Use != nil {
			by := v.Use.By
			v.Lines = append(v.Lines, FileLine{Number: by.Line, Text: string(by.By) + ": " + by.Text, Decides: true})
			slices.SortStableFunc(v.Lines, func(a, b FileLine) int { return a.Number - b.Number })
		}
	}
	return &v, nil
}

// Matching is an Asker with one policy, for any number of URLs. It never changes.
type Matching struct {
	dialect policy.Dialect
	group   policy.Group
	signed  Verdict // by whom, as in each answer
}

// Matching finds once what is the same for all URLs.
func (k *Asker) Matching(p *policy.Policy) *Matching {
	m := &Matching{dialect: k.Dialect, group: p.Group(k.Obeys(p))}
	k.Sign(&m.signed, k.Dialect, p)
	return m
}

// Match is the verdict about a URL or path as it is written. With an error it has the question alone.
func (m *Matching) Match(number int, url string) (Verdict, error) {
	target, err := ReadTarget(m.dialect, url, false)
	if err != nil {
		v := NewVerdict(Redacted(url), client.Answer{})
		v.Number, v.Error = number, err.Error()
		return v, err
	}
	v := NewVerdict(Redacted(url), client.Answer{Decision: m.group.Decide(target)})
	v.Number, v.Agent, v.Dialect = number, m.signed.Agent, m.signed.Dialect
	v.DialectBy, v.Fallback, v.CrawlDelay, v.Purpose = m.signed.DialectBy, m.signed.Fallback, m.signed.CrawlDelay, m.signed.Purpose
	return v, nil
}

// Listed is a line of a list: a URL, or a JSON object that has one. No URL begins with a brace, so that no flag has to
// tell them apart.
type Listed struct {
	Number int
	Text   string
	URL    *url.URL // nil: there is none
	Err    error    // what is wrong with the line, if anything
	Origin fetch.Origin
	Result *fetch.Result // of Origin, once it is known

	written string // the field "url" of an object
}

// ReadListed reads a line whose URL a dialect reads.
func ReadListed(d policy.Dialect, number int, text string) Listed {
	l := Listed{Number: number, Text: text}
	if l.Err = tooLong(text); l.Err == nil && l.IsObject() {
		l.written, l.Err = urlOf(text)
		text = l.written
	}
	if l.Err == nil {
		l.URL, l.Err = ReadURL(d, text)
	}
	if l.Err == nil {
		l.Origin, l.Err = fetch.OriginOf(l.URL)
	}
	return l
}

func (l *Listed) IsObject() bool { return l.Text[0] == '{' }

func urlOf(object string) (string, error) {
	var record struct {
		URL jsontext.Value `json:"url"`
	}
	if err := ReadObject([]byte(object), &record, Lenient); err != nil {
		return "", err
	}
	url := ""
	switch err := strict.Unmarshal(record.URL, &url); {
	case len(record.URL) == 0, err == nil && url == "":
		return "", errors.New(`the field "url" is not there: give it`)
	case err != nil: // of what is no Unicode, other readers would make something else (RFC 8259 §8)
		strict.Unmarshal(record.URL, &url, Lenient) // to show it
		return url, &FieldError{"url", "it is no Unicode text"}
	}
	return url, nil
}

// Decide answers l, whose Result is known, unless there is something wrong with it: then Err says so. It may set Err.
func (k *Asker) Decide(l *Listed) (a client.Answer) {
	if l.Err == nil { // or it is a URL that net/http would not send
		a, l.Err = k.Judge(l.Result.Policy, l.URL)
	}
	return a
}

// Judge decides about u by the agreement with its site, if there is one, or else by p, its robots.txt, for the group that
// binds the crawler. To ask the policy itself would be wrong at times: only package client knows the target that goes on
// the wire.
func (k *Asker) Judge(p *policy.Policy, u *url.URL) (client.Answer, error) {
	rules, overridden := k.rules(p, u)
	a, err := client.DecideWith(rules, k.Obeys(rules), u, k.Uses...)
	a.Overridden = overridden
	return a, err
}

// rules returns those of the agreement with the site of u, if there is one, or else p.
func (k *Asker) rules(p *policy.Policy, u *url.URL) (rules *policy.Policy, overridden bool) {
	if o, err := fetch.OriginOf(u); err == nil {
		if agreed := k.Agreed.Override(o); agreed != nil {
			return agreed, true
		}
	}
	return p, false
}

// verdict is the answer a about u, with what p, its robots.txt, and the agreements say beside it.
func (k *Asker) verdict(text string, d policy.Dialect, p *policy.Policy, u *url.URL, a client.Answer) Verdict {
	v := NewVerdict(text, a)
	rules, _ := k.rules(p, u)
	k.Sign(&v, d, rules)
	v.Name(k.Agreed, u, a)
	if v.Use != nil {
		_, by, _ := usage.For(usage.ParseRobots(rules, k.Obeys(rules), u.RequestURI()), usage.Label(a.Use))
		v.Use.By = Statement{by}
	}
	return v
}

// Name has v, which is a about u, name the agreement that decided, if one did.
func (v *Verdict) Name(agreed *agreement.Agreements, u *url.URL, a client.Answer) {
	o, err := fetch.OriginOf(u)
	if err != nil || !a.Overridden || a.Reason != policy.ReasonRule {
		return
	}
	if v.Agreement = agreed.Of(o); v.Agreement != nil {
		v.Reason, v.Line = ReasonAgreement, v.Agreement.Line(v.Line)
	}
}

// Verdict is a about l, for an output that says more than the line.
func (k *Asker) Verdict(l *Listed, a client.Answer) Verdict {
	if l.Err != nil {
		a = client.Answer{}
	}
	v := NewVerdict(l.Text, a)
	if l.Result != nil && l.URL != nil {
		v = k.verdict(l.Text, k.Dialect, l.Result.Policy, l.URL, a)
	} else {
		k.Sign(&v, k.Dialect, nil)
	}
	v.Number = l.Number
	if l.IsObject() && (l.URL != nil || json.Valid([]byte(l.Text))) {
		v.URL, v.Record = l.written, []byte(strings.ToValidUTF8(l.Text, "\uFFFD"))
	}
	v.About(v.URL, l.URL)
	switch {
	case l.Err != nil:
		v.Error = l.Err.Error()
	case a.Reason == policy.ReasonUnreachable && l.Result.Err != nil:
		v.Error = l.Result.Err.Error()
	}
	return v
}
