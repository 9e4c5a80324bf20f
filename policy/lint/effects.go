package lint

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// effectChecks checks what the file does to a site, and the records besides the
// rules (RT4xx, RT006, RT011).
func (f *file) effectChecks() {
	for i := range f.groups {
		g := &f.groups[i]
		f.closings(g)
		for _, r := range g.records {
			f.record(r, g)
		}
	}
	// These hold wherever the line stands: Sitemap and Host were never bound to a
	// group, and what is misspelt is so in any.
	hosts := 0
	for i := range f.lines {
		l := &f.lines[i]
		f.loneRecord(l)
		if l.kind == hostField {
			hosts++
			f.hostRecord(l, hosts)
		}
	}
	for _, l := range f.loose {
		if l.kind == crawlDelay {
			f.add("RT409", l, -1, "User-agent: *\n"+l.text,
				"the crawl delay stands before any user-agent line, so it is for no crawler")
		}
	}
	f.sitemaps()
}

// closings checks what one group disallows (RT401 to RT403).
func (f *file) closings(g *group) {
	// Often left over from the days before the site was public.
	if rule, exceptions := closing(g.rules); rule != nil && g.star != nil {
		if exceptions > 0 {
			f.add("RT401", rule, -1, "",
				"everything but the %s of this group is disallowed for *", count(exceptions, "exception"))
		} else {
			f.add("RT401", rule, -1, "", "everything is disallowed for *")
		}
	}
	for _, r := range g.rules {
		if r.kind != disallow || r.value == "" {
			continue
		}
		// Google asks that style sheets and scripts be open: it judges pages as a
		// browser shows them.
		if g.search != nil && asset(r.value) {
			f.add("RT402", r, r.valueAt, "",
				"%s closes style sheets or scripts to %s, which needs them to render pages",
				quote(r.value), quote(g.search.value))
		}
		// RFC 9309 §3: these rules are no access control, and anyone can read them.
		if word := sensitive(r.value); word != "" {
			f.add("RT403", r, r.valueAt, "",
				"%s tells everybody where to find something %s", quote(r.value), quote(word))
		}
	}
}

// asset tells patterns that close all style sheets or scripts, or a directory of
// them. "/scripts/" is not among them: it mostly comes with a content management
// system, which keeps there what runs on the server.
func asset(pattern string) bool {
	p := strings.ToLower(strings.TrimRight(pattern, "*$?/"))
	name := p[strings.LastIndexAny(p, "/*")+1:]
	switch name {
	case "css", "js", ".css", ".js", "javascript", "javascripts", "stylesheets", "styles":
		return true
	}
	return false
}

// sensitive returns the word that makes a path read as confidential, "" if none
// does. Only whole words count, as "/administrative-law" is no secret; and not
// "login" or "password", whose pages are linked from everywhere.
func sensitive(pattern string) string {
	for word := range strings.FieldsFuncSeq(pattern, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		if len(word) > len("administration") {
			continue
		}
		switch lower := strings.ToLower(word); lower {
		case "admin", "administrator", "administration", "backup", "backups", "private", "secret", "secrets",
			"passwd", "confidential", "phpmyadmin", "internal", "intranet", "staging", "dump", "sql", "credentials",
			"htpasswd", "htaccess":
			return lower
		}
	}
	return ""
}

// record checks a record inside a group (RT011, RT212, RT410).
func (f *file) record(l *line, g *group) {
	// Mistake 11. Content-Signal and the like are made for * and not among these.
	switch l.kind {
	case hostField, cleanParam, crawlDelay, requestRate, visitTime:
		if g.star != nil {
			f.add("RT011", l, -1, "",
				"%s is read by few engines, and stands in a group for all", fieldName(l.kind))
		}
	}
	switch l.kind {
	case crawlDelay:
		// Each of them says so in its documentation; Yandex since 22 February 2018.
		if g.hasty != nil {
			f.add("RT410", l, -1, "",
				"%s does not read Crawl-delay, so %s is not slowed down", g.engine, quote(g.hasty.value))
		}
		fallthrough
	case requestRate, visitTime:
		if a := g.token; a != nil {
			f.add("RT212", l, -1, "",
				"%s is a token that fetches nothing, so there is nothing to pace", quote(a.value))
		}
	}
}

// loneRecord checks the records whose meaning does not depend on their group.
func (f *file) loneRecord(l *line) {
	switch l.kind {
	// Google ended its unofficial support on 1 September 2019; the others never had
	// any.
	case noindex, nofollow, noarchive, nosnippet:
		f.add("RT404", l, -1, "",
			"%s has no effect in robots.txt: no engine reads it there", fieldName(l.kind))
	case sitemap:
		// Any host will do, but a full URL it must be, to Google, Yandex and
		// sitemaps.org.
		if !absoluteURL(l.value) {
			f.add("RT407", l, l.valueAt, f.absolute(l),
				"%s is not an absolute URL, so the sitemap is not found", quote(l.value))
		}
	case crawlDelay:
		f.delay(l)
	case requestRate:
		if !validRate(l.value) {
			f.add("RT411", l, l.valueAt, "",
				"%s is not of the form documents/time with a unit, such as 1/10s", quote(l.value))
		}
	case cleanParam:
		if problem := cleanProblem(l.value); problem != "" {
			f.add("RT412", l, l.valueAt, "", "%s %s", quote(l.value), problem)
		}
	// Host: Yandex, until 2018. Robot-version and Comment: a draft of 2002 that
	// no other engine took up. Revisit-after: meant for pages, and read by none even there.
	case hostField, robotVersion, commentField, revisitAfter:
		f.add("RT413", l, -1, "", "no engine reads %s any more", fieldName(l.kind))
	}
}

// absolute returns the sitemap line with the origin that serves the file, "" if
// that is not known.
func (f *file) absolute(l *line) string {
	if f.url == nil || l.value == "" {
		return ""
	}
	u, err := f.url.Parse(l.value)
	if err != nil {
		return ""
	}
	return l.with(u.String())
}

// hostRecord checks a Host line, the nth of the file (RT006). The line is reported
// however it is written: what it was for has not worked since 20 March 2018. The
// form comes first, for authors who keep it for a reader of their own.
func (f *file) hostRecord(l *line, nth int) {
	v, _ := strings.CutPrefix(strings.ToLower(l.value), "https://") // the form for sites on https
	name, path, _ := strings.Cut(v, "/")
	bare, _, _ := strings.Cut(name, ":") // without port; of an IPv6 address this leaves its bracket
	_, notIP := netip.ParseAddr(bare)
	switch {
	case nth > 1:
		f.add("RT006", l, -1, "", "this is Host number %d, and only the first was ever read", nth)
	case v == "":
		f.add("RT006", l, -1, "", "Host names no host")
	case strings.HasPrefix(v, "http://"):
		f.add("RT006", l, l.valueAt, l.with(strings.Trim(v[len("http://"):], "/")),
			"Host takes a name, and %s has a scheme", quote(l.value))
	case name != v:
		f.add("RT006", l, l.valueAt, l.with(name),
			"Host takes a name, and %s has a path %s", quote(l.value), quote("/"+path))
	case notIP == nil || strings.HasPrefix(bare, "["):
		f.add("RT006", l, l.valueAt, "", "Host takes a name, and %s is an IP address", quote(l.value))
	default:
		f.add("RT006", l, -1, "", "Host told Yandex the main mirror until March 2018; a redirect does so now")
	}
}

const (
	maxBingDelay    = 30  // seconds; more is read as 30
	maxCommonsDelay = 300 // seconds; more disallows everything to crawler-commons
)

// delay checks the value of a Crawl-delay (RT409). It is no part of RFC 9309, and
// means the pause between two fetches to some and to Bing a window of 1 to 30
// seconds with at most one fetch in it.
func (f *file) delay(l *line) {
	seconds, ok := decimal(l.value)
	switch {
	// Readers skip the line then, the strict ones also for "5s" or "[5]".
	case !ok:
		f.add("RT409", l, l.valueAt, "", "%s is not a plain number of seconds", quote(l.value))
	case seconds == 0:
		f.add("RT409", l, l.valueAt, "", "a crawl delay of 0 asks for nothing")
	case seconds > maxCommonsDelay:
		f.add("RT409", l, l.valueAt, l.with(strconv.Itoa(maxBingDelay)),
			"a crawl delay above %d s shuts out readers such as Common Crawl, and Bing takes %d s at most",
			maxCommonsDelay, maxBingDelay)
	case seconds > maxBingDelay:
		f.add("RT409", l, l.valueAt, l.with(strconv.Itoa(maxBingDelay)),
			"Bing takes a crawl delay of at most %d s", maxBingDelay)
	}
}

// decimal reads digits with at most one point among them, which need not have
// digits on both sides: ".5" is common.
func decimal(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 || strings.Trim(s, ".") == "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// validRate reads n/m with a unit, and a time of day in UTC that may follow, as
// Seznam documents them: 100/15m, or 1/10s 1800-1900. Without a unit some readers
// take seconds, Seznam says nothing.
func validRate(s string) bool {
	words := strings.Fields(s)
	if len(words) < 1 || len(words) > 2 {
		return false
	}
	n, m, ok := strings.Cut(words[0], "/")
	if !ok || m == "" || strings.IndexByte("smhdSMHD", m[len(m)-1]) < 0 || !digits(n) || !digits(m[:len(m)-1]) {
		return false
	}
	if len(words) == 1 {
		return true
	}
	from, to, ok := strings.Cut(words[1], "-")
	return ok && len(from) == 4 && len(to) == 4 && digits(from) && digits(to)
}

// digits tells a word of digits alone.
func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// cleanProblem says what is wrong with a Clean-param, "" if nothing is. Yandex
// documents parameters joined by "&", then a blank and a path prefix of letters,
// digits and . - / * _ only, in 500 characters.
func cleanProblem(v string) string {
	words := strings.Fields(v)
	if len(words) == 0 {
		return "names no parameter"
	}
	path := ""
	if len(words) > 1 {
		path = words[1]
	}
	switch {
	case len(v) > maxYandexClean:
		return "is longer than 500 characters"
	case words[0][0] == '/':
		return "begins with the path, which belongs after the parameters"
	// A value, a list of another kind, or a whole query was written.
	case strings.ContainsAny(words[0], "?=,;/"), strings.Contains("&"+words[0]+"&", "&&"):
		return "has parameters that are not joined by & alone"
	case len(words) > 2:
		return "has more than parameters and one path"
	case strings.TrimFunc(path, cleanPathRune) != "":
		return "has characters in its path that Yandex does not take"
	}
	return ""
}

// cleanPathRune tells the characters of a path in a Clean-param.
func cleanPathRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-/*_", r)
}

// maxSitemaps is how many sitemaps are looked up among the rules.
const maxSitemaps = 1000

// sitemaps reports sitemaps that search engines may not fetch. Rules bind the
// origin of the file alone: if the host that serves it is not known, it is taken
// for that of the sitemaps as long as they name only one.
func (f *file) sitemaps() {
	type place struct {
		*line
		target string
	}
	var places []place
	only := ""
	if f.url != nil {
		only = f.url.Host
	}
	for i := range f.lines {
		l := &f.lines[i]
		if l.kind != sitemap || len(places) == maxSitemaps {
			continue
		}
		u, err := url.Parse(l.value)
		if err != nil || u.Host == "" {
			continue
		}
		if only == "" {
			only = u.Host
		}
		if strings.EqualFold(u.Host, only) {
			places = append(places, place{l, target(u)})
		} else if f.url == nil {
			return // several hosts, and it is not known which is ours
		}
	}
	if len(places) == 0 {
		return
	}
	// The lenient reading: what is misspelt was meant to close, too.
	p := policy.Google.Parse([]byte(f.text))
	// One question for each sitemap and engine; its cost depends on the length of
	// the path, not on the rules.
	for _, token := range [...]string{"Googlebot", "bingbot", "Yandex"} {
		g := p.Group(token)
		for i, at := range places {
			if at.line == nil {
				continue
			}
			if d := g.Decide(at.target); !d.Allowed {
				f.add("RT408", at.line, at.valueAt, "",
					"line %d closes the sitemap %s to %s", d.Rule.Line, quote(at.target), token)
				places[i].line = nil // once is enough
			}
		}
	}
}

// target returns the path and query of a URL as they are sent (RFC 9112 §3.2.1).
func target(u *url.URL) string {
	t := u.EscapedPath()
	if t == "" {
		t = "/"
	}
	if u.RawQuery != "" {
		t += "?" + u.RawQuery
	}
	return t
}
