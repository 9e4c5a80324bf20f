package integration_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

var dialects = []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// fact is one line of the shared match facts.
type fact struct {
	ID        string
	Profile   string
	Robots    string
	RobotsB64 string `json:"robots_b64"`
	RobotsGen []struct {
		Text   string
		Repeat int
	} `json:"robots_gen"`
	Agents    []string
	URL       string
	URLB64    string `json:"url_b64"`
	Allowed   bool
	Contested bool
	File      string // corpus only
	Line      int    // corpus only
}

func (f fact) robots(t *testing.T) []byte {
	if f.RobotsB64 != "" {
		return unbase64(t, f.RobotsB64)
	}
	if f.RobotsGen != nil {
		var b strings.Builder
		for _, g := range f.RobotsGen {
			b.WriteString(strings.Repeat(g.Text, g.Repeat))
		}
		return []byte(b.String())
	}
	return []byte(f.Robots)
}

func (f fact) target(t *testing.T) string {
	if f.URLB64 != "" {
		return vectors.Target(string(unbase64(t, f.URLB64)))
	}
	return vectors.Target(f.URL)
}

// group returns the group the fact asks. A crawler that answers to two tokens
// obeys the groups of both, combined.
func (f fact) group(p *policy.Policy) policy.Group {
	if len(f.Agents) == 1 {
		return p.Group(f.Agents[0])
	}
	return p.Combined(f.Agents...)
}

func unbase64(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func dialectOf(t *testing.T, profile string) (d policy.Dialect) {
	t.Helper()
	if err := d.UnmarshalText([]byte(profile)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTargetsOfTheVectorsAreCutAsGoogleDoes(t *testing.T) {
	for _, v := range vectors.Read[struct{ ID, URL, Path string }](t, "vectors/google-url-path.jsonl") {
		if got := vectors.Target(v.URL); got != v.Path {
			t.Errorf("%s: target of %q: got %q, want %q", v.ID, v.URL, got, v.Path)
		}
	}
}

// contested says what the library does with the rows of rfc9309.jsonl that
// careful implementations do not agree on, and why.
var contested = map[string]struct {
	allowed bool
	why     string
}{
	"rfc9309-082": {true, "R-2.2-4: the grammar wants a colon; in its place only Google's parser takes white space (G-22)"},
	"rfc9309-083": {true, "R-2.2.4-1: leniency about misspellings is for other records; Google's dialect has the list (G-24)"},
}

func TestMatchFacts(t *testing.T) {
	asked := 0
	for _, name := range []string{"vectors/google.jsonl", "vectors/rfc9309.jsonl"} {
		for _, f := range vectors.Read[fact](t, name, "scope", "section", "topic", "note", "oracle") {
			want, why := f.Allowed, "as the fact says"
			if c, ok := contested[f.ID]; ok != f.Contested {
				t.Errorf("%s: contested is %v, but the test says %v", f.ID, f.Contested, ok)
			} else if ok {
				want, why = c.allowed, c.why
				asked++
			}
			p := dialectOf(t, f.Profile).Parse(f.robots(t))
			if d := f.group(p).Decide(f.target(t)); d.Allowed != want {
				t.Errorf("%s: %v asks for %q: got %v, want allowed %v (%s)\n%.300s", f.ID, f.Agents, f.URL, d, want, why, f.robots(t))
			}
		}
	}
	if asked != len(contested) {
		t.Errorf("%d contested facts were asked, want %d", asked, len(contested))
	}
}

// Real files in their canonical text, and groups copied out of them, decide as
// the files do.
func TestCorpusInOtherForms(t *testing.T) {
	tier.Gate(t)
	files, facts := vectors.Corpus(t), vectors.Read[fact](t, "corpus/queries.jsonl.gz")
	type forms struct{ file, text *policy.Policy }
	for _, dialect := range dialects {
		parsed, copies := map[string]forms{}, map[string]policy.Group{}
		for name, body := range files {
			p := dialect.Parse(body)
			parsed[name] = forms{p, dialect.Parse([]byte(p.String()))}
		}
		for _, f := range facts {
			p, target := parsed[f.File], vectors.Target(f.URL)
			want := p.file.Decide(f.Agents[0], target)
			copied, ok := copies[f.File+f.Agents[0]]
			if !ok {
				copied = p.file.Combined(f.Agents[0])
				copies[f.File+f.Agents[0]] = copied
			}
			if got := copied.Decide(target); got != want {
				t.Errorf("%v: %s: got %v of a copied group, want %v", dialect, f.ID, got, want)
			}
			got := p.text.Decide(f.Agents[0], target)
			got.Rule.Line, want.Rule.Line = 0, 0
			got.Rule.Pattern, want.Rule.Pattern = "", "" // in normal form, and as written
			if got != want {
				t.Errorf("%v: %s: got %v from the canonical text, want %v", dialect, f.ID, got, want)
			}
		}
	}
}

// TestCorpus holds the Google dialect to the verdict and the deciding line of
// Google's library for 10,537 questions about real files.
func TestCorpus(t *testing.T) {
	files := vectors.Corpus(t)
	policies := map[string]*policy.Policy{}
	facts := vectors.Read[fact](t, "corpus/queries.jsonl.gz")
	if len(files) != 500 || len(facts) != 10537 {
		t.Errorf("corpus holds %d files and %d questions, want 500 and 10537", len(files), len(facts))
	}
	implicit := 0
	for _, f := range facts {
		p := policies[f.File]
		if p == nil {
			p = policy.Google.Parse(files[f.File])
			policies[f.File] = p
		}
		target := vectors.Target(f.URL)
		d := f.group(p).Decide(target)
		if d.Allowed == f.Allowed && d.Rule.Line == f.Line {
			continue
		}
		if target == "/robots.txt" && d.Allowed && d.Rule.Line == 0 {
			implicit++ // R-2.2.2-6: /robots.txt is implicitly allowed, whatever the rules; the library has no such rule
			continue
		}
		t.Errorf("%s: %s: %v asks for %q: got %v, want allowed %v by line %d", f.ID, f.File, f.Agents, f.URL, d, f.Allowed, f.Line)
	}
	if implicit != 19 {
		t.Errorf("R-2.2.2-6 explains %d differences, want 19", implicit)
	}
}

func TestSitemapFacts(t *testing.T) {
	type sitemapFact struct {
		ID, Profile, Robots string
		Sitemaps            []string
	}
	for _, f := range vectors.Read[sitemapFact](t, "vectors/google-sitemap.jsonl", "section") {
		p := dialectOf(t, f.Profile).Parse([]byte(f.Robots))
		var all, absolute []string
		for r := range p.Records("sitemap") {
			all = append(all, r.Value)
		}
		for _, s := range f.Sitemaps {
			if strings.Contains(s, ":") { // one fact has an empty and a relative value (G-19: must be absolute)
				absolute = append(absolute, s)
			}
		}
		if got := slices.Collect(p.Sitemaps()); !slices.Equal(got, absolute) || !slices.Equal(all, f.Sitemaps) {
			t.Errorf("%s: got sitemaps %q of records %q, want %q of %q", f.ID, got, all, absolute, f.Sitemaps)
		}
	}
}

func TestFieldFacts(t *testing.T) {
	kinds := map[lint.LineKind]string{
		lint.LineUserAgent: "user-agent", lint.LineAllow: "allow", lint.LineDisallow: "disallow", lint.LineSitemap: "sitemap",
		lint.LineRecord: "record", // unknown, or known and not used: what a record means is no matter of the parser
	}
	for _, f := range vectors.Read[struct {
		ID, Field, Tag string
		Typo           bool
	}](t, "vectors/google-field.jsonl") {
		want := f.Tag
		if want == "unknown" || want == "unused" {
			want = "record"
		}
		for l := range lint.Lines(policy.Google, []byte(f.Field+": x")) {
			if kinds[l.Kind] != want || l.Misspelt != f.Typo || l.Field != f.Field {
				t.Errorf("%s: %q: got %+v, want %s, misspelt %v", f.ID, f.Field, l, want, f.Typo)
			}
		}
	}
}

func TestEscapeFacts(t *testing.T) {
	for _, f := range vectors.Read[struct{ ID, Pattern, Escaped string }](t, "vectors/google-escape.jsonl") {
		want := "User-agent: *\nAllow: " + f.Escaped + "\n"
		if got := policy.Google.Parse([]byte("user-agent: *\nallow: " + f.Pattern)).String(); got != want {
			t.Errorf("%s: %q: got %q, want %q", f.ID, f.Pattern, got, want)
		}
	}
}

func TestReportFacts(t *testing.T) {
	type lineFact struct {
		Line         int
		Tag          string
		Typo, Empty  bool
		Comment      bool
		HasComment   bool `json:"has_comment"`
		Directive    bool
		TooLong      bool `json:"too_long"`
		MissingColon bool `json:"missing_colon"`
	}
	type report struct {
		fact
		Lines     []lineFact
		LineCount int `json:"line_count"`
		Last      int `json:"last_directive_line"`
	}
	tags := map[lint.LineKind]string{
		lint.LineUserAgent: "user-agent", lint.LineAllow: "allow", lint.LineDisallow: "disallow", lint.LineSitemap: "sitemap",
	}
	for _, f := range vectors.Read[report](t, "vectors/google-report.jsonl", "valid_directives", "unknown_directives") {
		lines := slices.Collect(lint.Lines(policy.Google, f.robots(t)))
		if len(lines) != f.LineCount || len(lines) != len(f.Lines) {
			t.Errorf("%s: got %d lines, want %d", f.ID, len(lines), f.LineCount)
			continue
		}
		last := 0
		for i, want := range f.Lines {
			l := lines[i]
			if l.Field != "" {
				last = l.Number
			}
			got := lineFact{
				Line: l.Number, Tag: tags[l.Kind], Typo: l.Misspelt, Empty: l.Kind == lint.LineBlank,
				Comment: l.Kind == lint.LineComment, HasComment: l.Comment,
				Directive: l.Field != "", TooLong: l.Cut, MissingColon: l.NoColon,
			}
			if got.Tag == "" { // which records are known is not the parser's to say
				got.Tag = want.Tag
			}
			if got != want {
				t.Errorf("%s: line %d: got %+v, want %+v", f.ID, want.Line, got, want)
			}
		}
		if last != f.Last {
			t.Errorf("%s: the last record is in line %d, want %d", f.ID, last, f.Last)
		}
	}
}

// TestYandexTester holds the Yandex dialect to what the robots.txt tester of Yandex Webmaster answered in July 2026.
func TestYandexTester(t *testing.T) {
	type observation struct {
		fact
		DecidedBy string `json:"decided_by"`
		Rule      struct {
			Line        int
			Type, Value string
		}
	}
	reasons := map[string]policy.Reason{
		"rule_allow": policy.ReasonRule, "rule_disallow": policy.ReasonRule, "effective_empty_disallow": policy.ReasonRule,
		"default_allow": policy.ReasonNoRule,
	}
	facts := vectors.Read[observation](t, "vectors/yandex-tester.jsonl", "observed")
	if len(facts) != 73 {
		t.Errorf("got %d observations, want 73", len(facts))
	}
	for _, f := range facts {
		d := policy.Yandex.Parse(f.robots(t)).Decide(f.Agents[0], f.target(t))
		if d.Allowed != f.Allowed || d.Reason != reasons[f.DecidedBy] || d.Rule.Line != f.Rule.Line ||
			d.Rule.Pattern != f.Rule.Value || d.Rule.Line > 0 && d.Rule.Allow != (f.Rule.Type == "allow") {
			t.Errorf("%s: %q: got %v (%+v), want allowed %v by %s, %+v\n%s", f.ID, f.URL, d, d.Rule, f.Allowed, f.DecidedBy, f.Rule, f.Robots)
		}
	}
}
