package answer

// How a robots.txt came: for fetch, GET /v1/robots and the page of serve, which all need the whole
// fetch.Result. And what package lint is given to judge.

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// Fetched is what fetch --json writes. Every field is always there.
type Fetched struct {
	Dialect  string              `json:"dialect"`
	Robots   *Answer             `json:"robots"`
	Header   map[string][]string `json:"header"`
	Groups   int                 `json:"groups"`
	Rules    int                 `json:"rules"`
	Sitemaps []string            `json:"sitemaps"`
	Bytes    int                 `json:"bytes"`
	Body     *string             `json:"body" zero:"null"`     // null: no file, or not UTF-8
	BodyB64  []byte              `json:"body_b64" zero:"null"` // instead, if the file is not UTF-8
}

func (f *Fetched) Holds() string {
	return fmt.Sprintf("%s, %s, %s in %s", Plural(f.Groups, "group"), Plural(f.Rules, "rule"),
		Plural(len(f.Sitemaps), "sitemap"), Plural(f.Bytes, "byte"))
}

// NewFetched keeps the fields of the header that matter here, and no others: an answer
// may carry 64 KiB of them. The lifetime is as the server states it.
func NewFetched(res *fetch.Result, a *Answer) *Fetched {
	if a.Lifetime != nil {
		lifetime, _ := stated(res)
		own := *a // others have a
		own.Lifetime = new(seconds(lifetime))
		a = &own
	}
	f := &Fetched{
		Dialect:  DialectName(res.Dialect),
		Robots:   a,
		Header:   map[string][]string{},
		Sitemaps: append([]string{}, slices.Collect(res.Policy.Sitemaps())...),
		Bytes:    len(res.Body),
	}
	if a.Outcome == OutcomeRules {
		listing := false // user-agent lines (RFC 9309 §2.1)
		for l := range lint.Lines(res.Dialect, res.Body) {
			switch l.Kind {
			case lint.LineUserAgent:
				if !listing { // two groups with one name are two
					f.Groups++
				}
				listing = true
			case lint.LineAllow, lint.LineDisallow:
				f.Rules++
				listing = false
			}
		}
	}
	switch text := string(res.Body); {
	case !utf8.ValidString(text):
		f.BodyB64 = res.Body
	case res.Body != nil:
		f.Body = &text
	}
	for _, name := range CachingFields {
		if values := res.Header[name]; len(values) > 0 {
			f.Header[name] = values
		}
	}
	return f
}

// CachingFields are the header fields that decide how long an answer holds and how it
// is asked for again (RFC 9111, RFC 9110 §8.8, §10.2.3), and what it is.
var CachingFields = []string{
	"Content-Type", "Cache-Control", "Expires", "Age", "Date", "Vary", "Etag", "Last-Modified", "Retry-After",
}

// ExplainLifetime says how long an answer holds and how that came about: what states it, and which bound of a cache
// applies.
func ExplainLifetime(res *fetch.Result, a *Answer) string {
	if res.Err != nil {
		text := "none: unreachable"
		if a.Retry != nil {
			text += fmt.Sprintf("; ask again after %s", time.Duration(*a.Retry)*time.Second)
		}
		return text
	}
	lifetime, source := stated(res)
	text := lifetime.String() + ", " + map[string]string{
		"status":        "as such a status passes",
		"redirect":      "stated by a redirect on the way",
		"cache-control": "stated by Cache-Control",
		"expires":       "stated by Expires",
		"vary":          "for the answer varies by more than the request says",
		"default":       "as the answer states none",
	}[source]
	if held := held(res); held != lifetime {
		text += fmt.Sprintf("; caches keep it for %s", held)
	}
	return text
}

// Linted is the report about a file that was read, by whatever name.
func Linted(name string, text []byte) lint.Report {
	return lint.Report{Name: name, Findings: append(lint.Name(name), lint.File(text)...), Text: text}
}

// HasServed reports whether res can be judged. What did not answer served nothing, and a file that could not be read
// is not an empty one.
func HasServed(res *fetch.Result) bool {
	return res.StatusCode != 0 && (res.StatusCode/100 != 2 || res.Err == nil)
}

func Served(o fetch.Origin, res *fetch.Result) lint.Answer {
	return lint.Answer{
		URL:         o.RobotsURL().String(),
		StatusCode:  res.StatusCode,
		ContentType: res.Header.Get("Content-Type"),
		RetryAfter:  res.Header.Get("Retry-After"),
		Redirects:   res.Redirects,
		Body:        res.Body,
		Truncated:   res.Truncated,
	}
}

type FileLine struct {
	Number  int    `json:"line"`
	Text    string `json:"text"` // field and value, without comment
	Decides bool   `json:"decides"`
}

// Bound is what of a robots.txt file binds one crawler. Agents and Rules are in the order of their lines,
// which Explain and the page rely on to find them.
type Bound struct {
	group  policy.Group
	Agents []lint.Line // the user-agent lines above its rules
	Rules  []lint.Line
	Last   lint.Line // of the file
}

// BoundBy picks the lines of a file that bind a crawler. A group is known by its rules: their numbers are found in the
// file again, with the user-agent lines above them.
func BoundBy(r *fetch.Result, token string) *Bound {
	b := &Bound{group: r.Policy.Group(token)}
	rules := slices.Collect(b.group.Rules()) // that are not found yet
	var agents []lint.Line
	closed := false // the list of user-agent lines, by a rule (RFC 9309 §2.1)
	for l := range lint.Lines(r.Dialect, r.Body) {
		b.Last = l
		switch l.Kind {
		case lint.LineUserAgent:
			if closed {
				agents, closed = agents[:0], false
			}
			agents = append(agents, l)
		case lint.LineAllow, lint.LineDisallow:
			closed = true
			if len(rules) > 0 && rules[0].Line == l.Number {
				b.Agents, agents = append(b.Agents, agents...), agents[:0]
				b.Rules, rules = append(b.Rules, l), rules[1:]
			}
		}
	}
	return b
}

// Explain picks the lines that the decision d about target rests on: the user-agent lines, and the
// rules that match, with the deciding one.
func (b *Bound) Explain(target string, d policy.Decision) []FileLine {
	var found []FileLine
	for _, l := range b.Agents {
		found = append(found, FileLine{l.Number, l.Field + ": " + l.Value, false})
	}
	var matching []policy.Rule
	if d.Reason != policy.ReasonNoRule { // else none does
		matching = b.group.Matching(target)
	}
	if d.Rule.Line > 0 && d.Rule.Pattern == "" { // an empty rule may decide, and matches nothing
		matching = append(matching, d.Rule)
	}
	for _, rule := range matching {
		i, ok := slices.BinarySearchFunc(b.Rules, rule.Line, func(l lint.Line, n int) int { return l.Number - n })
		if ok {
			l := b.Rules[i]
			found = append(found, FileLine{l.Number, l.Field + ": " + l.Value, l.Number == d.Rule.Line})
		}
	}
	slices.SortFunc(found, func(a, b FileLine) int { return cmp.Compare(a.Number, b.Number) })
	return found
}
