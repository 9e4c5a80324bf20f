package checks

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// completed returns the sitemap line with the origin that serves the file, "" if
// that is not known.
func (f *checker) completed(l *model.Line) string {
	if f.url == nil || l.Value == "" {
		return ""
	}
	u, err := f.url.Parse(l.Value)
	if err != nil {
		return ""
	}
	return l.With(u.String())
}

// maxSitemaps is how many sitemaps are looked up among the rules.
const maxSitemaps = 1000

// siteMap is a sitemap on the host of the file.
type siteMap struct {
	*model.Line
	target string
}

// sitemaps reports sitemaps that search engines may not fetch, though they may fetch the
// pages around them (RT408). A site that shuts an engine out of all or of a directory, such as
// one language, shuts out the sitemaps there as well, and means it. It does not mean the
// sitemaps that a rule with wildcards happens to match.
func (f *checker) sitemaps() {
	places := f.ownSitemaps()
	if len(places) == 0 {
		return
	}
	// The lenient reading: what is misspelt was meant to close, too.
	p := policy.Google.Parse([]byte(f.Text))
	engines := [...]string{"Googlebot", "bingbot", "Yandex"}
	// Looked up once: a group may have to be merged from many.
	var groups [len(engines)]policy.Group
	for i, token := range engines {
		groups[i] = p.Group(token)
	}
	// One question for each sitemap and engine, or two; its cost depends on the length of
	// the path, not on the rules.
	for _, at := range places {
		var closed []string
		by, among := 0, surroundings(at.target)
		for i, g := range groups {
			if d := g.Decide(at.target); !d.Allowed && (g.Decide(among).Allowed || !meant(d.Rule, among)) {
				closed = append(closed, engines[i])
				by = d.Rule.Line
			}
		}
		if len(closed) > 0 {
			f.add("RT408", at.Line, at.ValueAt, "", "line %d closes the sitemap %s to %v", by, at.target, strings.Join(closed, ", "))
		}
	}
}

// meant reports whether the rule that closes a directory, with the sitemaps in it, was made
// for that: it names the directory, or the directory is that of a language.
func meant(r policy.Rule, dir string) bool {
	return model.Plain(model.Core(r.Pattern)) || language().MatchString(path.Base(dir))
}

// language is "en", "pt-BR" and "pt_br".
var language = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z]{2}(?:[-_][a-zA-Z]{2})?$`)
})

// ownSitemaps returns the sitemaps that the rules of the file are about. Rules bind the
// origin of the file alone: if the host that serves it is not known, it is taken for that of
// the sitemaps as long as they name only one.
func (f *checker) ownSitemaps() []siteMap {
	var places []siteMap
	only := ""
	if f.url != nil {
		only = f.url.Host
	}
	for _, l := range f.Lines {
		if l.Kind != model.Sitemap || len(places) == maxSitemaps {
			continue
		}
		u, err := url.Parse(l.Value)
		if err != nil || u.Host == "" {
			continue
		}
		only = cmp.Or(only, u.Host)
		if strings.EqualFold(u.Host, only) {
			places = append(places, siteMap{l, u.RequestURI()})
		} else if f.url == nil {
			return nil // several hosts, and it is not known which is ours
		}
	}
	return places
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
