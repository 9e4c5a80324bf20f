package usage

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

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
// element it returns nil. It has the parameters of [page.Reader.Meta]; the offset is -1 if it
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

// link reads a Link field line (RFC 8288 §3) and keeps its licenses of RSL.
func (l *list) link(value string, line int) {
	if !l.fits(RSL, len(value), Statement{Line: line}) {
		return
	}
	for rest := value; ; {
		_, after, _ := strings.Cut(rest, "<")
		target, params, ok := strings.Cut(after, ">")
		if !ok {
			return
		}
		end := outside(params, ',')
		if isLicense(params[:end]) {
			s := Statement{By: RSL, Line: line, Key: licenseField, Value: strings.Trim(target, space), Text: value}
			if !isAbsolute(s.Value) {
				s.Problem = problemURL
			}
			l.add(s)
		}
		rest = params[end:]
	}
}

// isLicense reports whether the parameters of a link say rel=license and the type of RSL. Of
// several rel or type the first counts (RFC 8288 §3.3, §3.4.1).
func isLicense(params string) bool {
	var rel, media string
	for params != "" {
		end := outside(params, ';')
		name, value, _ := strings.Cut(params[:end], "=")
		value = strings.Trim(value, space+`"`)
		switch lower(name) {
		case "rel":
			rel = cmp.Or(rel, value)
		case "type":
			media = cmp.Or(media, value)
		}
		params = params[min(end+1, len(params)):]
	}
	media, _, _ = strings.Cut(media, ";")
	typed := lower(media) == "application/rsl+xml"
	related := slices.ContainsFunc(strings.Fields(rel), func(word string) bool { return lower(word) == "license" })
	return related && typed
}

// outside returns where c stands in s outside of quotation marks, or len(s).
func outside(s string, c byte) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == c && !quoted:
			return i
		}
	}
	return len(s)
}
