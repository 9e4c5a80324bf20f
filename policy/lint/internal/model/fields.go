package model

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
)

// The fields that some reader knows, or knew, in lower case.
const (
	UserAgent     = "user-agent"
	Allow         = "allow"
	Disallow      = "disallow"
	Sitemap       = "sitemap"
	CrawlDelay    = "crawl-delay"
	RequestRate   = "request-rate"
	VisitTime     = "visit-time"
	HostField     = "host"
	CleanParam    = "clean-param"
	Noindex       = "noindex"
	Nofollow      = "nofollow"
	Noarchive     = "noarchive"
	Nosnippet     = "nosnippet"
	RobotVersion  = "robot-version"
	CommentField  = "comment"
	RevisitAfter  = "revisit-after"
	ContentUsage  = "content-usage"
	ContentSignal = "content-signal"
	License       = "license"
	LLMPolicy     = "llm-policy"
	DisallowAI    = "disallowaitraining"
	AllowAI       = "allowaitraining"
	AgentPurpose  = "user-agent-purpose"
)

// MaxField is the longest field worth looking up, in bytes. What is longer is
// prose.
const MaxField = 32

// readField returns what the field is for the most lenient engine, and what its
// author meant by it.
func readField(field string) (kind, meant string) {
	// Prose is not looked up at all, which keeps hostile files cheap.
	if field == "" || len(field) > MaxField {
		return "", ""
	}
	name := strings.ToLower(field)
	// Apart from user-agent, allow and disallow, all that some specification has or had are other
	// records to RFC 9309 §2.2.4, which no crawler needs to read.
	known, _ := (policy.Record{Field: name}).Known()
	if known != "" || slices.Contains([]string{UserAgent, Allow, Disallow, Noarchive, Nosnippet, RevisitAfter, "domain", AgentPurpose}, name) {
		return name, name
	}
	if k, _ := scan.Google.KindOf([]byte(name)); lenientFields[k] != "" {
		return lenientFields[k], lenientFields[k]
	}
	return "", nearField(name)
}

// Meaning returns the field that was probably meant, "" if there is none.
func Meaning(field string) string {
	_, meant := readField(field)
	return meant
}

// lenientFields are the fields that the scanner recognizes, misspelt ones too.
var lenientFields = [...]string{
	scan.UserAgent: UserAgent, scan.Allow: Allow, scan.Disallow: Disallow, scan.Sitemap: Sitemap, scan.Record: "",
}

// nearField finds the known field that differs from name by the marks between its
// words, by one slip (insertion, deletion, substitution or swap of neighbours), or
// by two if it is long.
func nearField(name string) string {
	const marks = " \t-_."
	if strings.Trim(name, chars.Letters+marks) != "" {
		return ""
	}
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(marks, r) {
			return -1
		}
		return r
	}, name)
	for _, known := range [...]string{Disallow, UserAgent, Sitemap, CrawlDelay, Allow, CleanParam, RequestRate, VisitTime, Noindex,
		ContentUsage, ContentSignal, HostField} {
		letters, slips := strings.ReplaceAll(known, "-", ""), 1
		if len(letters) > len("sitemap") {
			slips = 2
		}
		if within(name, letters, slips) {
			return known
		}
	}
	return ""
}

// within reports whether a word becomes another by at most n slips.
func within(a, b string, n int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" || n == 0 {
		return len(a)+len(b) <= n
	}
	return within(a[1:], b[1:], n-1) || within(a[1:], b, n-1) || within(a, b[1:], n-1) ||
		len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] && within(a[2:], b[2:], n-1)
}

// FieldName returns the usual spelling of a known field.
func FieldName(kind string) string {
	if name, _ := (policy.Record{Field: kind}).Known(); name != "" || kind == "" {
		return name
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}
