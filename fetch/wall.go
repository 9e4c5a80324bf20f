package fetch

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// wall says why r looks like the answer of a wall; empty if nothing looks so, or if r is unreachable.
func (r *Result) wall() string {
	challenged := ""
	for _, c := range challenges {
		if r.Header.Get(c.name) == c.value {
			challenged = cmp.Or(challenged, c.name+": "+c.value)
		}
	}
	switch {
	case r.Err != nil:
		return ""
	case challenged != "":
		return "a test for bots, " + challenged
	case r.StatusCode == http.StatusUnauthorized:
		return "a login, status 401"
	case r.StatusCode == http.StatusForbidden:
		return "a refusal, status 403"
	case outcomeOf(r.StatusCode, r.Dialect) == rules:
		if wall := wallOf(r.Body); wall != "" && !strings.Contains(r.Policy.String(), "llow: ") { // as UTF-16 may have it
			return wall
		}
	}
	return ""
}

// wallOf says what a body is that holds nothing of a robots.txt; empty if it does, or if all its lines are blank. In a
// page only rules count: CSS has lines with "#", and a page may name its visitor in a User-agent line. Else comments
// count in text alone: some compressed files have a "#" at the begin of a line.
func wallOf(body []byte) string {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(body) == 0 {
		return ""
	}
	page, commented := body[0] == '<', false
	for line := range bytes.FieldsFuncSeq(body, func(c rune) bool { return c == '\r' || c == '\n' }) {
		line = bytes.TrimSpace(line)
		if rule, known := fieldOf(line); rule || known && !page {
			return ""
		}
		commented = commented || bytes.HasPrefix(line, []byte("#"))
	}
	switch {
	case page:
		return "a page and no file of rules"
	case commented && !bytes.ContainsFunc(body, func(c rune) bool { return c < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1a", c) }):
		return ""
	}
	return "no line of a robots.txt"
}

// fieldOf reports whether line is a rule, and whether it is any record of robots.txt, as it is written or often misspelt.
func fieldOf(line []byte) (rule, known bool) {
	field, _, record := bytes.Cut(line, []byte(":"))
	if !record {
		return false, false
	}
	name := string(bytes.TrimSpace(field[:min(len(field), 65)]))
	is, _ := policy.Record{Field: name}.Known()
	name = strings.ToLower(separators.Replace(name))
	rule = slices.Contains([]string{"allow", "disallow", "dissallow", "dissalow", "disalow", "diasllow"}, name)
	return rule, rule || is != "" || name == "useragent"
}

var separators = strings.NewReplacer("-", "", " ", "", "_", "")

// challenges are fields by which firewalls say that they answer themselves: of Cloudflare, AWS and Vercel.
var challenges = [...]struct{ name, value string }{
	{"Cf-Mitigated", "challenge"},
	{"X-Amzn-Waf-Action", "challenge"}, {"X-Amzn-Waf-Action", "captcha"},
	{"X-Vercel-Mitigated", "challenge"}, {"X-Vercel-Mitigated", "deny"},
}
