package lint

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// closings checks what one group disallows (RT401 to RT403).
func (f *checker) closings(g *model.Group) {
	// Often left over from the days before the site was public.
	if rule, exceptions := model.Closing(g.Rules); rule != nil && g.Star != nil {
		if exceptions > 0 {
			f.value("RT401", rule, "everything but the %v of this group is disallowed for *", model.Count(exceptions, "exception"))
		} else if !f.Welcomes() { // else the site names whom it lets in
			f.value("RT401", rule, "everything is disallowed for *")
		}
	}
	for _, r := range g.Rules {
		if !r.Closes() {
			continue
		}
		// Google asks that style sheets and scripts be open: it judges pages as a browser shows them.
		if g.Search != nil && f.closesAssets(model.AgentName(g.Search), r) {
			f.once("RT402", r, r.ValueAt, "", "%s closes style sheets or scripts to %s, which needs them to render pages", r.Value, g.Search.Value)
		}
		// RFC 9309 §3: these rules are no access control, and anyone can read them.
		if word := sensitive(r.Value); word != "" && !f.common(r.Value) {
			f.once("RT403", r, r.ValueAt, "", "%s tells every reader of this file where to find something %s", r.Value, word)
		}
	}
}

// assets are style sheets and scripts that pages of widespread systems need.
var assets = [...]string{
	"/_next/static/css/app.css", "/_next/static/chunks/main.js", "/_nuxt/entry.js", "/_astro/index.css",
	"/wp-includes/js/jquery/jquery.min.js", "/wp-includes/css/dist/block-library/style.min.css",
	"/wp-content/themes/theme/style.css", "/wp-content/plugins/plugin/script.js",
	"/static/css/main.css", "/static/js/main.js", "/assets/app.css", "/assets/app.js", "/build/app.js", "/dist/main.js",
	"/sites/default/files/css/style.css", "/themes/theme/style.css",
	"/css/style.css", "/js/main.js", "/style.css", "/main.js",
}

// closesAssets reports whether a rule decides that style sheets or scripts are closed to a crawler: what an Allow opens
// again is not. What closes the whole site closes more than these (RT401).
func (f *checker) closesAssets(crawler string, r *model.Line) bool {
	group := f.lenient().Group(crawler)
	closers := f.closers[crawler]
	if closers == nil { // once for each crawler, since a decision looks at all of its rules
		closers = map[int]bool{}
		for _, path := range assets {
			// What a star happens to match is no directory of style sheets, unless it stands for directories itself.
			d := group.Decide(path)
			if !d.Allowed && model.Plain(strings.ReplaceAll(model.Core(d.Rule.Pattern), "/*/", "/")) {
				closers[d.Rule.Line] = true
			}
		}
		f.closers[crawler] = closers
	}
	switch {
	case model.Core(r.Value) == "/":
		return false
	case closers[r.Number]:
		return true
	case !asset(r.Value) || !f.mayAsk():
		return false
	}
	path := "/" + strings.Trim(strings.NewReplacer("*", "", "$", "").Replace(r.Value), "/")
	return slices.ContainsFunc([]string{path, path + "/style.css", path + "/main.js"}, func(path string) bool {
		d := group.Decide(path)
		return !d.Allowed && d.Rule.Line == r.Number
	})
}

// mayAsk reports whether a decision is within the bound of a file.
func (f *checker) mayAsk() bool {
	f.asked++
	return f.asked <= maxAsked
}

const maxAsked = 1000

// lenient is the file as Google reads it: what is misspelt was meant to close, too.
func (f *checker) lenient() *policy.Policy {
	if f.google == nil {
		f.google = policy.Google.Parse([]byte(f.Text))
	}
	return f.google
}

// asset tells patterns that close all style sheets or scripts, or a directory of them. "/scripts/" is not among them:
// it mostly comes with a content management system, which keeps there what runs on the server.
func asset(pattern string) bool {
	name := strings.TrimRight(pattern, "*$?/") // lower-casing lengthens what is not UTF-8
	at := strings.LastIndexAny(name, "/*")
	switch strings.ToLower(name[at+1:]) {
	case ".css", ".js":
		return true
	case "css", "js", "javascript", "javascripts", "stylesheets", "styles":
		return at <= 0 || strings.HasPrefix(pattern[len(name):], "/") // else it may be a page: /maps/api/js?
	}
	return false
}

// common reports whether the path is where WordPress, Drupal or Joomla has it: it is no secret.
// Their own files, which sites extend, name it.
func (f *checker) common(pattern string) bool {
	p := strings.ToLower(strings.Trim(pattern, "/*$"))
	switch p {
	case "admin", "?q=admin", "index.php/admin":
		return f.has("?q=admin", "index.php/admin", "core", "cron.php")
	case "administrator":
		return f.has("components", "plugins")
	}
	return p == "wp-admin" || strings.HasSuffix(p, "/wp-admin")
}

// has reports whether a rule is about one of the paths, without the slashes around it.
func (f *checker) has(paths ...string) bool {
	if f.paths == nil {
		f.paths = map[string]bool{}
		for _, l := range f.Lines {
			if l.Rule() {
				f.paths[strings.ToLower(strings.Trim(l.Value, "/*$"))] = true
			}
		}
	}
	return slices.ContainsFunc(paths, func(p string) bool { return f.paths[p] })
}

// secrets are words that make a path read as confidential: not "login" or "password", whose pages are linked from
// everywhere.
const secrets = " admin administrator administration backup backups private secret secrets passwd confidential phpmyadmin " +
	"internal intranet staging dump sql credentials htpasswd htaccess "

// sensitive returns the word that makes a path read as confidential, "" if none does. Only whole words count, as
// "/administrative-law" is no secret.
func sensitive(pattern string) string {
	for word := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return r >= 0x80 || !ascii.IsLetter(byte(r)) }) {
		if lower := strings.ToLower(word); len(word) <= len("administration") && strings.Contains(secrets, " "+lower+" ") {
			return lower
		}
	}
	return ""
}

// effectChecks checks what the file does to a site, and the records besides the rules (RT4xx, RT006, RT011).
func (f *checker) effectChecks() {
	for _, g := range f.Groups {
		f.closings(g)
	}
	hosts := 0 // Yandex read the first Host of the file, whichever group it was in
	for _, l := range f.Lines {
		if l.Kind == "host" {
			hosts++
		}
		f.record(l, hosts)
		f.pacing(l)
	}
	f.sitemaps()
}

// pacing checks what slows down a crawler (RT212, RT409, RT410). Crawl-delay for * is as it should be: it slows down
// each crawler that reads it.
func (f *checker) pacing(l *model.Line) {
	g := l.Group
	switch {
	case l.Kind != model.CrawlDelay && l.Kind != "request-rate" && l.Kind != "visit-time":
		return
	case g == nil && l.Kind == model.CrawlDelay:
		f.line("RT409", l, "the crawl delay stands before any user-agent line, so it is for no crawler")
		return
	case g == nil:
		return
	case l.Kind == model.CrawlDelay:
		f.delay(l)
		// Each of them says so in its documentation; Yandex since 22 February 2018.
		if g.Hasty != nil {
			f.once("RT410", l, -1, "", "%v does not read Crawl-delay, so %s is not slowed down", g.Engine, g.Hasty.Value)
		}
	}
	if a := g.Token; a != nil && len(g.Agents) == 1 {
		f.line("RT212", l, "%s is a token that fetches nothing, so there is nothing to pace", a.Value)
	}
}

// record checks the records that hold wherever they stand: Sitemap was never bound to a group, and what is misspelt is
// so in any. There have been that many Host lines.
func (f *checker) record(l *model.Line, hosts int) {
	inStar := l.Group != nil && l.Group.Star != nil // mistake 11
	switch l.Kind {
	// Google ended its unofficial support on 1 September 2019; the others never had any.
	case "noindex", "nofollow", "noarchive", "nosnippet":
		f.line("RT404", l, "%v has no effect in robots.txt: no engine reads it there", model.FieldName(l.Kind))
	case model.Sitemap:
		// Any host will do, but a full URL it must be, to Google, Yandex and sitemaps.org.
		if !model.AbsoluteURL(l.Value) {
			f.add("RT407", l, l.ValueAt, f.completed(l), "%s is not an absolute URL, so the sitemap is not found", l.Value)
		}
	case "request-rate":
		if !rateForm.MatchString(l.Value) {
			f.once("RT411", l, l.ValueAt, "", "%s is not of the form documents/time with a unit, such as 1/10s", l.Value)
		}
	case "clean-param":
		if len(l.Value) > maxCleanParam || !cleanForm.MatchString(l.Value) {
			f.value("RT412", l, "%s is not of the form a&b /path: parameters joined by &, then perhaps a path of letters, digits "+
				"and . - / * _, in %d characters", l.Value, maxCleanParam)
		}
		if inStar {
			f.line("RT011", l, "Yandex alone reads Clean-param, and this group is for all crawlers")
		}
	// However a Host line is written: what it was for has not worked since 20 March 2018.
	case "host":
		host := strings.TrimPrefix(strings.ToLower(l.Value), "https://")
		if inStar && hosts == 1 && l.Value != "" && !strings.ContainsAny(host, "/[ \t") {
			f.line("RT011", l, "Yandex alone read Host, until March 2018, and this group is for all crawlers")
		} else {
			f.line("RT006", l, "Host told Yandex the main mirror until March 2018; a redirect does so now")
		}
	// Robot-version and Comment: a draft of 2002 that no engine took up. Revisit-after: meant for pages, and read by none
	// even there.
	case "robot-version", "comment", "revisit-after":
		f.line("RT413", l, "no engine reads %v any more", model.FieldName(l.Kind))
	}
}

const (
	maxBingDelay    = 30  // seconds; more is read as 30
	maxCommonsDelay = 300 // seconds; more disallows everything to crawler-commons
)

// delay checks the value of a Crawl-delay (RT409). It is no part of RFC 9309, and means the pause between two fetches
// to some and to Bing a window of 1 to 30 seconds with at most one fetch in it.
func (f *checker) delay(l *model.Line) {
	delay, ok := policy.Parse([]byte("User-agent: *\nCrawl-delay: " + l.Value)).Group("*").CrawlDelay()
	switch {
	// Readers skip the line then, the strict ones also for "5s" or "[5]".
	case !ok:
		f.value("RT409", l, "%s is not a plain number of seconds", l.Value)
	case delay == 0:
		f.value("RT409", l, "a crawl delay of 0 asks for nothing")
	case delay > maxCommonsDelay*time.Second && l.Group.Names("*", "ccbot"):
		f.value("RT409", l, "a crawl delay above %d s shuts out readers such as Common Crawl", maxCommonsDelay)
	case delay > maxBingDelay*time.Second && l.Group.Names("*", "bingbot", "msnbot", "adidxbot"):
		f.value("RT409", l, "Bing waits %d s at most; the others of this group, as long as it says", maxBingDelay)
	}
}

// rateForm is n/m with a unit, and a time of day in UTC that may follow, as Seznam documents
// them: 100/15m, or 1/10s 1800-1900. Without a unit some readers take seconds, Seznam says nothing.
var rateForm = regexp.MustCompile(`^\d+/\d+[smhdSMHD](?:\s+\d{4}-\d{4})?$`)

// cleanForm is what Yandex documents of Clean-param: parameters joined by "&", then perhaps a blank and the prefix of a
// path.
var cleanForm = regexp.MustCompile(`^[^\s?=,;/&]+(?:&[^\s?=,;/&]+)*(?:\s+[a-zA-Z0-9./*_-]+)?$`)

// maxCleanParam is how long a Clean-param may be, in characters (Yandex).
const maxCleanParam = 500

// completed returns the sitemap line with the origin that serves the file, "" if that is not known.
func (f *checker) completed(l *model.Line) string {
	if f.url.Host != "" && l.Value != "" {
		if u, err := f.url.Parse(l.Value); err == nil {
			return l.With(u.String())
		}
	}
	return ""
}

// maxSitemaps is how many sitemaps are looked up among the rules.
const maxSitemaps = 1000

// sitemaps reports sitemaps that search engines may not fetch, though they may fetch the pages around them (RT408). A
// site that shuts an engine out of all or of a directory, such as one language, shuts out the sitemaps there as well,
// and means it. It does not mean the sitemaps that a rule with wildcards happens to match.
func (f *checker) sitemaps() {
	_, own := f.home()
	for _, l := range own {
		var closed []string
		u, _ := url.Parse(l.Value)
		by, target := 0, u.RequestURI()
		among := surroundings(target)
		for _, engine := range [...]string{"Googlebot", "bingbot", "Yandex"} {
			g := f.lenient().Group(engine)
			d := g.Decide(target)
			aimed := model.Plain(model.Core(d.Rule.Pattern)) || language.MatchString(among)
			if !d.Allowed && (!aimed || g.Decide(among).Allowed) {
				closed = append(closed, engine)
				by = d.Rule.Line
			}
		}
		if len(closed) > 0 {
			f.value("RT408", l, "line %d closes the sitemap %s to %v", by, target, strings.Join(closed, ", "))
		}
	}
}

// language is a directory such as "/en/", "/pt-BR/" and "/pt_br/".
var language = regexp.MustCompile(`/[a-zA-Z]{2}(?:[-_][a-zA-Z]{2})?/$`)

// home returns the host that serves the file, "" if that is not known, and the sitemaps there, which the rules are
// about. Without a URL the host is that of the sitemaps, as long as they name only one.
func (f *checker) home() (host string, own []*model.Line) {
	host = f.url.Host
	for _, l := range f.Lines {
		if l.Kind != model.Sitemap || len(own) == maxSitemaps {
			continue
		}
		u, err := url.Parse(l.Value)
		if err != nil || u.Host == "" {
			continue
		}
		host = cmp.Or(host, u.Host)
		if strings.EqualFold(u.Host, host) {
			own = append(own, l)
		} else if f.url.Host == "" {
			return "", nil
		}
	}
	return host, own
}

// surroundings returns the directory of the pages that a sitemap stands among. A directory that is
// only for sitemaps does not count: its pages are those around it.
func surroundings(target string) string {
	target, _, _ = strings.Cut(target, "?")
	if i := strings.Index(strings.ToLower(target), "sitemap"); i >= 0 {
		target = target[:i]
	}
	return target[:strings.LastIndexByte(target, '/')+1]
}
