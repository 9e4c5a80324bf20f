package usage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

// Limits of what is read. Those of P-42, 64 lines and 256 statements, are package page's: the
// page rules that come here have been held to them.
const (
	maxText       = 64 << 10 // bytes of all fields or lines that are read at once, or of a tdmrep.json
	maxStatements = 1024     // RFC 9651 §3.2: as many members as a parser must support
)

// Why a statement has no effect.
const (
	problemMore = "there is more than is read"
	problemURL  = "not an absolute URL"
)

// A list collects statements that stand in one place.
type list struct {
	in   Place
	said []Statement
	read int // bytes of text so far
}

// add adds a statement, or one that says that there are more.
func (l *list) add(s Statement) {
	if s.In = l.in; s.In != InMeta {
		s.Offset = -1
	}
	switch n := len(l.said); {
	case n < maxStatements:
		if l.said == nil {
			l.said = make([]Statement, 0, 4)
		}
		l.said = append(l.said, s)
	case n == maxStatements:
		l.said = append(l.said, Statement{By: s.By, In: s.In, Line: s.Line, Offset: s.Offset, Problem: problemMore})
	}
}

// fits reports whether n more bytes of a mechanism may be read, and else says so.
func (l *list) fits(by Mechanism, n int, s Statement) bool {
	if l.read+n <= maxText && len(l.said) <= maxStatements {
		l.read += n
		return true
	}
	s.By, s.Text, s.Problem = by, "", problemMore
	l.add(s)
	return false
}

// dictionary reads a dictionary of preferences (vocab-08 §6). Two fields of a header are
// one dictionary, whose last member of a name counts.
func (l *list) dictionary(fields []string, from Statement) {
	from.By = ContentUsage
	if !l.fits(ContentUsage, len(strings.Join(fields, "")), from) {
		return
	}
	d, err := httpsfv.UnmarshalDictionary(fields)
	if err != nil {
		from.Problem = "not a dictionary (RFC 9651 §3.2), so nothing is known: " + err.Error()
		l.add(from)
		return
	}
	names := d.Names()
	if len(names) == 0 {
		from.Problem = "states no preference"
		l.add(from)
	}
	for _, name := range names {
		member, _ := d.Get(name)
		from.Key, from.Value, from.Problem = name, textOf(member), ""
		if from.Value != "y" && from.Value != "n" {
			from.Problem = "the value is neither y nor n"
		}
		l.add(from)
	}
}

// textOf returns a token as it is. Of any other member it returns its form in a
// dictionary, which is not that of a token y or n.
func textOf(m httpsfv.Member) string {
	item, ok := m.(httpsfv.Item)
	if !ok {
		return "(…)"
	}
	if token, ok := item.Value.(httpsfv.Token); ok {
		return string(token)
	}
	text, err := httpsfv.Marshal(httpsfv.NewItem(item.Value)) // without parameters, which say nothing
	if err != nil {
		return "?"
	}
	return text
}

// noForm is a key with the value no, whatever signs stand around: a site that refuses is understood, also where it has
// a wrong separator or a sign too many. What permits has to be exact.
var noForm = regexp.MustCompile(`(?i)([\w-]+)[^\w,]*[=:][^\w,]*no(?:[^\w-]|$)`)

// signal reads a list of content signals in s.Text, such as search=yes, ai-train=no.
func (l *list) signal(s Statement) {
	s.By = ContentSignal
	if !l.fits(ContentSignal, len(s.Text), s) {
		return
	}
	refused := map[string]bool{}
	for member := range strings.SplitSeq(s.Text, ",") {
		key, value, ok := strings.Cut(member, "=")
		s.Key, s.Value, s.Problem = lower(key), lower(value), ""
		switch {
		case s.Key == "" && !ok:
			continue
		case !ok:
			s.Problem = "not of the form key=value"
		case s.Key == "use" && s.Value != "immediate" && s.Value != "reference" && s.Value != "full":
			s.Problem = "the value is none of immediate, reference, full"
		case s.Key != "use" && s.Value != "yes" && s.Value != "no":
			s.Problem = "the value is neither yes nor no"
		case s.Value == "no":
			refused[s.Key] = true
		}
		l.add(s)
	}
	for _, m := range noForm.FindAllStringSubmatch(s.Text, -1) {
		s.Key, s.Value, s.Problem = lower(m[1]), "no", ""
		if !refused[s.Key] {
			refused[s.Key] = true
			l.add(s)
		}
	}
}

// Names of TDMRep, in lower case.
const (
	reservation = "tdm-reservation"
	tdmPolicy   = "tdm-policy"
)

// tdm reads one property of TDMRep.
func (l *list) tdm(s Statement) {
	s.By = TDMRep
	if !l.fits(TDMRep, len(s.Value), s) {
		return
	}
	s.Value = strings.Trim(s.Value, space)
	switch {
	case s.Key == reservation && s.Value != "0" && s.Value != "1":
		s.Problem = "the value is neither 0 nor 1"
	case s.Key == tdmPolicy && !isAbsolute(s.Value):
		s.Problem = problemURL
	}
	l.add(s)
}

// isAbsolute reports whether s is a URL of http or https with a host.
func isAbsolute(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

const space = " \t\r\n\f"

// lower trims and lowers ASCII: names are ASCII, and the folding of Unicode would make "K" of the Kelvin sign.
func lower(s string) string {
	s = strings.Trim(s, space)
	for i := range len(s) {
		if s[i] >= 0x80 {
			return strconv.QuoteToASCII(s) // matches nothing
		}
	}
	return strings.ToLower(s)
}

// ParseHeader returns what the header of a response says about its content: Content-Usage
// (attach-05), Content-Signal, tdm-reservation and tdm-policy, and Link to a license of RSL.
//
// The field lines of Content-Usage are one dictionary: the last value of a label counts, while of two lines in
// robots.txt both do. X-Robots-Tag is read by package page; see [ParseRules].
func ParseHeader(h http.Header) []Statement {
	l := list{in: InHeader}
	if fields := h[string(ContentUsage)]; len(fields) > 0 {
		l.dictionary(fields, Statement{Text: strings.Join(fields, ", ")})
	}
	for i, value := range h[string(ContentSignal)] {
		l.signal(Statement{Line: i + 1, Text: value})
	}
	for _, name := range [...]string{"Tdm-Reservation", "Tdm-Policy"} {
		for i, value := range h[name] {
			l.tdm(Statement{Line: i + 1, Key: lower(name), Value: value, Text: value})
		}
	}
	for i, value := range h["Link"] {
		l.link(value, i+1)
	}
	return l.said
}

// ParseMeta returns what a meta element says about the use of its page, by the values of
// its attributes name and content: tdm-reservation and tdm-policy (TDMRep). Of any other
// element it returns nil. It has the parameters of what [page.Reader.Metas] calls; the offset is -1 if it
// is not known. Elements that address crawlers are read by package page; see [ParseRules].
func ParseMeta(name, content string, offset int64) []Statement {
	key := lower(name)
	if key != reservation && key != tdmPolicy {
		return nil
	}
	l := list{in: InMeta}
	l.tdm(Statement{Offset: offset, Key: key, Value: content, Text: content})
	return l.said
}

// ParseRules returns the page rules that have an effect for a crawler with the product tokens, as the engine behind the
// dialect reads them; see [page.Rules.For]. If only the nofollow half of a none is in force, its Key is nofollow.
func ParseRules(r page.Rules, d policy.Dialect, tokens ...string) []Statement {
	var l list
	lifted := !r.For(d, tokens...).NoIndex
	for rule, why := range r.Explain(d, tokens...) {
		switch {
		case why != "":
			continue
		case rule.Rule == "none" && lifted:
			rule.Rule = "nofollow" // is what "index" leaves of it at Yandex
		case rule.Rule == "max-snippet" && strings.Trim(rule.Value, "0") == "":
			rule.Value = "0" // however it is written
		}
		s := Statement{By: PageRule, Key: rule.Rule, Value: rule.Value, Engine: d, Text: rule.Text}
		if l.in = InHeader; rule.Line == 0 {
			l.in, s.Offset = InMeta, rule.Offset
		}
		s.Line = rule.Line
		l.add(s)
	}
	return l.said
}

// linkForm is a link of a Link field line and its parameters (RFC 8288 §3), paramForm one of these.
var (
	linkForm  = regexp.MustCompile(`<([^>]*)>((?:[^,"]|"(?:[^"\\]|\\.)*")*)`)
	paramForm = regexp.MustCompile(`;\s*([^\s=;]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)`)
)

// link reads a Link field line and keeps its licenses of RSL.
func (l *list) link(value string, line int) {
	if !l.fits(RSL, len(value), Statement{Line: line}) {
		return
	}
	for _, link := range linkForm.FindAllStringSubmatch(value, -1) {
		if isLicense(link[2]) {
			l.license(line, strings.Trim(link[1], space), value)
		}
	}
}

// isLicense reports whether the parameters of a link say rel=license and the type of RSL. Of
// several rel or type the first counts (RFC 8288 §3.3, §3.4.1).
func isLicense(params string) bool {
	said := map[string]string{}
	for _, p := range paramForm.FindAllStringSubmatch(params, -1) {
		name := lower(p[1])
		said[name] = cmp.Or(said[name], lower(strings.Trim(p[2], space+`"`)))
	}
	media, _, _ := strings.Cut(said["type"], ";")
	words := strings.Fields(said["rel"])
	return strings.Trim(media, space) == "application/rsl+xml" && slices.Contains(words, "license")
}

// ParseTDMRep returns what a file /.well-known/tdmrep.json says about the use of a target, which is that of
// [policy.Group.Decide]. The first entry whose location matches counts. An entry or a property of the wrong type says
// nothing. The package does not fetch the file, which is one more request for each origin.
func ParseTDMRep(file []byte, target string) []Statement {
	l := list{in: InTDMRep}
	var entries []map[string]json.RawMessage // a struct would take names in any case, and the last of them
	if len(file) > maxText {
		l.add(Statement{By: TDMRep, Problem: problemMore})
		return l.said
	}
	err := json.Unmarshal(bytes.TrimPrefix(file, []byte("\ufeff")), &entries) // as RFC 8259 §8.1 lets a parser
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); err != nil && (!mistyped || entries == nil) {
		l.add(Statement{By: TDMRep, Problem: "not a list of TDMRep entries: " + err.Error()})
		return l.said
	}
	locations := make([]string, len(entries))
	for i, e := range entries {
		json.Unmarshal(e["location"], &locations[i])
		if strings.ContainsAny(locations[i], "\x00\r\n#") { // it would be more than a line of robots.txt
			locations[i] = ""
		}
	}
	for i, reach := range reachOf(locations, target) {
		if locations[i] == "" || reach < 0 {
			continue
		}
		e, address := entries[i], ""
		json.Unmarshal(e[tdmPolicy], &address)
		for _, p := range [...][2]string{{reservation, string(e[reservation])}, {tdmPolicy, address}} {
			if p[1] != "" {
				l.tdm(Statement{Line: i + 1, Key: p[0], Value: p[1], Text: p[1]})
			}
		}
		break
	}
	return l.said
}
