package lint

import (
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/vectors"
)

// What lint takes for a record with a value is what the Google dialect takes for it, over real files.
func TestLinesAreReadAsTheGoogleDialectReadsThem(t *testing.T) {
	kinds := map[LineKind]string{
		LineUserAgent: userAgent, LineAllow: allow, LineDisallow: disallow, LineSitemap: sitemap,
	}
	records := 0
	for name, data := range vectors.Corpus(t) {
		ours := map[int]*line{}
		f := readFile(data)
		for i := range f.lines {
			if l := &f.lines[i]; l.kind == userAgent || l.rule() || l.kind == sitemap {
				ours[l.number] = l
			}
		}
		for theirs := range Lines(policy.Google, data) {
			l, ok := ours[theirs.Number]
			kind, is := kinds[theirs.Kind]
			delete(ours, theirs.Number)
			switch {
			case !ok && !is:
				continue
			case ok != is || l.kind != kind || l.value != theirs.Value:
				t.Errorf("%s:%d: policy reads %q %q, lint reads %+v", name, theirs.Number, kind, theirs.Value, l)
			}
			records++
		}
		for number, l := range ours {
			t.Errorf("%s:%d: only lint reads %q", name, number, l.text)
		}
	}
	if records < 20_000 {
		t.Errorf("compared only %d records", records)
	}
}

func TestFieldsAreRecognisedAsGoogleDoes(t *testing.T) {
	type row struct{ ID, Field, Tag string }
	for _, r := range vectors.Read[row](t, "vectors/google-field.jsonl") {
		kind, _ := readField(r.Field)
		switch {
		case r.Tag == "unknown":
			if kind != "" {
				t.Errorf("%s: %q: got %q, want no field", r.ID, r.Field, kind)
			}
		case r.Tag == "unused":
			if kind != r.Field {
				t.Errorf("%s: %q: got %q, want it known", r.ID, r.Field, kind)
			}
		case kind != r.Tag:
			t.Errorf("%s: %q: got %q, want %q", r.ID, r.Field, kind, r.Tag)
		}
	}
}

func TestPositionsAreThoseOfTheText(t *testing.T) {
	for _, c := range []struct {
		text, field, value string
		valueAt, commentAt int
	}{
		{"Disallow: /x", "Disallow", "/x", 10, 12},
		{" Disallow\t: \t/x # why", "Disallow", "/x", 13, 16},
		{"  disallow \t /x  ", "disallow", "/x", 13, 17},
		{"disallow /x#y", "disallow", "/x", 9, 11},
		{"Disallow:", "Disallow", "", 9, 9},
		{"plain words here", "", "", 0, 16},
		{"a:b:c", "a", "b:c", 2, 5},
	} {
		l := readFile([]byte(c.text)).lines[0]
		if l.field != c.field || l.value != c.value || l.valueAt != c.valueAt || l.commentAt != c.commentAt {
			t.Errorf("%q: got %q %q at %d, comment at %d, want %+v", c.text, l.field, l.value, l.valueAt, l.commentAt, c)
		}
	}
}

func TestDistanceCountsSlips(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"allow", "allow", 0}, {"alow", "allow", 1}, {"alolw", "allow", 1}, {"llow", "allow", 1}, {"allxw", "allow", 1},
		{"disalwo", "disallow", 2}, {"", "a", 1}, {"abc", "xyz", 3}, {"a", "disallow", 3},
	} {
		if got := distance(c.a, c.b, 2); got != c.want {
			t.Errorf("distance(%q, %q): got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestRecordsAreThoseOfGooglesReports(t *testing.T) {
	type row struct {
		ID, Robots string
		Bytes      []byte `json:"robots_b64"` // instead of Robots
		Lines      []struct {
			Line         int
			Tag          string
			Directive    bool
			MissingColon bool `json:"missing_colon"`
		}
	}
	compared := 0
	for _, r := range vectors.Read[row](t, "vectors/google-report.jsonl") {
		f := readFile([]byte(r.Robots + string(r.Bytes)))
		ours := map[int]*line{}
		for i := range f.lines {
			ours[f.lines[i].number] = &f.lines[i]
		}
		for _, want := range r.Lines {
			l := ours[want.Line]
			if !want.Directive {
				if l != nil && l.kind != "" {
					t.Errorf("%s: line %d: got %q, want no record", r.ID, want.Line, l.kind)
				}
				continue
			}
			compared++
			switch {
			case l == nil:
				t.Errorf("%s: line %d: got nothing, want %q", r.ID, want.Line, want.Tag)
			case want.Tag == "unknown" && l.kind != "",
				want.Tag == "unused" && (l.kind == "" || l.kind == sitemap || l.kind == userAgent || l.rule()),
				want.Tag != "unknown" && want.Tag != "unused" && l.kind != want.Tag,
				l.noColon != want.MissingColon:
				t.Errorf("%s: line %d: got %q, without colon %v, want %+v", r.ID, want.Line, l.kind, l.noColon, want)
			}
		}
	}
	if compared < 40 {
		t.Errorf("compared only %d records", compared)
	}
}

func TestLineKindsAreThoseOfTheScanner(t *testing.T) {
	for text, want := range map[string]LineKind{
		" ": LineBlank, "#": LineComment, "User-agent: x": LineUserAgent, "Allow: x": LineAllow, "Disallow: x": LineDisallow,
		"Sitemap: x": LineSitemap, "Host: x": LineRecord, "x": LineInvalid, ": x": LineInvalid,
	} {
		for l := range Lines(policy.RFC9309, []byte(text)) {
			if l.Kind != want {
				t.Errorf("%q: got %v, want %v", text, l.Kind, want)
			}
		}
	}
}
