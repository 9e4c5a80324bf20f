package lint

import (
	"net/url"
	"strings"
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

// maxField is the longest field worth looking up, in octets. What is longer is
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
	valueAt    int    // octet offset of value in text
	commentAt  int    // octet offset of '#' in text, or len(text)
	noColon    bool   // blanks stand where the colon should
	afterBlank bool   // a blank line lies between this line and the one before
}

// file is a robots.txt file cut into lines and groups.
type file struct {
	report
	text   string   // without byte order mark
	url    *url.URL // of the file; nil if not known
	bom    int      // octets of the byte order mark; fewer than three if it is damaged
	nuls   int
	wide   bool // UTF-16
	html   bool
	ends   [3]int // how many lines end in LF, CRLF, CR
	odd    *line  // first line whose end differs from that of the first line
	lines  []line
	groups []group
	loose  []*line // before the first group
}

// scan cuts the text into lines: LF, CRLF and CR each end one (RFC 9309 §2.2). It
// reads past the parsing limit, so that RT110 can say what is lost there. Package
// policy has a scanner of its own, for verdicts; a test holds the two together.
func scan(text string) *file {
	f := &file{text: text}
	// Crawlers also skip what is left of a damaged mark.
	const mark = "\xEF\xBB\xBF"
	for f.bom < len(mark) && f.bom < len(text) && text[f.bom] == mark[f.bom] {
		f.bom++
	}
	f.text = text[f.bom:]
	// Text of UTF-16 without its mark is half NUL octets; a few of them are
	// something else.
	f.nuls = strings.Count(text, "\x00")
	f.wide = strings.HasPrefix(text, "\xFF\xFE") || strings.HasPrefix(text, "\xFE\xFF") || f.nuls > len(text)/8
	f.html = isMarkup(f.text)
	blank, style := false, -1
	for rest, number := f.text, 1; rest != ""; number++ {
		here := rest
		var text string
		var end int
		text, end, rest = cutLine(rest)
		if end >= 0 {
			if f.ends[end]++; style < 0 {
				style = end
			} else if style != end && f.odd == nil {
				f.odd = &line{number: number}
			}
		}
		trimmed := strings.Trim(text, blanks)
		switch {
		case trimmed == "":
			blank = true
		case trimmed[0] != '#': // a comment of its own separates nothing (1994)
			f.lines = append(f.lines, readLine(text))
			l := &f.lines[len(f.lines)-1]
			l.number, l.offset, l.afterBlank = number, len(f.text)-len(here), blank
			blank = false
		}
	}
	return f
}

// cutLine returns the first line, how it ended (0 LF, 1 CRLF, 2 CR, -1 not at all)
// and the rest.
func cutLine(s string) (text string, end int, rest string) {
	i := strings.IndexAny(s, "\r\n")
	switch {
	case i < 0:
		return s, -1, ""
	case s[i] == '\n':
		return s[:i], 0, s[i+1:]
	case strings.HasPrefix(s[i:], "\r\n"):
		return s[:i], 1, s[i+2:]
	}
	return s[:i], 2, s[i+1:]
}

// isMarkup tells an HTML page by its first octets: no field begins with '<'.
func isMarkup(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, blanks+"\r\n"), "<")
}

// readLine divides a line into field, value and comment (RFC 9309 §2.2).
func readLine(text string) line {
	l := line{text: text, commentAt: len(text)}
	if i := strings.IndexByte(text, '#'); i >= 0 {
		l.commentAt = i
	}
	record := text[:l.commentAt]
	name, value, ok := strings.Cut(record, ":")
	if ok {
		l.field = strings.Trim(name, blanks)
		l.valueAt = len(name) + 1
		l.kind, l.meant = readField(l.field)
	} else if name, value, ok = cutWord(record); ok {
		// Google takes "disallow /" for "disallow: /" if there are two words and no
		// more.
		kind, meant := readField(name)
		if meant == "" {
			return l
		}
		l.field, l.meant, l.noColon = name, meant, true
		l.valueAt = strings.Index(record, name) + len(name) + 1
		if !strings.ContainsAny(strings.Trim(value, blanks), blanks) {
			l.kind = kind
		}
	} else {
		return l
	}
	l.value = strings.TrimLeft(value, blanks)
	l.valueAt += len(value) - len(l.value)
	l.value = strings.TrimRight(l.value, blanks)
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
	if kind = lenientField(name); kind != "" {
		return kind, kind
	}
	return "", nearField(name)
}

// knownField tells the fields that some specification has or had. Apart from
// user-agent, allow and disallow all of them are other records to RFC 9309 §2.2.4,
// which nobody needs to read.
func knownField(name string) bool {
	switch name {
	case userAgent, allow, disallow, sitemap, crawlDelay, requestRate, visitTime, hostField, cleanParam, noindex, nofollow,
		noarchive, nosnippet, robotVersion, commentField, revisitAfter, domain, contentUsage, contentSignal, license,
		llmPolicy, disallowAI, allowAI, agentPurpose:
		return true
	}
	return false
}

// lenientField knows the fields that Google's parser accepts: these misspellings,
// and whatever begins with them.
func lenientField(name string) string {
	for _, p := range [...]struct{ prefix, kind string }{
		{userAgent, userAgent}, {"useragent", userAgent}, {"user agent", userAgent},
		{allow, allow},
		{disallow, disallow}, {"dissallow", disallow}, {"dissalow", disallow},
		{"disalow", disallow}, {"diasllow", disallow}, {"disallaw", disallow},
		{sitemap, sitemap}, {"site-map", sitemap},
	} {
		if strings.HasPrefix(name, p.prefix) {
			return p.kind
		}
	}
	return ""
}

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
// octets, or something above limit.
func distance(a, b string, limit int) int {
	// Most fields differ from most known ones by their length alone.
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	// d[i][j] is the distance between the first i octets of a and the first j of b.
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
