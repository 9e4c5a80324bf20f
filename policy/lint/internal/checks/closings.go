package checks

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// closings checks what one group disallows (RT401 to RT403).
func (f *checker) closings(g *model.Group) {
	// Often left over from the days before the site was public.
	if rule, exceptions := model.Closing(g.Rules); rule != nil && g.Star != nil {
		if exceptions > 0 {
			f.add("RT401", rule, rule.ValueAt,
				"", "everything but the %v of this group is disallowed for *", chars.Count(exceptions, "exception"))
		} else if !f.Welcomes() { // else the site names whom it lets in
			f.add("RT401", rule, rule.ValueAt, "", "everything is disallowed for *")
		}
	}
	for _, r := range g.Rules {
		if r.Kind != model.Disallow || r.Value == "" {
			continue
		}
		// Google asks that style sheets and scripts be open: it judges pages as a
		// browser shows them.
		if g.Search != nil && f.closesAssets(g, r) {
			f.once("RT402", r, r.ValueAt,
				"", "%s closes style sheets or scripts to %s, which needs them to render pages", r.Value, g.Search.Value)
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

// closesAssets reports whether a rule decides that style sheets or scripts are closed to the group: what an Allow opens
// again is not. What closes the whole site closes more than these (RT401).
func (f *checker) closesAssets(g *model.Group, r *model.Line) bool {
	if model.Core(r.Value) == "/" {
		return false
	}
	probes := assets[:]
	if asset(r.Value) {
		path := "/" + strings.Trim(strings.NewReplacer("*", "", "$", "").Replace(r.Value), "/")
		probes = append([]string{path, path + "/style.css", path + "/main.js"}, probes...)
	}
	if f.rendered == nil {
		f.rendered = policy.Google.Parse([]byte(f.Text))
	}
	name := model.AgentName(g.Search)
	group := f.rendered.Group(name)
	return slices.ContainsFunc(probes, func(p string) bool {
		d := group.Decide(p)
		return !d.Allowed && d.Rule.Line == r.Number
	})
}

// asset tells patterns that close all style sheets or scripts, or a directory of
// them. "/scripts/" is not among them: it mostly comes with a content management
// system, which keeps there what runs on the server.
func asset(pattern string) bool {
	p := strings.ToLower(strings.TrimRight(pattern, "*$?/"))
	at := strings.LastIndexAny(p, "/*")
	switch p[at+1:] {
	case ".css", ".js":
		return true
	case "css", "js", "javascript", "javascripts", "stylesheets", "styles":
		return at <= 0 || strings.HasPrefix(pattern[len(p):], "/") // else it may be a page: /maps/api/js?
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
