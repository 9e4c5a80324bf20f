package lint

import (
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

const (
	maxBytes       = scan.Limit // RFC 9309 §2.5: what a crawler must read at least, and in practice all it reads
	maxYandexRules = 2048       // Yandex help; 1024 in the older one
	oldYandexRules = 1024
	maxYandexRule  = 1024 // characters
	maxGoogleLine  = scan.GoogleLine
	maxYandexClean = 500 // characters of a Clean-param
)

// format checks the file as a whole: its encoding, line ends and size (RT008, RT106
// to RT111, RT114).
func (f *file) format() {
	first := &line{number: 1}
	switch {
	case f.text == "":
		f.add("RT114", nil, 0, "User-agent: *\nDisallow:",
			"the file is empty, which allows everything as a missing file does")
	// Crawlers search a page for records as they search anything (RFC 9309
	// §2.3.1.5), and find none: the effect is the same as of an empty file.
	case f.html:
		f.add("RT008", first, -1, "",
			"the file begins with markup, %s, and is a page: crawlers look for plain records", quote(head(f.text)))
	}
	// Google and Yandex skip the mark. To a reader that does not, the first
	// User-agent is an unknown field, and the rules below bind no crawler.
	if f.bom > 0 {
		f.add("RT106", first, -1, "",
			"the file begins with a byte order mark, which some readers take for part of the first field")
	}
	if f.wide {
		f.add("RT107", first, -1, "",
			"the file is UTF-16 text, in which a crawler that expects UTF-8 finds no rules")
	} else if f.nuls > 0 { // Google's parser is written in C++ and takes a NUL for the end of the line
		f.add("RT107", nil, 0, "",
			"the file holds %s, at which some readers end the line", count(f.nuls, "NUL byte"))
	}
	// §2.2 allows LF, CRLF and CR. Mixed ends do no harm in most readers, but show
	// that two programs write the file.
	if f.odd != nil {
		f.add("RT109", f.odd, -1, "",
			"lines end in several ways: LF %d, CRLF %d, CR %d", f.ends[0], f.ends[1], f.ends[2])
	} else if f.ends[2] > 0 {
		f.add("RT109", first, -1, "", "lines end in CR alone, which some readers take for one long line")
	}
	f.size()
}

// head returns the first line that is not blank.
func head(text string) string {
	text = strings.TrimLeft(text, blanks+"\r\n")
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		text = text[:end]
	}
	return text
}

// size checks what lies past the limits on bytes and rules (RT110, RT111). The
// line that the cut falls in is lost, too.
func (f *file) size() {
	var rules, lost int
	var past, tooMany *line
	for i := range f.lines {
		l := &f.lines[i]
		cut := l.offset+len(l.text) > maxBytes
		if cut && past == nil {
			past = l
		}
		if !l.rule() {
			continue
		}
		if rules++; cut {
			lost++
		}
		if rules == oldYandexRules+1 {
			tooMany = l
		}
	}
	// Google cuts, and so does RFC 9309 §2.5; Yandex takes the whole file for unfit,
	// and the site for open.
	if len(f.text) > maxBytes {
		f.add("RT110", past, -1, "",
			"the file has %d bytes; crawlers stop after %d, and Yandex takes the whole site for open: %s past the cut",
			len(f.text), maxBytes, count(lost, "rule"))
	}
	switch {
	case rules > maxYandexRules:
		f.add("RT111", tooMany, -1, "",
			"the file has %d rules, and Yandex refuses more than %d", rules, maxYandexRules)
	case rules > oldYandexRules:
		f.add("RT111", tooMany, -1, "",
			"the file has %d rules, and Yandex used to refuse more than %d (now %d)",
			rules, oldYandexRules, maxYandexRules)
	}
}

func (l *line) rule() bool { return l.kind == allow || l.kind == disallow }

// encoding checks the bytes of one line. Comments may hold anything: no crawler reads them.
func (f *file) encoding(l *line) {
	if i := invalidUTF8(l.text); i >= 0 {
		f.add("RT108", l, i, "", "byte %#02x is not valid UTF-8", l.text[i])
	}
	// Rules that are pasted from a web page bring such characters along, and they
	// hide why the rule does not match.
	if i := strings.IndexFunc(l.value, invisible); i >= 0 {
		r, _ := utf8.DecodeRuneInString(l.value[i:])
		f.add("RT113", l, l.valueAt+i, l.with(strings.Map(visible, l.value)),
			"the value holds the control or invisible character %U", r)
	}
	// Google drops the tail and keeps the head as a rule, which then matches more;
	// Yandex counts characters, and of the path alone.
	if len(l.text) > maxGoogleLine && l.kind != "" {
		f.add("RT112", l, -1, "",
			"the line has %d bytes, and Google drops what lies beyond %d", len(l.text), maxGoogleLine)
	} else if l.rule() && len(l.value) > maxYandexRule && utf8.RuneCountInString(l.value) > maxYandexRule {
		f.add("RT112", l, l.valueAt, "",
			"the path has %d characters, and Yandex refuses more than %d",
			utf8.RuneCountInString(l.value), maxYandexRule)
	}
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
			return i
		}
	}
	return -1
}

// invisible tells the characters that break a value and do not show: controls,
// no-break space, zero-width characters and marks of direction, mostly pasted from
// web pages. A tab is a blank.
func invisible(r rune) bool {
	switch {
	case r == '\t', r == utf8.RuneError:
		return false
	case r < ' ', r >= 0x7F && r <= 0xA0, r == 0xAD,
		r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r == 0xFEFF:
		return true
	}
	return false
}

// visible is for strings.Map, which drops what is negative.
func visible(r rune) rune {
	if invisible(r) {
		return -1
	}
	return r
}

// with returns the line as it would read with another value, its field spelt as
// usual.
func (l *line) with(value string) string { return fieldName(l.meant) + ": " + value }

// fieldName returns the usual spelling of a known field.
func fieldName(kind string) string {
	switch kind {
	case "":
		return ""
	case llmPolicy:
		return "LLM-Policy"
	case disallowAI:
		return "DisallowAITraining"
	case allowAI:
		return "AllowAITraining"
	case contentUsage, contentSignal:
		return "Content-" + strings.ToUpper(kind[8:9]) + kind[9:]
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}

// spelling checks whether the line is a record at all, and how its field is spelt
// (RT101 to RT105). An unknown field is reported once; seen holds those
// that were.
func (f *file) spelling(l *line, seen map[string]bool) {
	switch {
	// Google reads the line if it has exactly two words, RFC 9309 §2.2 never.
	case l.noColon:
		f.add("RT101", l, -1, l.with(l.value), "%s is not followed by a colon", quote(l.field))
		if l.meant != strings.ToLower(l.field) {
			break
		}
		return
	case l.meant != "" && l.meant == strings.ToLower(l.field):
		return
	case l.meant != "":
	case f.html:
		return // a page has no fields to be wrong
	// Mostly sitemaps that lost their field, or never had one. To a parser the field
	// is "https".
	case isURL(strings.Trim(l.text[:l.commentAt], blanks)):
		f.add("RT105", l, -1, "Sitemap: "+strings.Trim(l.text, blanks), "the line holds only a URL")
		return
	// Prose with a colon in it is still prose: no field has blanks.
	case l.field == "" || len(l.field) > maxField || strings.ContainsAny(l.field, blanks):
		f.add("RT104", l, -1, "# "+strings.Trim(l.text, blanks),
			"%s is neither comment nor record", quote(l.text))
		return
	default:
		if name := strings.ToLower(l.field); !seen[name] {
			seen[name] = true
			f.add("RT103", l, -1, "", "no known crawler reads the field %s", quote(l.field))
		}
		return
	}
	f.add("RT102", l, -1, l.with(l.value),
		"%s is a misspelling of %s%s", quote(l.field), fieldName(l.meant), whoReads(l))
}

// whoReads ends the message on a misspelling.
func whoReads(l *line) string {
	if l.kind != "" {
		return " that only Google reads"
	}
	return " that no crawler is known to read"
}

// absoluteURL tells a URL with scheme and host. It is more lenient than net/url:
// whether the rest is well-formed is for the fetcher.
func absoluteURL(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), letters+"+-.0123456789") == "" &&
		rest != "" && strings.IndexByte("/?#", rest[0]) < 0
}

// isURL tells a lone http URL.
func isURL(s string) bool {
	rest, ok := cutScheme(s)
	return ok && rest != "" && !strings.ContainsAny(rest, blanks)
}

// cutScheme removes http:// or https:// in any case.
func cutScheme(s string) (rest string, ok bool) {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return s[len(scheme):], true
		}
	}
	return s, false
}

// lineChecks runs what needs no more than one line, in the order of the file. What
// is reported once for each spelling is remembered over the lines.
func (f *file) lineChecks() {
	unknown := map[string]bool{}
	shouted := map[string]bool{}
	for i := range f.lines {
		l := &f.lines[i]
		f.encoding(l)
		f.spelling(l, unknown)
		f.shouting(l, shouted)
		if l.rule() {
			f.path(l)
		}
	}
}
