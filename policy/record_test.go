package policy_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

const recordsFile = `Sitemap: https://example.com/first.xml
Host: example.com
User-agent: a
Crawl-delay: 5 # seconds
Content-Usage: train-ai=n
Disallow: /x
Clean-param: sid /forum
User-agent: b
Request-rate: 1/10s
X-New_field.2: anything: goes
Disallow: /
sitemap: https://example.com/second.xml
USER-AGENT: A
License: https://example.com/rsl.xml
Empty:
<a href="https://example.com">: no field
Sitemap: /relative.xml
Sitemap: https://example.com/first.xml
`

func TestRecordsKeepWhatIsNeitherAgentNorRule(t *testing.T) {
	p := policy.Parse([]byte(recordsFile))
	if (&policy.Policy{}).HasRecord("host", "") || (*policy.Policy)(nil).HasRecord("host") {
		t.Error("a file that is none has a record")
	}
	for _, c := range []struct {
		name string
		got  []policy.Record
		want string
	}{
		{"file", slices.Collect(p.Records("")), "1 Sitemap, 2 Host, 4 Crawl-delay, 5 Content-Usage, 7 Clean-param, 9 Request-rate, 10 X-New_field.2, 12 sitemap, 14 License, 15 Empty, 17 Sitemap, 18 Sitemap"},
		{"sitemaps of the file", slices.Collect(p.Records("SiteMap")), "1 Sitemap, 12 sitemap, 17 Sitemap, 18 Sitemap"},
		{"group a, combined", slices.Collect(p.Group("a").Records("")), "4 Crawl-delay, 5 Content-Usage, 7 Clean-param, 14 License, 15 Empty"},
		{"group b", slices.Collect(p.Group("b").Records("")), "9 Request-rate, 10 X-New_field.2"},
		{"group a, one field", slices.Collect(p.Group("a").Records("content-usage")), "5 Content-Usage"},
		{"copy of group a", slices.Collect(p.Combined("a").Records("")), "4 Crawl-delay, 5 Content-Usage, 7 Clean-param, 14 License, 15 Empty"},
		{"sitemaps of a group", slices.Collect(p.Group("a").Records("sitemap")), ""},
		{"no group", slices.Collect(p.Group("c").Records("")), ""},
		{"a field of the group's other records", slices.Collect(p.Group("a").Records("host")), ""},
		{"no such field", slices.Collect(p.Records("no-such")), ""},
		{"names of 64 and of 65 bytes", slices.Collect(policy.Parse([]byte("a" + strings.Repeat("b", 64) + ": 1\na" + strings.Repeat("c", 63) + ": 2\n")).Records("")), "2 a" + strings.Repeat("c", 63)},
	} {
		var got []string
		for _, r := range c.got {
			got = append(got, fmt.Sprint(r.Line, " ", r.Field))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: got %s, want %s", c.name, s, c.want)
		}
	}
	for r := range p.Records("x-new_FIELD.2") {
		if r.Field != "X-New_field.2" || r.Value != "anything: goes" || r.Line != 10 || r.GroupLine != 8 {
			t.Errorf("got %+v, want X-New_field.2: anything: goes, of line 10, in the group of line 8", r)
		}
	}
}

// What a record is, and who says so, is told from the iterator. Nothing is decided by it.
func TestRecordsAreKnownByTheirSource(t *testing.T) {
	p := policy.Parse([]byte("LLM-POLICY: https://a.example/llm\nuser-agent: *\nnoindex: /\nvisit-time: 0600-0845\n" +
		"request-rate: 1/10s\nhost: b.example\ncontent-usage: train-ai=n\nclean-param: s /\nx-new: 1\n"))
	want := []struct{ line, name, source string }{
		{"1", "LLM-Policy", "crawler-commons"},
		{"3", "Noindex", "Google, undocumented, until September 2019"},
		{"4", "Visit-time", "An Extended Standard for Robot Exclusion (Conner)"},
		{"5", "Request-rate", "Seznam; An Extended Standard for Robot Exclusion (Conner)"},
		{"6", "Host", "Yandex, until March 2018"},
		{"7", "Content-Usage", "draft-ietf-aipref-attach"},
		{"8", "Clean-param", "Yandex"},
		{"9", "", ""},
	}
	for r := range p.Records("") {
		name, source := r.Known()
		if got := fmt.Sprint(r.Line); len(want) == 0 || got != want[0].line || name != want[0].name || source != want[0].source {
			t.Fatalf("line %d: got %q of %q, want %v", r.Line, name, source, want)
		}
		want = want[1:]
	}
	if len(want) > 0 || !p.Decide("a", "/x").Allowed {
		t.Errorf("got no record for %v, or one that forbids", want)
	}
}

// A record is found by its name, whatever other names the file has.
func TestRecordsAreFoundByTheirName(t *testing.T) {
	var file strings.Builder
	file.WriteString("loose: 1\nuser-agent: a\n")
	for n := range 20 {
		for c := 'a'; c <= 'z'; c++ {
			fmt.Fprintf(&file, "%c%s: x\n", c, strings.Repeat("y", n))
		}
	}
	p := policy.Parse([]byte(file.String()))
	for r := range p.Records("") {
		for _, field := range []string{r.Field, strings.ToUpper(r.Field)} {
			if got := slices.Collect(p.Records(field)); !slices.Equal(got, []policy.Record{r}) {
				t.Errorf("%s: got %+v, want %+v", field, got, r)
			}
			if !p.HasRecord(field) {
				t.Errorf("%s: has no record, want %+v", field, r)
			}
			if got := slices.Collect(p.Group("a").Records(field)); r.GroupLine == 2 && len(got) != 1 {
				t.Errorf("%s: got %+v in the group, want %+v", field, got, r)
			}
		}
		if (r.GroupLine == 0) != (r.Field == "loose") || r.GroupLine != 0 && r.GroupLine != 2 {
			t.Errorf("got group %d of %+v, want the line of user-agent", r.GroupLine, r)
		}
		one := policy.Parse([]byte(r.Field + ": x"))
		if any, of, none := one.HasRecord(""), one.HasRecord("none", r.Field), one.HasRecord(); !any || !of || none {
			t.Errorf("%s: got %t for any field, %t for it and another, %t for none, want true, true, false", r.Field, any, of, none)
		}
		for q := range p.Records("") {
			want := q.Field == r.Field
			if n := len(slices.Collect(one.Records(q.Field))); (n == 1) != want {
				t.Errorf("got %d records %s of a file with one of %s, want one: %t", n, q.Field, r.Field, want)
			}
			if got := one.HasRecord(q.Field); got != want {
				t.Errorf("got %t for %s of a file with %s, want %t", got, q.Field, r.Field, want)
			}
		}
	}
}

func TestSitemapsAreAbsoluteAndNamedOnce(t *testing.T) {
	const without = "Sitemap: https:///no-host.xml\nSitemap: https://?q\nSitemap: ://example.com/no-scheme.xml\n"
	got := slices.Collect(policy.Parse([]byte(without + recordsFile)).Sitemaps())
	if want := []string{"https://example.com/first.xml", "https://example.com/second.xml"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for range policy.Parse([]byte(recordsFile)).Sitemaps() {
		break // an iterator may be left early
	}
}

// A flood of records costs no more than its bound, and no rule.
func TestRecordsAreBounded(t *testing.T) {
	file := strings.Repeat("sitemap: https://example.com/0123456789.xml\n", 10_000) + "user-agent: *\ndisallow: /x\n"
	p := policy.Parse([]byte(file))
	n := len(slices.Collect(p.Records("sitemap")))
	if n < 3_000 || n >= 10_000 {
		t.Errorf("%d records kept, want as many as fit 256 KiB", n)
	}
	if p.Decide("a", "/x").Allowed {
		t.Error("the rule after the flood was lost")
	}
}

func TestCrawlDelay(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"0", 0},
		{"5", 5 * time.Second},
		{"0.5", 500 * time.Millisecond},
		{".5", 500 * time.Millisecond},
		{"1.", time.Second},
		{"00010", 10 * time.Second},
		{"0.0000000019", 1},
		{"9223372035", 9223372035 * time.Second},
		{"9223372036", math.MaxInt64},
		{"99999999999999999999999999999999", math.MaxInt64},
		{"", none},
		{".", none},
		{"-1", none},
		{"+1", none},
		{"1e3", none},
		{"1e300", none},
		{"NaN", none},
		{"Inf", none},
		{"0x10", none},
		{"[5]", none},
		{"5s", none},
		{"5 seconds", none},
		{"1.2.3", none},
		{"1,5", none},
		{"٣", none}, // a digit of Unicode
	} {
		got, ok := policy.Parse([]byte("user-agent: *\ncrawl-delay: " + c.value + "\n")).Group("a").CrawlDelay()
		if !ok {
			got = none
		}
		if got != c.want {
			t.Errorf("%q: got %v, want %v", c.value, got, c.want)
		}
	}
}

func TestCrawlDelayOfDialectsAndGroups(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name    string
		dialect policy.Dialect
		file    string
		want    time.Duration // negative: none
	}{
		{"largest of several", policy.RFC9309, "user-agent: a\ncrawl-delay: 2\ncrawl-delay: 7\ncrawl-delay: 3\n", 7 * s},
		{"useless ones aside", policy.RFC9309, "user-agent: a\ncrawl-delay: x\ncrawl-delay: 3\n", 3 * s},
		{"of all groups of the token", policy.RFC9309, "user-agent: a\ncrawl-delay: 2\ndisallow: /\nuser-agent: b\ncrawl-delay: 9\ndisallow: /\nuser-agent: a\ncrawl-delay: 4\n", 4 * s},
		{"shared by a list of names", policy.RFC9309, "user-agent: a\ncrawl-delay: 2\nuser-agent: b\ndisallow: /\n", 2 * s},
		{"of the default group", policy.RFC9309, "user-agent: *\ncrawl-delay: 2\n", 2 * s},
		{"not of the default group", policy.RFC9309, "user-agent: *\ncrawl-delay: 2\ndisallow: /\nuser-agent: a\n", -1},
		{"not before any group", policy.RFC9309, "crawl-delay: 2\nuser-agent: a\n", -1},
		{"ignored by Google", policy.Google, "user-agent: a\ncrawl-delay: 2\n", -1},
		{"ignored by Yandex", policy.Yandex, "user-agent: a\ncrawl-delay: 2\n", -1},
		{"unknown in 1994", policy.Original, "user-agent: a\ncrawl-delay: 2\ndisallow: /\n", -1},
		{"window of Bing", policy.Bing, "user-agent: a\ncrawl-delay: 10\n", 10 * s},
		{"widest window of Bing", policy.Bing, "user-agent: a\ncrawl-delay: 100\n", 30 * s},
		{"smallest window of Bing", policy.Bing, "user-agent: a\ncrawl-delay: 0.1\n", s},
	} {
		for name, g := range map[string]policy.Group{
			"": c.dialect.Parse([]byte(c.file)).Group("a"), " (copy)": c.dialect.Parse([]byte(c.file)).Combined("a"),
		} {
			got, ok := g.CrawlDelay()
			if !ok {
				got = -1
			}
			if got != c.want {
				t.Errorf("%s%s: got %v, want %v", c.name, name, got, c.want)
			}
		}
	}
}
