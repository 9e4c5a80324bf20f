package fetch

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// wall says why r looks like the answer of a wall. It returns an empty string if nothing looks so, or if r is
// unreachable.
func (r *Result) wall() string {
	challenged := ""
	for _, c := range challenges {
		if r.Header.Get(c.name) == c.value {
			challenged = cmp.Or(challenged, c.name+": "+c.value)
		}
	}
	read := r.Policy != nil && outcomeOf(r.StatusCode, r.Dialect) == rules
	switch {
	case r.Err != nil:
		return ""
	case challenged != "":
		return "a test for bots, " + challenged
	case r.StatusCode == http.StatusUnauthorized:
		return "a login, status 401"
	case r.StatusCode == http.StatusForbidden:
		return "a refusal, status 403"
	case read && r.isPage():
		return "a page and no file of rules"
	case read && !holdsLines(r.Body):
		return "no line of a robots.txt"
	}
	return ""
}

// isPage reports whether the Body begins as a page and has no rules. A page that shows what its visitor
// sent may have a name in a User-agent line.
func (r *Result) isPage() bool {
	if !bytes.HasPrefix(bytes.TrimLeft(r.Body, "\ufeff \t\r\n\f\v"), []byte("<")) {
		return false
	}
	text := "\n" + r.Policy.String()
	if strings.Contains(text, "\nAllow: ") || strings.Contains(text, "\nDisallow: ") {
		return false
	}
	// A group without rules has an empty Disallow there, too. Rules end the list of names, so the first name has them, but
	// not where a blank line ends it, too.
	_, name, _ := strings.Cut(text, "\nUser-agent: ")
	name, _, _ = strings.Cut(name, "\n")
	return slices.Collect(r.Policy.Group(name).Rules()) == nil
}

// holdsLines reports whether a line of a body is a record that somebody reads, or a comment, or whether there are only
// blank ones. Comments count in text alone: some compressed files have a "#" at the begin of a line.
func holdsLines(body []byte) bool {
	text := bytes.IndexFunc(body, func(c rune) bool { return c < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1a", c) }) < 0
	blank := true
	for line := range bytes.FieldsFuncSeq(bytes.TrimPrefix(body, []byte("\ufeff")), func(c rune) bool { return c == '\r' || c == '\n' }) {
		line = bytes.TrimSpace(line)
		blank = blank && len(line) == 0
		name, _, record := bytes.Cut(line, []byte(":"))
		if record && isField(string(bytes.TrimSpace(name))) || text && bytes.HasPrefix(line, []byte("#")) {
			return true
		}
	}
	return blank
}

// isField reports whether name is a field of robots.txt, as it is written or often misspelt.
func isField(name string) bool {
	if len(name) > 64 {
		return false
	}
	known, _ := policy.Record{Field: name}.Known()
	name = strings.ToLower(strings.NewReplacer("-", "", " ", "", "_", "").Replace(name))
	return known != "" || slices.Contains([]string{"useragent", "allow", "disallow", "dissallow", "dissalow", "disalow", "diasllow"}, name)
}

// challenges are fields by which firewalls say that they answer themselves: of Cloudflare, AWS and Vercel.
var challenges = [...]struct{ name, value string }{
	{"Cf-Mitigated", "challenge"},
	{"X-Amzn-Waf-Action", "challenge"}, {"X-Amzn-Waf-Action", "captcha"},
	{"X-Vercel-Mitigated", "challenge"}, {"X-Vercel-Mitigated", "deny"},
}
