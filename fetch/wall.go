package fetch

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
)

// wall says why r looks like the answer of a wall in front of a site, a login or a test for bots, and not like
// its robots.txt. It returns an empty string if nothing looks so, or if r is unreachable.
//
// RFC 9309 knows no walls: a 401 or 403 is unavailable (§2.3.1.3) and a page is a file without
// rules (§2.3.1.1), both of which permit everything. See Fetcher.ObeyWalls. For a Result that a
// cache.Cache has kept, Wall says the same as for the one that was fetched, unless a Store had lost its file.
func (r *Result) wall() string {
	challenged := ""
	for _, c := range challenges {
		if challenged == "" && r.Header.Get(c.name) == c.value {
			challenged = c.name + ": " + c.value
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
	case r.isPage():
		return "a page and no file of rules"
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

// challenges are fields by which firewalls say that they answer themselves: of Cloudflare, AWS and Vercel.
var challenges = [...]struct{ name, value string }{
	{"Cf-Mitigated", "challenge"},
	{"X-Amzn-Waf-Action", "challenge"}, {"X-Amzn-Waf-Action", "captcha"},
	{"X-Vercel-Mitigated", "challenge"}, {"X-Vercel-Mitigated", "deny"},
}
