package fetch

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// wallSign returns what makes r look like the answer of a wall, or "" if nothing does or r is unreachable.
func (r *Result) wallSign() string {
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
		if wall := wallOf(r.Body); wall != "" && !strings.Contains(r.Policy.String(), "llow: ") { // as a file in UTF-16 has
			return wall
		}
	}
	return ""
}

// wallOf describes a body without any line of a robots.txt. It returns "" for any other, also if all lines are blank.
// In a page only rules count: CSS has lines with "#", and a page may name its visitor in a User-agent line. Elsewhere a
// comment counts if all is text: some compressed files have a "#" at the start of a line.
func wallOf(body []byte) string {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(body) == 0 {
		return ""
	}
	page, commented := body[0] == '<', false
	binary := func(c rune) bool { return c < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1a", c) }
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
	case commented && !bytes.ContainsFunc(body, binary):
		return ""
	}
	return "no line of a robots.txt"
}

// fieldOf reports whether line is a rule, and whether it is any line of a robots.txt, misspelt ones included.
func fieldOf(line []byte) (rule, known bool) {
	field, _, record := bytes.Cut(line, []byte(":"))
	if !record {
		return false, false
	}
	name := string(bytes.TrimSpace(field[:min(len(field), 65)]))
	usual, _ := policy.Record{Field: name}.Known()
	name = strings.ToLower(separators.Replace(name))
	rule = slices.Contains([]string{"allow", "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"}, name)
	return rule, rule || usual != "" || name == "useragent" || name == "sitemap"
}

var separators = strings.NewReplacer("-", "", " ", "", "_", "")

// challenges are fields with which the firewalls of Cloudflare, AWS and Vercel say that they answer themselves.
var challenges = [...]struct{ name, value string }{
	{"Cf-Mitigated", "challenge"},
	{"X-Amzn-Waf-Action", "challenge"}, {"X-Amzn-Waf-Action", "captcha"},
	{"X-Vercel-Mitigated", "challenge"}, {"X-Vercel-Mitigated", "deny"},
}
