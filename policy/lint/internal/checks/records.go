package checks

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// effectChecks checks what the file does to a site, and the records besides the
// rules (RT4xx, RT006, RT011).
func (f *checker) effectChecks() {
	for _, g := range f.Groups {
		f.closings(g)
	}
	hosts := 0 // Yandex read the first Host of the file, whichever group it was in
	for _, l := range f.Lines {
		if l.Kind == model.HostField {
			hosts++
			f.hostRecord(l, hosts)
		}
		f.loneRecord(l)
		if l.Group != nil {
			f.pacing(l)
		}
	}
	for _, l := range f.Loose {
		if l.Kind == model.CrawlDelay {
			f.add("RT409", l, -1, "", "the crawl delay stands before any user-agent line, so it is for no crawler")
		}
	}
	f.sitemaps()
}

// pacing checks a delay inside a group (RT212, RT409, RT410). Crawl-delay for * is as it should be:
// it slows down each crawler that reads it.
func (f *checker) pacing(l *model.Line) {
	g := l.Group
	switch l.Kind {
	case model.CrawlDelay:
		f.delay(l)
		// Each of them says so in its documentation; Yandex since 22 February 2018.
		if g.Hasty != nil {
			f.once("RT410", l, -1, "", "%v does not read Crawl-delay, so %s is not slowed down", g.Engine, g.Hasty.Value)
		}
		fallthrough
	case model.RequestRate, model.VisitTime:
		if a := g.Token; a != nil && len(g.Agents) == 1 {
			f.add("RT212", l, -1, "", "%s is a token that fetches nothing, so there is nothing to pace", a.Value)
		}
	}
}

// loneRecord checks the records that hold wherever they stand: Sitemap was never bound to a group, and what
// is misspelt is so in any.
func (f *checker) loneRecord(l *model.Line) {
	switch l.Kind {
	// Google ended its unofficial support on 1 September 2019; the others never had
	// any.
	case model.Noindex, model.Nofollow, model.Noarchive, model.Nosnippet:
		f.add("RT404", l, -1, "", "%v has no effect in robots.txt: no engine reads it there", model.FieldName(l.Kind))
	case model.Sitemap:
		// Any host will do, but a full URL it must be, to Google, Yandex and
		// sitemaps.org.
		if !chars.AbsoluteURL(l.Value) {
			f.add("RT407", l, l.ValueAt, f.completed(l), "%s is not an absolute URL, so the sitemap is not found", l.Value)
		}
	case model.RequestRate:
		if !rateForm().MatchString(l.Value) {
			f.once("RT411", l, l.ValueAt, "", "%s is not of the form documents/time with a unit, such as 1/10s", l.Value)
		}
	case model.CleanParam:
		if problem := cleanProblem(l.Value); problem != "" {
			f.add("RT412", l, l.ValueAt, "", "%s %v", l.Value, problem)
		}
		if inStar(l) {
			f.add("RT011", l, -1, "", "Yandex alone reads Clean-param, and this group is for all crawlers")
		}
	// Robot-version and Comment: a draft of 2002 that no engine took up. Revisit-after: meant
	// for pages, and read by none even there. Host, which Yandex read until 2018, is RT006.
	case model.RobotVersion, model.CommentField, model.RevisitAfter:
		f.add("RT413", l, -1, "", "no engine reads %v any more", model.FieldName(l.Kind))
	}
}

// inStar reports whether a record stands in a group for all crawlers (mistake 11).
func inStar(l *model.Line) bool { return l.Group != nil && l.Group.Star != nil }

// hostRecord checks a Host line, the nth of the file (RT006). However it is written: what it was for has not worked
// since 20 March 2018. So the advice is to remove it.
func (f *checker) hostRecord(l *model.Line, nth int) {
	if inStar(l) && nth == 1 && l.Value != "" && !strings.ContainsAny(strings.TrimPrefix(strings.ToLower(l.Value), "https://"), "/[ \t") {
		f.add("RT011", l, -1, "", "Yandex alone read Host, until March 2018, and this group is for all crawlers")
	} else {
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
func (f *checker) delay(l *model.Line) {
	delay, ok := policy.Parse([]byte("User-agent: *\nCrawl-delay: " + l.Value)).Group("*").CrawlDelay()
	switch {
	// Readers skip the line then, the strict ones also for "5s" or "[5]".
	case !ok:
		f.add("RT409", l, l.ValueAt, "", "%s is not a plain number of seconds", l.Value)
	case delay == 0:
		f.add("RT409", l, l.ValueAt, "", "a crawl delay of 0 asks for nothing")
	case delay > maxCommonsDelay*time.Second && l.Group.Names("*", "ccbot"):
		f.add("RT409", l, l.ValueAt, "", "a crawl delay above %d s shuts out readers such as Common Crawl", maxCommonsDelay)
	case delay > maxBingDelay*time.Second && l.Group.Names("*", "bingbot", "msnbot", "adidxbot"):
		f.add("RT409", l, l.ValueAt, "", "Bing waits %d s at most; the others of this group, as long as it says", maxBingDelay)
	}
}

// rateForm is n/m with a unit, and a time of day in UTC that may follow, as Seznam documents
// them: 100/15m, or 1/10s 1800-1900. Without a unit some readers take seconds, Seznam says nothing.
var rateForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d+/\d+[smhdSMHD](?:\s+\d{4}-\d{4})?$`)
})

// maxCleanParam is how long a Clean-param may be, in characters (Yandex).
const maxCleanParam = 500

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
	case len(v) > maxCleanParam:
		return "is longer than 500 characters"
	case words[0][0] == '/':
		return "begins with the path, which belongs after the parameters"
	// A value, a list of another kind, or a whole query was written.
	case strings.ContainsAny(words[0], "?=,;/"), strings.Contains("&"+words[0]+"&", "&&"):
		return "has parameters that are not joined by & alone"
	case len(words) > 2:
		return "has more than parameters and one path"
	case strings.Trim(strings.ToLower(path), chars.Letters+"0123456789.-/*_") != "":
		return "has characters in its path that Yandex does not take"
	}
	return ""
}
