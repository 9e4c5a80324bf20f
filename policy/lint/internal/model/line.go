package model

import (
	"cmp"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// Line is a line that is neither blank nor only a comment.
type Line struct {
	Number     int    // from 1
	Text       string // all of it, without line end and byte order mark
	Offset     int    // of text in the file
	Field      string // as written; "" if there is none
	Value      string // as written, without blanks around it and without comment
	Kind       string // the field in lower case as the most lenient engine reads it; "" if none knows it
	Meant      string // the field that the author probably meant; kind is "" if no engine accepts the spelling
	ValueAt    int    // byte offset of value in text
	CommentAt  int    // byte offset of '#' in text, or len(text)
	NoColon    bool   // blanks stand where the colon should
	AfterBlank bool   // a blank line lies between this line and the one before
	Group      *Group // nil before the first
}

func readLine(s *scan.Scanner, text string) *Line {
	l := &Line{Number: s.Number, Text: text, CommentAt: s.CommentAt - s.Start}
	l.Field, l.ValueAt = text[s.FieldAt-s.Start:s.FieldEnd-s.Start], s.ValueAt-s.Start
	l.Value = text[l.ValueAt : s.ValueEnd-s.Start]
	if s.Kind != scan.Invalid && !s.NoColon {
		l.Kind, l.Meant = readField(l.Field)
		return l
	}
	l.Field, l.Value, l.ValueAt = "", "", 0
	record := text[:l.CommentAt]
	if strings.Contains(record, ":") {
		return l // nothing before the colon
	}
	name, value := CutWord(record)
	kind, meant := readField(name)
	if value == "" || meant == "" {
		return l
	}
	l.Field, l.Meant, l.NoColon = name, meant, true
	l.Value = strings.Trim(value, Blanks)
	l.ValueAt = len(strings.TrimRight(record, Blanks)) - len(l.Value)
	if s.NoColon { // Google takes two words, and no more, for a record
		l.Kind = kind
	}
	return l
}

func (l *Line) Rule() bool { return l.Kind == Allow || l.Kind == Disallow }

// Closes reports whether the line disallows something, or was meant to.
func (l *Line) Closes() bool { return l.Kind == Disallow && l.Value != "" }

// Matches reports whether the pattern of a rule can match a path, which begins with a slash and
// has no blanks (RFC 9309 §2.2.2).
func (l *Line) Matches() bool {
	return l.Value != "" && (l.Value[0] == '/' || l.Value[0] == '*') && !strings.ContainsAny(l.Value, Blanks)
}

// FieldAt is the byte offset of the field in the text: only blanks stand before it.
func (l *Line) FieldAt() int { return strings.Index(l.Text, l.Field) }

// With returns the line as it would read with another value, its field spelt as
// usual if it is known. A comment is left out.
func (l *Line) With(value string) string {
	return strings.TrimRight(cmp.Or(FieldName(l.Meant), l.Field)+": "+value, " ")
}

// AgentName returns the product token that a user-agent line names, in lower case:
// its value up to the first slash, '*', ';' or ','; "*" for everybody.
//
// Unlike Google it keeps digits and blanks. To Google, "Webster Pro" is "Webster", and
// MJ12bot and MJ13bot are both "MJ"; their authors meant several crawlers.
func AgentName(l *Line) string {
	if l.Value == "*" || strings.HasPrefix(l.Value, "* ") || strings.HasPrefix(l.Value, "*\t") {
		return "*"
	}
	name := l.Value
	if i := strings.IndexAny(name, "/*;,"); i >= 0 {
		name = name[:i]
	}
	return strings.ToLower(strings.TrimRight(name, Blanks))
}

// IsHeader recognizes the value of a User-Agent header, in which the name of a crawler stands
// anywhere, after that of a browser.
func IsHeader(value string) bool {
	return strings.Contains(value, "/") && strings.ContainsAny(value, " (")
}

// Core returns the pattern without the wildcards at its end, which match nothing more (but do count as bytes where the
// longest pattern wins). What matches every path is "/". Behind a "$" they stay, since that would be special without.
func Core(pattern string) string {
	switch c := strings.TrimRight(pattern, "*"); {
	case c == "" && pattern != "":
		return "/"
	case !strings.HasSuffix(c, "$"):
		return c
	}
	return pattern
}

// Single returns the pattern with each run of '*' as one.
func Single(pattern string) string {
	for strings.Contains(pattern, "**") {
		pattern = strings.ReplaceAll(pattern, "**", "*")
	}
	return pattern
}

// Plain reports whether a pattern is a prefix and no more, for which "covers" is
// strings.HasPrefix. Covering among patterns with wildcards inside is not looked
// for: it is rare, costly to decide, and a miss only leaves a rule unreported.
func Plain(pattern string) bool {
	return !strings.Contains(pattern, "*") && !strings.HasSuffix(pattern, "$")
}

// IsProgram reports whether a file with this ending is run and not shown, or is part of how pages work.
func IsProgram(ending string) bool {
	const programs = " php php3 php5 phtml asp aspx ashx jsp jspx jsf do action cgi pl py rb cfm cfc exe dll js css "
	return strings.Contains(programs, " "+ending+" ")
}

// The fields that some reader knows, or knew, in lower case.
const (
	UserAgent     = "user-agent"
	Allow         = "allow"
	Disallow      = "disallow"
	Sitemap       = "sitemap"
	CrawlDelay    = "crawl-delay"
	ContentUsage  = "content-usage"
	ContentSignal = "content-signal"
	License       = "license"
)

// MaxField is the longest field worth looking up, in bytes. What is longer is prose.
const MaxField = 32

// readField returns what the field is for the most lenient engine, and what its author meant by it.
func readField(field string) (kind, meant string) {
	// Prose is not looked up at all, which keeps hostile files cheap.
	if field == "" || len(field) > MaxField {
		return "", ""
	}
	name := strings.ToLower(field)
	// Apart from user-agent, allow and disallow, all that some specification has or had are other
	// records to RFC 9309 §2.2.4, which no crawler needs to read.
	known, _ := (policy.Record{Field: name}).Known()
	if known != "" || strings.Contains(" user-agent allow disallow noarchive nosnippet revisit-after domain user-agent-purpose ", " "+name+" ") {
		return name, name
	}
	k, _ := scan.Google.KindOf([]byte(name)) // misspelt ones too
	if kind = map[scan.Kind]string{scan.UserAgent: UserAgent, scan.Allow: Allow, scan.Disallow: Disallow, scan.Sitemap: Sitemap}[k]; kind != "" {
		return kind, kind
	}
	return "", nearField(name)
}

// Meaning returns the field that was probably meant, "" if there is none.
func Meaning(field string) string {
	_, meant := readField(field)
	return meant
}

// nearField finds the known field that differs from name by the marks between its words, by one slip (insertion,
// deletion, substitution or swap of neighbours), or by two if it is long.
func nearField(name string) string {
	const marks = " \t-_."
	if strings.Trim(name, Letters+marks) != "" {
		return ""
	}
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(marks, r) }), "")
	for _, known := range [...]string{Disallow, UserAgent, Sitemap, CrawlDelay, Allow, "clean-param", "request-rate", "visit-time", "noindex",
		ContentUsage, ContentSignal, "host"} {
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
