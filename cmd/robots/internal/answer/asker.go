package answer

// An Asker decides what check, filter, match and serve answer. What they ask about comes in three forms: a
// URL and a Reading (Check), a URL or path as written (Match), and a line of a list (Listed: Decide, and
// Verdict for an output that has more than the line).

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Asker is who asks, and how robots.txt is read to it. Flags fill it, and serve changes a copy for each
// question. No method but the two that set a field changes it, so it may be used concurrently.
type Asker struct {
	Agent   string // a product token; "*" is a crawler that no group names
	Dialect policy.Dialect
	All     bool     // read in every dialect; Dialect is RFC9309 then
	Uses    []string // refuse what is disallowed for one of them
	Agreed  *agreement.Agreements
	Explain bool // with the lines of the file that matter
}

// SetAgent takes a product token, with or without a version behind it ("ExampleBot/1.0"). Text
// with a blank is refused: a name of two words is no token, and the first word of a browser's
// User-Agent field is not the crawler's.
func (k *Asker) SetAgent(agent string) error {
	if strings.ContainsFunc(agent, Blank) {
		return fmt.Errorf("%s holds a blank: give the product token alone, like ExampleBot", Quoted(agent))
	}
	token := agent
	if agent != "*" {
		token = policy.ProductToken(agent)
	}
	if token == "" {
		return fmt.Errorf("%s holds no product token, like ExampleBot (RFC 9309 section 2.2.1)", Quoted(agent))
	}
	k.Agent = token
	return nil
}

// SetDialect takes a dialect by name, or "all", with which Dialect is the one that InAllDialects starts with.
func (k *Asker) SetDialect(name string) (err error) {
	if k.All = name == "all"; k.All {
		name = DialectName(policy.RFC9309)
	}
	if k.Dialect, err = DialectByName(name); err != nil {
		return fmt.Errorf("%w, or all", err)
	}
	return nil
}

// Readings are res, which was read in the dialect of k, as k wants it read: in that one, or in all.
func (k *Asker) Readings(res *fetch.Result) []Reading {
	if k.All {
		return InAllDialects(res)
	}
	return []Reading{{k.Dialect, res}}
}

// Check is the verdict about a URL by one reading of its site's robots.txt, which came as from says. To ask
// r.Result.Policy would be wrong at times: only package client knows the target that goes on the wire, and what holds
// for dot segments.
func (k *Asker) Check(u *url.URL, r Reading, from *Answer) (*Verdict, error) {
	a, err := k.ask(r.Result.Policy, u)
	if err != nil {
		return nil, err
	}
	v := k.verdict("", r.Result.Policy, u, a)
	v.Agent, v.Dialect, v.Robots = k.Agent, DialectName(r.Dialect), from
	if from.Error != nil {
		v.Error = *from.Error
	}
	if k.Explain {
		d := a.Decision
		if a.Overridden {
			d.Rule = policy.Rule{} // of another file
		}
		v.Lines = append([]FileLine{}, r.Bound(k.Agent).Explain(u.RequestURI(), d)...)
		if v.Use != nil {
			by := v.Use.By
			v.Lines = append(v.Lines, FileLine{Number: by.Line, Text: string(by.By) + ": " + by.Text, Decides: true})
			slices.SortStableFunc(v.Lines, func(a, b FileLine) int { return a.Number - b.Number })
		}
	}
	return &v, nil
}

// Match is the verdict of a group about a URL or path as it is written. With an error it has the question alone.
func (k *Asker) Match(g policy.Group, number int, url string) (Verdict, error) {
	target, err := ReadTarget(k.Dialect, url, false)
	if err != nil {
		v := NewVerdict(url, client.Answer{})
		v.Number, v.Error = number, err.Error()
		return v, err
	}
	v := NewVerdict(url, client.Answer{Decision: g.Decide(target)})
	v.Number, v.Agent, v.Dialect = number, k.Agent, DialectName(k.Dialect)
	return v, nil
}

// MaxURL is how long a URL may be that is read from a list, in bytes.
const MaxURL = 64 << 10

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

// ReadListed reads a line whose URL a dialect reads. Of one that is too long, text is only the beginning.
func ReadListed(d policy.Dialect, number int, text string, tooLong bool) Listed {
	l := Listed{Number: number, Text: text}
	switch {
	case tooLong:
		l.Err = fmt.Errorf("longer than %d bytes", MaxURL)
	case l.IsObject():
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

// IsObject reports whether the line is one of JSON.
func (l *Listed) IsObject() bool { return l.Text[0] == '{' }

// urlOf returns the field "url" of a line. A list may have millions of such lines, so what encoding/json
// reads as Fields would is left to it.
func urlOf(object string) (string, error) {
	var url string
	var err error
	if plain(object, `"url"`) {
		record := struct{ URL *string }{&url}
		err = misfit("", json.Unmarshal([]byte(object), &record))
	} else {
		err = Fields(object, map[string]any{"url": &url})
	}
	if err == nil && url == "" {
		err = errors.New(`the field "url" is not there: give it`)
	}
	return url, err
}

// plain reports whether json.Unmarshal, which takes a third of the time, finds what Fields does: no other name can be
// taken for one of names, which are quoted.
func plain(object string, names ...string) bool {
	if strings.Contains(object, `\u`) || strings.Contains(object, "ſ") || !utf8.ValidString(object) { // ſ is an s to encoding/json
		return false
	}
	lower := strings.ToLower(object)
	for _, name := range names {
		if n := strings.Count(lower, name); n > 1 || n == 1 && !strings.Contains(object, name) {
			return false
		}
	}
	return true
}

// Fields decodes the fields of a JSON object into the pointers that into has under their names. No later reader
// may understand the object differently: unlike encoding/json, Fields tells "URL" from "url" and refuses a name
// that is there twice.
func Fields(object string, into map[string]any) error {
	// It decodes nothing, and sees whether the whole is well-formed and an object.
	if err := json.Unmarshal([]byte(object), &struct{}{}); err != nil {
		return misfit("", err)
	}
	d, seen := json.NewDecoder(strings.NewReader(object)), map[string]bool{}
	d.Token() // its brace: from here on it is known to be well-formed
	for d.More() {
		t, _ := d.Token()
		name := t.(string)
		var value any = new(json.RawMessage)
		if field := into[name]; field != nil {
			value = &Unicode{field}
			if seen[name] {
				return fmt.Errorf("the field %q is there twice", name)
			}
		}
		seen[name] = true
		if err := d.Decode(value); err != nil {
			return misfit(name, fmt.Errorf("the field %q: %w", name, err))
		}
	}
	return nil
}

// Unicode decodes into a pointer. Where a string is not UTF-8, or holds half of a surrogate pair ("\ud800"),
// encoding/json would put U+FFFD, and other readers something else (RFC 8259 §8): that is another URL.
type Unicode struct{ Into any }

func (u *Unicode) UnmarshalJSON(data []byte) error {
	text := unicodeOf(data)
	err := json.Unmarshal(text, u.Into) // of what is refused, too: the answer names it
	if err == nil && !bytes.Equal(text, data) {
		err = errors.New("it is no Unicode text")
	}
	return err
}

// unicodeOf is well-formed JSON with U+FFFD where its text is no Unicode: some readers, such as jq, end there.
func unicodeOf(data []byte) []byte {
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	if !bytes.Contains(data, []byte(`\u`)) {
		return data
	}
	data = bytes.Clone(data)
	// A backslash is in a string, and what it escapes is all there.
	for rest := data; ; {
		_, escape, found := bytes.Cut(rest, []byte(`\`))
		if !found {
			return data
		}
		rest = escape[1:]
		if half := unit(escape); utf16.IsSurrogate(half) {
			if pair := rest[5:]; rest[4] == '\\' && utf16.DecodeRune(half, unit(pair)) != unicode.ReplacementChar {
				rest = pair
			} else {
				copy(rest, "fffd")
			}
		}
	}
}

// unit is the UTF-16 code unit of an escape without its backslash; 0 if it is another escape.
func unit(escape []byte) rune {
	if len(escape) == 0 || escape[0] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(escape[1:5]), 16, 16)
	return rune(n)
}

// misfit says which field a JSON value of a wrong type stands in, if err tells of one, without the names of Go's types.
// name is that of the field; empty: the value is all there is.
func misfit(name string, err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	if name = cmp.Or(strings.ToLower(e.Field), name); name == "" {
		return fmt.Errorf("a JSON %s is no question: write an object", e.Value)
	}
	return fmt.Errorf("the field %q: a JSON %s does not fit here", name, e.Value)
}

// Decide answers l, whose Result is known, unless there is something wrong with it: then Err says so. It may
// set Err.
func (k *Asker) Decide(l *Listed) (a client.Answer) {
	if l.Err == nil { // or it is a URL that net/http would not send
		a, l.Err = k.ask(l.Result.Policy, l.URL)
	}
	return a
}

// ask decides about u by the agreement with its site, if there is one, or else by p, its robots.txt.
func (k *Asker) ask(p *policy.Policy, u *url.URL) (client.Answer, error) {
	rules, overridden := k.rules(p, u)
	a, err := client.DecideWith(rules, k.Agent, u, k.Uses...)
	a.Overridden = overridden
	return a, err
}

// Quick is the answer about u by p, its robots.txt, for who wants to know no more; the zero Answer if there is none.
func (k *Asker) Quick(p *policy.Policy, u *url.URL) client.Answer {
	a, _ := k.ask(p, u)
	return a
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
func (k *Asker) verdict(text string, p *policy.Policy, u *url.URL, a client.Answer) Verdict {
	v := NewVerdict(text, a)
	if o, err := fetch.OriginOf(u); err == nil && a.Overridden {
		v.Agreement = k.Agreed.Of(o)
	}
	if v.Use != nil {
		rules, _ := k.rules(p, u)
		_, by, _ := usage.For(usage.ParseRobots(rules, k.Agent, u.RequestURI()), usage.Label(a.Use))
		v.Use.By = Statement{by}
	}
	return v
}

// Verdict is a about l, for an output that says more than the line.
func (k *Asker) Verdict(l *Listed, a client.Answer) Verdict {
	if l.Err != nil {
		a = client.Answer{}
	}
	v := NewVerdict(l.Text, a)
	if l.Result != nil && l.URL != nil {
		v = k.verdict(l.Text, l.Result.Policy, l.URL, a)
	}
	v.Number, v.Agent, v.Dialect = l.Number, k.Agent, DialectName(k.Dialect)
	if l.IsObject() && (l.URL != nil || json.Valid([]byte(l.Text))) {
		v.URL, v.Record = l.written, unicodeOf([]byte(l.Text))
	}
	switch {
	case l.Err != nil:
		v.Error = l.Err.Error()
	case a.Reason == policy.ReasonUnreachable && l.Result.Err != nil:
		v.Error = l.Result.Err.Error()
	}
	return v
}
