package lint

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/internal/scan"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

const (
	maxBytes       = scan.Limit // RFC 9309 §2.5: what a crawler must read at least, and in practice all it reads
	maxYandexRules = 2048       // Yandex help; 1024 in the older one
	oldYandexRules = 1024
	maxYandexRule  = 1024 // characters
)

// format checks the file as a whole: its encoding, line ends and size (RT008, RT106 to RT111, RT114). It reports
// whether the rest is worth looking at: in a page, or in UTF-16, one cause would give a finding for every line.
func (f *checker) format() bool {
	first := &model.Line{Number: 1, Text: head(f.Text)}
	switch {
	case f.Text == "":
		f.line("RT114", &model.Line{}, "the file is empty, which allows everything as a missing file does")
	// Crawlers search a page for records as they search anything (RFC 9309
	// §2.3.1.5), and find none: the effect is the same as of an empty file.
	case f.HTML:
		f.line("RT008", first, "the file begins with markup, %s, and is a page: crawlers look for plain records", head(f.Text))
		return false
	}
	// Google and Yandex skip the mark. To a reader that does not, the first
	// User-agent is an unknown field, and the rules below bind no crawler.
	if f.BOM > 0 {
		f.line("RT106", first, "the file begins with a byte order mark, which some readers take for part of the first field")
	}
	if f.Wide {
		f.line("RT107", first, "the file is UTF-16 text, in which a crawler that expects UTF-8 finds no rules")
	} else if f.Nuls > 0 { // Google's parser is written in C++ and takes a NUL for the end of the line
		f.line("RT107", &model.Line{}, "the file holds %v, at which some readers end the line", model.Count(f.Nuls, "NUL byte"))
	}
	// §2.2 allows LF, CRLF and CR. Mixed ends do no harm in most readers, but show that two programs write the file.
	if f.Odd != 0 {
		f.add("RT109", &model.Line{Number: f.Odd}, -1, "", "lines end in several ways: LF %d, CRLF %d, CR %d", f.Ends[0], f.Ends[1], f.Ends[2])
	} else if f.Ends[2] > 0 {
		f.line("RT109", first, "lines end in CR alone, which some readers take for one long line")
	}
	f.size()
	return !f.Wide
}

// head returns the first line that is not blank.
func head(text string) string {
	text = strings.TrimLeft(text, model.Blanks+"\r\n")
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		text = text[:end]
	}
	return text
}

// size checks what lies past the limits on bytes and rules (RT110, RT111). The line that the cut falls in is lost, too.
func (f *checker) size() {
	var past *model.Line
	var rules, lost []*model.Line
	for _, l := range f.Lines {
		cut := l.Offset+len(l.Text) > maxBytes
		if cut && past == nil {
			past = l
		}
		if l.Rule() {
			if rules = append(rules, l); cut {
				lost = append(lost, l)
			}
		}
	}
	// Google cuts, and so does RFC 9309 §2.5; Yandex takes the whole file for unfit, and the site for open.
	if len(f.Text) > maxBytes {
		past = cmp.Or(past, &model.Line{}) // only blank lines and comments
		f.line("RT110", past, "the file has %d bytes; crawlers stop after %d, and Yandex takes the whole site for open: %v past the cut",
			len(f.Text), maxBytes, model.Count(len(lost), "rule"))
	}
	// The place is the first rule beyond the number that the message is about.
	switch n := len(rules); {
	case n > maxYandexRules:
		f.line("RT111", rules[maxYandexRules], "the file has %d rules, and Yandex refuses more than %d", n, maxYandexRules)
	case n > oldYandexRules:
		f.line("RT111", rules[oldYandexRules], "the file has %d rules, and Yandex used to refuse more than %d (now %d)",
			n, oldYandexRules, maxYandexRules)
	}
}

// encoding checks the bytes of one line. Comments may hold anything: no crawler reads them.
func (f *checker) encoding(l *model.Line) {
	if i := invalidUTF8(l.Text); i >= 0 {
		f.add("RT108", l, i, "", "byte %#02x is not valid UTF-8", l.Text[i])
	}
	// Rules that are pasted from a web page bring such characters along, and they hide why the rule does not match.
	if i := strings.IndexFunc(l.Value, model.Invisible); i >= 0 {
		r, _ := utf8.DecodeRuneInString(l.Value[i:])
		value := model.Visible(l.Value)
		replacement := l.With(value)
		_, rest, _ := strings.Cut(l.Value, "\x00")
		if model.Visible(rest) != "" {
			replacement = "" // that would be more than readers read
		}
		f.add("RT113", l, l.ValueAt+i, replacement, "the value holds the control or invisible character %U", r)
	}
	// Google drops the tail and keeps the head as a rule, which then matches more;
	// Yandex counts characters, and of the path alone.
	if len(l.Text) > scan.GoogleLine && l.Kind != "" {
		f.line("RT112", l, "the line has %d bytes, and Google drops what lies beyond %d", len(l.Text), scan.GoogleLine)
	} else if l.Rule() && len(l.Value) > maxYandexRule && utf8.RuneCountInString(l.Value) > maxYandexRule {
		f.value("RT112", l, "the path has %d characters, and Yandex refuses more than %d", utf8.RuneCountInString(l.Value), maxYandexRule)
	}
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

// spelling checks whether the line is a record at all, and how its field is spelt (RT101 to RT105). An unknown field is
// reported once; seen holds those that were.
func (f *checker) spelling(l *model.Line, seen map[string]bool) {
	name, text := strings.ToLower(l.Field), strings.Trim(l.Text[:l.CommentAt], model.Blanks)
	url, isURL := model.CutScheme(text)
	switch {
	// Google reads the line if it has exactly two words, RFC 9309 §2.2 never.
	case l.NoColon:
		misspelt := ""
		if l.Meant != name { // one line is one finding
			misspelt = ", and is a misspelling of " + model.FieldName(l.Meant)
		}
		f.add("RT101", l, l.FieldAt()+len(l.Field), l.With(l.Value), "%s is not followed by a colon%v", l.Field, misspelt)
	case l.Meant != "" && l.Meant == name, f.disguised(l):
	case l.Meant != "":
		readers := "no crawler is known to read"
		if l.Kind != "" {
			readers = "only Google reads"
		}
		f.add("RT102", l, l.FieldAt(), l.With(l.Value), "%s is a misspelling of %v that %v", l.Field, model.FieldName(l.Meant), readers)
	// Mostly sitemaps that lost their field, or never had one. To a parser the field is "https".
	case isURL && url != "" && !strings.ContainsAny(url, model.Blanks):
		sitemap := ""
		if lower := strings.ToLower(l.Text); strings.Contains(lower, "sitemap") || strings.Contains(lower, ".xml") {
			sitemap = "Sitemap: " + strings.Trim(l.Text, model.Blanks)
		}
		f.add("RT105", l, -1, sitemap, "the line holds only a URL")
	// Prose with a colon in it is still prose: no field has blanks.
	case l.Field == "" || len(l.Field) > model.MaxField || strings.ContainsAny(l.Field, model.Blanks):
		f.add("RT104", l, -1, "# "+strings.Trim(l.Text, model.Blanks), "%s is neither comment nor record", l.Text)
	case !seen[name]:
		seen[name] = true
		f.add("RT103", l, l.FieldAt(), "", "no known crawler reads the field %s", l.Field)
	}
}

// disguised reports a line whose field would be a known one without a character that cannot be seen, or looks like
// another: every reader loses the line.
func (f *checker) disguised(l *model.Line) bool {
	text := l.Text[:l.CommentAt]
	if len(text) > maxReplacement {
		return false
	}
	plain, odd, at := model.Undisguised(text)
	field, value, ok := strings.Cut(plain, ":")
	meant := model.Meaning(strings.Trim(field, model.Blanks))
	if odd == 0 || !ok || meant == "" || at > strings.IndexAny(text+":", ":") {
		return false
	}
	f.add("RT102", l, at, model.FieldName(meant)+": "+strings.Trim(value, model.Blanks),
		"%v in the line hides %v from every crawler: it reads another field", model.Name(odd), model.FieldName(meant))
	return true
}

// shouting remarks on fields and well-known product tokens in capitals (RT009). Names and fields match in any case (RFC
// 9309 §2.2.1), so this is style alone. Unknown tokens are left alone: SISTRIX is a name.
func (f *checker) shouting(l *model.Line) {
	word, at, replacement := l.Field, l.FieldAt(), l.With(l.Value)
	if l.Kind == model.UserAgent && capitals(l.Value) {
		if usual := model.KnownAgent(model.AgentName(l)); usual != "" && usual != l.Value {
			word, at, replacement = l.Value, l.ValueAt, l.With(usual)
		}
	}
	if l.Meant != "" && capitals(word) {
		f.once("RT009", l, at, replacement, "%s is written in capitals", word)
	}
}

// capitals reports whether s is a word of at least four letters, all of them capitals.
func capitals(s string) bool {
	letters := 0
	for _, r := range s {
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters > 3 && !strings.ContainsFunc(s, unicode.IsLower)
}
