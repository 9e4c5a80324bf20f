package lint

import (
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// The fields that some reader knows, or knew, in lower case.
const (
	userAgent     = "user-agent"
	allow         = "allow"
	disallow      = "disallow"
	sitemap       = "sitemap"
	crawlDelay    = "crawl-delay"
	requestRate   = "request-rate"
	visitTime     = "visit-time"
	hostField     = "host"
	cleanParam    = "clean-param"
	noindex       = "noindex"
	nofollow      = "nofollow"
	noarchive     = "noarchive"
	nosnippet     = "nosnippet"
	robotVersion  = "robot-version"
	commentField  = "comment"
	revisitAfter  = "revisit-after"
	domain        = "domain"
	contentUsage  = "content-usage"
	contentSignal = "content-signal"
	license       = "license"
	llmPolicy     = "llm-policy"
	disallowAI    = "disallowaitraining"
	allowAI       = "allowaitraining"
	agentPurpose  = "user-agent-purpose"
)

// maxField is the longest field worth looking up, in bytes. What is longer is
// prose.
const maxField = 32

const letters = "abcdefghijklmnopqrstuvwxyz"

const blanks = " \t\v\f"

// line is a line that is neither blank nor only a comment.
type line struct {
	number     int    // from 1
	offset     int    // of text in the file
	text       string // all of it, without line end and byte order mark
	field      string // as written; "" if there is none
	value      string // as written, without blanks around it and without comment
	kind       string // the field in lower case as the most lenient engine reads it; "" if none knows it
	meant      string // the field that the author probably meant; kind is "" if no engine accepts the spelling
	valueAt    int    // byte offset of value in text
	commentAt  int    // byte offset of '#' in text, or len(text)
	noColon    bool   // blanks stand where the colon should
	afterBlank bool   // a blank line lies between this line and the one before
}

// file is a robots.txt file cut into lines and groups.
type file struct {
	report
	text   string   // without byte order mark
	url    *url.URL // of the file; nil if not known
	bom    int      // bytes of the byte order mark; fewer than three if it is damaged
	nuls   int
	wide   bool // UTF-16
	html   bool
	ends   [3]int // how many lines end in LF, CRLF, CR
	odd    *line  // first line that ends otherwise than line 1
	lines  []line
	groups []group
	loose  []*line // before the first group
}

// readFile divides a file into lines, as lenient crawlers do (RFC 9309 §2.2). It reads past
// the parsing limit: RT110 tells what is lost there.
func readFile(data []byte) *file {
	s := scan.New(scan.Author, data)
	text := string(data)
	f := &file{text: text[s.BOM:], bom: s.BOM}
	// Text of UTF-16 without its mark is half NUL bytes; a few of them are something else.
	f.nuls = strings.Count(text, "\x00")
	f.wide = strings.HasPrefix(text, "\xFF\xFE") || strings.HasPrefix(text, "\xFE\xFF") || f.nuls > len(text)/8
	f.html = isMarkup(f.text)
	blank, style := false, -1
	for s.Next() {
		if end := lineEnd(text[s.End:]); end >= 0 {
			if f.ends[end]++; style < 0 {
				style = end
			} else if style != end && f.odd == nil {
				f.odd = &line{number: s.Number}
			}
		}
		switch s.Kind {
		case scan.Blank:
			blank = true
		case scan.Comment: // separates nothing (1994)
		default:
			f.lines = append(f.lines, readLine(&s, text[s.Start:s.End]))
			f.lines[len(f.lines)-1].offset, f.lines[len(f.lines)-1].afterBlank = s.Start-s.BOM, blank
			blank = false
		}
	}
	return f
}

// lineEnd tells how the line before rest ends: 0 LF, 1 CRLF, 2 CR, -1 not at all.
func lineEnd(rest string) int {
	switch {
	case rest == "":
		return -1
	case rest[0] == '\n':
		return 0
	case strings.HasPrefix(rest, "\r\n"):
		return 1
	}
	return 2
}

// isMarkup tells an HTML page by its first bytes: no field begins with '<'.
func isMarkup(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, blanks+"\r\n"), "<")
}

// readLine returns the line that s stands at.
func readLine(s *scan.Scanner, text string) line {
	l := line{number: s.Number, text: text, commentAt: s.CommentAt - s.Start}
	l.field, l.valueAt = text[s.FieldAt-s.Start:s.FieldEnd-s.Start], s.ValueAt-s.Start
	l.value = text[l.valueAt : s.ValueEnd-s.Start]
	if s.Kind != scan.Invalid && !s.NoColon {
		l.kind, l.meant = readField(l.field)
		return l
	}
	l.field, l.value, l.valueAt = "", "", 0
	record := text[:l.commentAt]
	if strings.Contains(record, ":") {
		return l // nothing before the colon
	}
	name, value, _ := cutWord(record)
	kind, meant := readField(name)
	if value == "" || meant == "" {
		return l
	}
	l.field, l.meant, l.noColon = name, meant, true
	l.value = strings.Trim(value, blanks)
	l.valueAt = len(strings.TrimRight(record, blanks)) - len(l.value)
	if s.NoColon { // Google takes two words, and no more, for a record
		l.kind = kind
	}
	return l
}

// cutWord returns the first word and what follows it; ok is false if nothing does.
func cutWord(s string) (word, rest string, ok bool) {
	s = strings.Trim(s, blanks)
	i := strings.IndexAny(s, blanks)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// readField returns what the field is for the most lenient engine, and what its
// author meant by it.
func readField(field string) (kind, meant string) {
	// Prose is not looked up at all, which keeps hostile files cheap.
	if field == "" || len(field) > maxField {
		return "", ""
	}
	name := strings.ToLower(field)
	if knownField(name) {
		return name, name
	}
	if k, _ := scan.Google.KindOf([]byte(name)); lenientFields[k] != "" {
		return lenientFields[k], lenientFields[k]
	}
	return "", nearField(name)
}

// knownField tells the fields that some specification has or had. Apart from
// user-agent, allow and disallow all of them are other records to RFC 9309 §2.2.4,
// which no crawler needs to read.
func knownField(name string) bool {
	switch name {
	case userAgent, allow, disallow, sitemap, crawlDelay, requestRate, visitTime, hostField, cleanParam, noindex, nofollow,
		noarchive, nosnippet, robotVersion, commentField, revisitAfter, domain, contentUsage, contentSignal, license,
		llmPolicy, disallowAI, allowAI, agentPurpose:
		return true
	}
	return false
}

// lenientFields are the fields that the scanner recognizes, misspelt ones too.
var lenientFields = [...]string{scan.UserAgent: userAgent, scan.Allow: allow, scan.Disallow: disallow, scan.Sitemap: sitemap, scan.Record: ""}

// nearField finds the known field that differs from name by the marks between its
// words, by one slip (insertion, deletion, substitution or swap of neighbours), or
// by two if it is long.
func nearField(name string) string {
	const marks = " \t-_."
	if strings.Trim(name, letters+marks) != "" {
		return ""
	}
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(marks, r) {
			return -1
		}
		return r
	}, name)
	for _, known := range [...]struct{ letters, field string }{
		{"disallow", disallow}, {"useragent", userAgent}, {"sitemap", sitemap}, {"crawldelay", crawlDelay}, {"allow", allow},
		{"cleanparam", cleanParam}, {"requestrate", requestRate}, {"visittime", visitTime}, {"noindex", noindex},
		{"contentusage", contentUsage}, {"contentsignal", contentSignal}, {"host", hostField},
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

// distance returns the number of slips between two words of at most maxField
// bytes, or something above limit.
func distance(a, b string, limit int) int {
	// Most fields differ from most known ones by their length alone.
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	// d[i][j] is the distance between the first i bytes of a and the first j of b.
	var d [maxField + 1][maxField + 1]uint8
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
