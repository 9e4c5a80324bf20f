package checks

import (
	"strings"
	"unicode"

	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
	"github.com/robotsgate/robotsgate/policy/lint/internal/report"
)

// spelling checks whether the line is a record at all, and how its field is spelt
// (RT101 to RT105). An unknown field is reported once; seen holds those
// that were.
func (f *checker) spelling(l *model.Line, seen map[string]bool) {
	switch {
	// Google reads the line if it has exactly two words, RFC 9309 §2.2 never.
	case l.NoColon:
		misspelt := ""
		if l.Meant != strings.ToLower(l.Field) { // one line is one finding
			misspelt = ", and is a misspelling of " + model.FieldName(l.Meant)
		}
		f.add("RT101", l, l.FieldAt()+len(l.Field), l.With(l.Value), "%s is not followed by a colon%v", l.Field, misspelt)
		return
	case l.Meant != "" && l.Meant == strings.ToLower(l.Field), f.disguised(l):
		return
	case l.Meant != "":
	// Mostly sitemaps that lost their field, or never had one. To a parser the field
	// is "https".
	case chars.IsURL(strings.Trim(l.Text[:l.CommentAt], chars.Blanks)):
		f.add("RT105", l, -1, sitemapLine(l), "the line holds only a URL")
		return
	// Prose with a colon in it is still prose: no field has blanks.
	case l.Field == "" || len(l.Field) > model.MaxField || strings.ContainsAny(l.Field, chars.Blanks):
		f.add("RT104", l, -1, "# "+strings.Trim(l.Text, chars.Blanks), "%s is neither comment nor record", l.Text)
		return
	default:
		if name := strings.ToLower(l.Field); !seen[name] {
			seen[name] = true
			f.add("RT103", l, l.FieldAt(), "", "no known crawler reads the field %s", l.Field)
		}
		return
	}
	readers := "no crawler is known to read"
	if l.Kind != "" {
		readers = "only Google reads"
	}
	f.add("RT102", l, l.FieldAt(), l.With(l.Value), "%s is a misspelling of %v that %v", l.Field, model.FieldName(l.Meant), readers)
}

// disguised reports a line whose field would be a known one without a character that cannot be seen, or looks like
// another: every reader loses the line.
func (f *checker) disguised(l *model.Line) bool {
	text := l.Text[:l.CommentAt]
	if len(text) > report.MaxReplacement {
		return false
	}
	plain, odd, at := chars.Undisguised(text)
	field, value, ok := strings.Cut(plain, ":")
	meant := model.Meaning(strings.Trim(field, chars.Blanks))
	if odd == 0 || !ok || meant == "" || at > strings.IndexAny(text+":", ":") {
		return false
	}
	f.add("RT102", l, at, model.FieldName(meant)+": "+strings.Trim(value, chars.Blanks),
		"%v in the line hides %v from every crawler: it reads another field", chars.Name(odd), model.FieldName(meant))
	return true
}

// sitemapLine returns the record that a lone URL was meant to be, "" if that is not sure.
func sitemapLine(l *model.Line) string {
	u := strings.Trim(l.Text, chars.Blanks)
	if lower := strings.ToLower(u); !strings.Contains(lower, "sitemap") && !strings.Contains(lower, ".xml") {
		return ""
	}
	return "Sitemap: " + u
}

// shouting remarks on fields and well-known product tokens in capitals (RT009). Names and
// fields match in any case (RFC 9309 §2.2.1), so this is style alone. Unknown tokens are left
// alone: SISTRIX is a name.
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
