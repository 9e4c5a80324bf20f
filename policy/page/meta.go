package page

import (
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// metadata are names of meta elements that never are crawlers: those of the HTML standard and its registry that occur
// most. Without the table, the list of a page's keywords would count as rules for a crawler called keywords.
var metadata = [...]string{
	"application-name", "author", "color-scheme", "copyright", "description", "format-detection", "generator",
	"keywords", "language", "news_keywords", "rating", "referrer", "subject", "theme-color", "title", "viewport",
}

// engineNames are the names of meta elements that engines document. In
// theirs, and in robots, a word that is not understood is a statement too.
var engineNames = [...]string{
	"googlebot", "googlebot-news", "adsbot-google", "yandex", "yandexbot", "bingbot", "msnbot", "slurp",
}

// meta reads one element. The problem, if any, is that of the element.
func (p *listParser) meta(name, content string, offset int64, problem string) {
	name = trim(name)
	from := Statement{Scope: name, Offset: offset, Problem: problem}
	switch {
	case problem != "" || ascii.FoldEqual(name, "robots"):
		from.Scope = ""
	case !namesCrawler(name, content):
		return
	}
	p.list(content, from)
}

// namesCrawler reports whether a meta element of that name and content is meant
// for a crawler: a known one, or any that is told a known rule.
func namesCrawler(name, content string) bool {
	if holds(engineNames[:], name) {
		return true
	}
	if name == "" || strings.Contains(name, ":") || holds(metadata[:], name) { // og:title
		return false
	}
	for item := range strings.SplitSeq(content, ",") {
		item, _, _ = strings.Cut(item, ":")
		if lookup(trim(item)) != unknown {
			return true
		}
	}
	return false
}
