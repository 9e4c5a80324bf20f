package lint

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

func TestLinesAreReadAsTheGoogleDialectReadsThem(t *testing.T) {
	kinds := map[LineKind]string{
		LineUserAgent: model.UserAgent, LineAllow: model.Allow, LineDisallow: model.Disallow, LineSitemap: model.Sitemap,
	}
	records := 0
	for name, data := range vectors.Corpus(t) {
		ours := map[int]*model.Line{}
		f := model.Read(data)
		for _, l := range f.Lines {
			if l.Kind == model.UserAgent || l.Rule() || l.Kind == model.Sitemap {
				ours[l.Number] = l
			}
		}
		for theirs := range Lines(policy.Google, data) {
			l, ok := ours[theirs.Number]
			kind, is := kinds[theirs.Kind]
			delete(ours, theirs.Number)
			switch {
			case !ok && !is:
				continue
			case ok != is || l.Kind != kind || l.Value != theirs.Value:
				t.Errorf("%s:%d: policy reads %q %q, lint reads %+v", name, theirs.Number, kind, theirs.Value, l)
			}
			records++
		}
		for number, l := range ours {
			t.Errorf("%s:%d: only lint reads %q", name, number, l.Text)
		}
	}
	if records < 20_000 {
		t.Errorf("compared only %d records", records)
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

// The page of "robots serve" reads the lines of 500 KiB twice: a text of its own for each is half of that.
func TestLinesCopyAFileOnce(t *testing.T) {
	data := bytes.Repeat([]byte("Disallow: /a # b\n"), 1000)
	n := testing.AllocsPerRun(10, func() {
		for range Lines(policy.RFC9309, data) {
		}
	})
	if n > 10 {
		t.Errorf("%v allocations for 1,000 lines", n)
	}
}

// Git may write the manual with the line ends of Windows, and it is part of the program.
func TestTheManualHasAnyLineEnds(t *testing.T) {
	if got := readManual(strings.ReplaceAll(manual, "\n", "\r\n")); !slices.Equal(got, rules()) {
		t.Errorf("%d rules, %d with the line ends of Windows, or others", len(rules()), len(got))
	}
}

// A suggestion changes how a pattern is written, not what it means: policy's normal form of both is one.
func FuzzReescape(f *testing.F) {
	for _, v := range []string{"/", "/%", "/100%*", "/%7euser", "/%c3%bc", "/ü", "/a%2fb", "/%2A%24$", "/*.gif$", "/%23", "/a b", "/\xff"} {
		f.Add(v)
	}
	normal := func(v string) string {
		return policy.Parse([]byte("User-agent: *\nDisallow: " + v)).String()
	}
	f.Fuzz(func(t *testing.T, v string) {
		if v = "/" + v; len(v) > maxReplacement/3 || strings.ContainsAny(v, "\r\n#") || strings.TrimSpace(v) != v {
			t.Skip("no pattern that is rewritten whole")
		}
		if got, want := normal(reescape(v)), normal(v); got != want {
			t.Errorf("%q is rewritten as %q: means %q, want %q", v, reescape(v), got, want)
		}
	})
}
