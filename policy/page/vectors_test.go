package page_test

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

// fact is one line of page-rules.jsonl, the shared file or our own.
type fact struct {
	ID, Kind, Engine string
	Tokens           []string
	Headers          []string
	Meta             []struct{ Name, Content string }
	HTML             string
	Rel              string
	Expect           json.RawMessage
	Source, Status   string
	Note             string
}

// dialectOf translates the engines of the facts. A fact without one is about
// reading, and is held against the strict dialect.
func dialectOf(t *testing.T, engine string) (d policy.Dialect) {
	t.Helper()
	if engine == "strict" || engine == "" {
		return policy.RFC9309
	}
	if err := d.UnmarshalText([]byte(engine)); err != nil {
		t.Fatal(err)
	}
	return d
}

// rules reads the response of a fact, the header first.
func (f fact) rules() page.Rules {
	r := page.ParseHeader(f.Headers)
	var text strings.Builder
	for _, m := range f.Meta {
		fmt.Fprintf(&text, "<meta name=\"%s\" content=\"%s\">\n", html.EscapeString(m.Name), html.EscapeString(m.Content))
	}
	text.WriteString(f.HTML)
	return r.Add(page.ParseHTML([]byte(text.String())))
}

// fields returns an effect under the names that the facts use.
func fields(e page.Effect) map[string]any {
	limit := func(l page.Limit) any {
		if !l.Said {
			return nil
		}
		return float64(l.N) // as in JSON
	}
	m := map[string]any{
		"noindex": e.NoIndex, "nofollow": e.NoFollow, "noarchive": e.NoArchive, "nocache": e.NoCache,
		"nosnippet": e.NoSnippet, "notranslate": e.NoTranslate, "noimageindex": e.NoImageIndex,
		"indexifembedded": e.IndexIfEmbedded, "noai": e.NoAI, "noimageai": e.NoImageAI, "noml": e.NoML,
		"max_snippet": limit(e.MaxSnippet), "max_video_preview": limit(e.MaxVideoPreview),
		"max_image_preview": nil, "unavailable_after": nil, "incomplete": e.Incomplete,
	}
	if e.MaxImagePreview != "" {
		m["max_image_preview"] = e.MaxImagePreview
	}
	if !e.UnavailableAfter.IsZero() {
		m["unavailable_after"] = e.UnavailableAfter.Format(time.RFC3339)
	}
	return m
}

// check holds the library to one fact.
func (f fact) check(t *testing.T) {
	var want map[string]any
	switch f.Kind {
	case "robots.txt":
		// What is disallowed is not fetched, so that the page says nothing.
		if d := policy.Parse([]byte("user-agent: *\ndisallow: /p")).Decide("a", "/p"); d.Allowed {
			t.Errorf("%s: got %v, want disallowed", f.ID, d)
		}
		if e := (page.Rules{}).For(policy.Google, "googlebot"); e != (page.Effect{}) {
			t.Errorf("%s: got %v of a page that was not fetched, want nothing", f.ID, e)
		}
		return
	case "header", "meta", "html", "rel", "both":
		if err := json.Unmarshal(f.Expect, &want); err != nil {
			t.Fatal(f.ID, err)
		}
	default:
		t.Fatalf("%s: unknown kind %q", f.ID, f.Kind)
	}
	if f.Kind == "rel" {
		f.checkRel(t, want["follow"])
		return
	}
	r := f.rules()
	got := fields(r.For(dialectOf(t, f.Engine), f.Tokens...))
	for key, value := range want {
		have, ok := got[key]
		if !ok || have != value {
			t.Errorf("%s: %s: got %v, want %v\n%q %+v %q\nnote: %s\nsource: %s", f.ID, key, have, value, f.Headers, f.Meta, f.HTML, f.Note, f.Source)
		}
	}
	if t.Failed() {
		for s, why := range r.Explain(dialectOf(t, f.Engine), f.Tokens...) {
			t.Logf("%s: %v %s", f.ID, s, why)
		}
	}
}

func (f fact) checkRel(t *testing.T, want any) {
	rel := page.ParseRel(f.Rel)
	var hints []string
	if rel.UGC {
		hints = append(hints, "ugc")
	}
	if rel.Sponsored {
		hints = append(hints, "sponsored")
	}
	var got any = (page.Effect{}).MayFollow(f.Rel)
	if got == true && hints != nil {
		got = "hint: " + strings.Join(hints, ", ")
	}
	if got != want {
		t.Errorf("%s: %q: got %v, want %v", f.ID, f.Rel, got, want)
	}
}

func TestPageFacts(t *testing.T) {
	facts := vectors.Read[fact](t, "vectors/page-rules.jsonl", "case")
	for _, f := range facts {
		f.check(t)
	}
	t.Logf("%d facts", len(facts))
}

func ownFacts(t testing.TB) []fact {
	return vectors.ReadOwn[fact](t, "testdata/page-rules.jsonl")
}

// P-25: on a machine in California, too, a date is what it says.
func TestOwnFacts(t *testing.T) {
	defer func(here *time.Location) { time.Local = here }(time.Local)
	for _, time.Local = range []*time.Location{time.UTC, time.FixedZone("PST", -8*60*60)} {
		for _, f := range ownFacts(t) {
			f.check(t)
		}
	}
}
