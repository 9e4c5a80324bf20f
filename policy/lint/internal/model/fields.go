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
	for _, known := range [...]struct{ letters, field string }{
		{"disallow", Disallow}, {"useragent", UserAgent}, {"sitemap", Sitemap},
		{"crawldelay", CrawlDelay}, {"allow", Allow},
		{"cleanparam", CleanParam}, {"requestrate", RequestRate}, {"visittime", VisitTime}, {"noindex", Noindex},
		{"contentusage", ContentUsage}, {"contentsignal", ContentSignal}, {"host", HostField},
	} {
		slips := 1
		if len(known.letters) > len("sitemap") {
			slips = 2
		}
		if distance(name, known.letters, slips) <= slips {
			return known.field
		}
	}
	return ""
}

// distance returns the number of slips between two words of at most MaxField
// bytes, or something above limit.
func distance(a, b string, limit int) int {
	// Most fields differ from most known ones by their length alone.
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	// d[i][j] is the distance between the first i bytes of a and the first j of b.
	var d [MaxField + 1][MaxField + 1]uint8
	for i := range len(a) + 1 {
		d[i][0] = uint8(i)
	}
	for j := range len(b) + 1 {
		d[0][j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		best := d[i][0]
		for j := 1; j <= len(b); j++ {
			change := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			d[i][j] = min(change, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
			best = min(best, d[i][j])
		}
		if int(best) > limit { // rows never get better
			return limit + 1
		}
	}
	return int(d[len(a)][len(b)])
}

// FieldName returns the usual spelling of a known field.
func FieldName(kind string) string {
	if name, _ := (policy.Record{Field: kind}).Known(); name != "" || kind == "" {
		return name
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}
