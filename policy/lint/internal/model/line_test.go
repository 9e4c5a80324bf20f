package model

import (
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
)

// What lint takes for a record with a value is what the Google dialect takes for it, over real files.
func TestFieldsAreRecognisedAsGoogleDoes(t *testing.T) {
	type row struct{ ID, Field, Tag string }
	for _, r := range vectors.Read[row](t, "vectors/google-field.jsonl", "typo") {
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
		l := Read([]byte(c.text)).Lines[0]
		if l.Field != c.field || l.Value != c.value || l.ValueAt != c.valueAt || l.CommentAt != c.commentAt {
			t.Errorf("%q: got %q %q at %d, comment at %d, want %+v", c.text, l.Field, l.Value, l.ValueAt, l.CommentAt, c)
		}
	}
}

func TestDistanceCountsSlips(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"allow", "allow", 0}, {"alow", "allow", 1}, {"alolw", "allow", 1}, {"llow", "allow", 1}, {"allxw", "allow", 1},
		{"disalwo", "disallow", 2}, {"", "a", 1}, {"abc", "xyz", 3}, {"a", "disallow", 7},
	} {
		if !within(c.a, c.b, c.want) || within(c.a, c.b, min(c.want, 3)-1) {
			t.Errorf("%q and %q: not %d slips", c.a, c.b, c.want)
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

			Typo, Empty, Comment bool // lint.Lines is held against these
			HasComment           bool `json:"has_comment"`
			TooLong              bool `json:"too_long"`
		}
	}
	compared := 0
	for _, r := range vectors.Read[row](t, "vectors/google-report.jsonl",
		"line_count", "valid_directives", "unknown_directives", "last_directive_line") {
		f := Read([]byte(r.Robots + string(r.Bytes)))
		ours := map[int]*Line{}
		for _, l := range f.Lines {
			ours[l.Number] = l
		}
		for _, want := range r.Lines {
			l := ours[want.Line]
			if !want.Directive {
				if l != nil && l.Kind != "" {
					t.Errorf("%s: line %d: got %q, want no record", r.ID, want.Line, l.Kind)
				}
				continue
			}
			compared++
			switch {
			case l == nil:
				t.Errorf("%s: line %d: got nothing, want %q", r.ID, want.Line, want.Tag)
			case want.Tag == "unknown" && l.Kind != "",
				want.Tag == "unused" && (l.Kind == "" || l.Kind == Sitemap || l.Kind == UserAgent || l.Rule()),
				want.Tag != "unknown" && want.Tag != "unused" && l.Kind != want.Tag,
				l.NoColon != want.MissingColon:
				t.Errorf("%s: line %d: got %q, without colon %v, want %+v", r.ID, want.Line, l.Kind, l.NoColon, want)
			}
		}
	}
	if compared < 40 {
		t.Errorf("compared only %d records", compared)
	}
}
