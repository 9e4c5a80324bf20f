package agreement_test

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/fetch"
)

const agreed = `# what sites have agreed to
Site: https://a.example
Until: 1999-12-31
Reason: has ended
User-agent: *
Allow: /

Site: https://a.example/
Until: 2000-01-01
Reason: e-mail of J. Doe, ticket #4711
User-agent: ExampleBot
Allow: /private/archive/
# but not all
Disallow: /private/archive/drafts/
Allow: /private/café

user-agent: *
Allow: /private/open

Site: HTTPS://A.Example:443
Until: 2000-01-03
Reason: the later one
User-agent: ExampleBot
Allow: /private/late
`

// An agreement decides for its origin, its crawlers and its paths, until its end; what it does not allow is disallowed.
func TestAnAgreementStandsInForRobots(t *testing.T) {
	const first, second = 1, 3 // the days on which they end
	for _, row := range []struct {
		url, token string
		day        int // of January 2000
		until      int // the day of the agreement; 0: none
		allowed    bool
		line       int
	}{
		{"https://a.example/private/archive/1", "ExampleBot", 1, first, true, 12},
		{"https://a.example/private/archive/1", "examplebot", 1, first, true, 12},
		{"https://a.example/private/archive/drafts/1", "ExampleBot", 1, first, false, 14},
		{"https://a.example/private/caf%C3%A9", "ExampleBot", 1, first, true, 15},
		{"https://a.example/private/open", "OtherBot", 1, first, true, 18},
		{"https://a.example/private/open", "ExampleBot", 1, first, false, 22}, // * is for others
		{"https://a.example/private/archive/1", "OtherBot", 1, first, false, 22},
		{"https://a.example/", "ExampleBot", 1, first, false, 22},
		{"https://a.example/private/late", "ExampleBot", 1, first, false, 22}, // the first entry alone
		{"https://a.example/private/late", "ExampleBot", 2, second, true, 24},
		{"https://a.example/private/archive/1", "ExampleBot", 2, second, false, 0},
		{"https://a.example/private/late", "ExampleBot", 4, 0, false, 0},
		// Another origin is another site.
		{"http://a.example/private/archive/1", "ExampleBot", 1, 0, false, 0},
		{"https://a.example:8443/private/archive/1", "ExampleBot", 1, 0, false, 0},
		{"https://www.a.example/private/archive/1", "ExampleBot", 1, 0, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			quiet(t)
			all, err := agreement.Parse([]byte(agreed))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(row.day-1) * 24 * time.Hour)
			u, err := url.Parse(row.url)
			if err != nil {
				t.Fatal(err)
			}
			o, err := fetch.OriginOf(u)
			if err != nil {
				t.Fatal(err)
			}
			a, p := all.Of(o), all.Override(o)
			if (a != nil) != (row.until > 0) || (p != nil) != (a != nil) || a != nil && a.Until.Day() != row.until {
				t.Fatalf("%s on day %d: %+v, want one until day %d", row.url, row.day, a, row.until)
			}
			if p == nil {
				return
			}
			d, err := client.DecideWith(p, row.token, u)
			if err != nil || d.Allowed != row.allowed || row.allowed && d.Rule.Line != row.line {
				t.Errorf("%s for %s on day %d: %v, %v; want allowed %t by line %d", row.url, row.token, row.day, d, err, row.allowed, row.line)
			}
		})
	}
	if p := (*agreement.Agreements)(nil).Override(fetch.Origin{}); p != nil {
		t.Errorf("none at all: %v", p)
	}
}

// quiet keeps what is logged out of the test's output.
func quiet(t *testing.T) *strings.Builder {
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

// The first time that an agreement decides, and the first time that it would have, is logged.
func TestAgreementsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := quiet(t)
		all, err := agreement.Parse([]byte(agreed))
		if err != nil {
			t.Fatal(err)
		}
		o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: "a.example"})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			all.Override(o)
			all.Override(o)
			time.Sleep(24 * time.Hour)
		}
		for text, want := range map[string]int{
			`an agreement decides" site=https://a.example reason="e-mail of J. Doe, ticket #4711"`: 1,
			`an agreement decides" site=https://a.example reason="the later one"`:                  1,
			`an agreement has ended" site=https://a.example reason="e-mail of J. Doe`:              1,
			`an agreement has ended" site=https://a.example reason="has ended"`:                    1,
			"level=": 4,
		} {
			if n := strings.Count(log.String(), text); n != want {
				t.Errorf("%d times %s, want %d, in\n%s", n, text, want, log)
			}
		}
	})
}

// What is not understood is an error that names the line: it must be no permission, nor lose a promise.
func TestAgreementsThatAreNotUnderstood(t *testing.T) {
	const head = "Site: https://a.example\nUntil: 2000-01-01\nReason: x\n"
	for text, want := range map[string]string{
		"Allow: /\n":                                                            "line 1: begin with the site",
		"Site: a.example\n":                                                     `line 1: "a.example" is no site: write its scheme and host alone`,
		"Site: https://a.example/archive\n":                                     "line 1: \"https://a.example/archive\" is no site",
		"Site: https://u:p@a.example\n":                                         "is no site",
		"Site: ftp://a.example\n":                                               "is no site",
		"Site: https://*.a.example\n":                                           "is no site",
		"Site: https://a.example:x\n":                                           "line 1: ",
		"Site:\n":                                                               "line 1: write it as FIELD: VALUE",
		"\n\nSite https //a.example\n":                                          "line 3: write it as FIELD: VALUE",
		"Site: https://a.example\nUntil: 2000-02-30":                            `line 2: "2000-02-30" is no date`,
		head + "Until: 2001-01-01\n":                                            "line 4: the entry has its until",
		head + "Reason: y\n":                                                    "line 4: the entry has its reason",
		head + "Allow: /\n":                                                     "line 4: say above for whom it is",
		head + "User-agent: Example Bot\nAllow: /\n":                            `line 4: "Example Bot" is no product token`,
		head + "User-agent: B*\nAllow: /\n":                                     `line 4: "B*" is no product token`,
		head + "User-agent: B # all\nAllow: /\n":                                `line 4: "B # all" is no product token`,
		head + "User-agent: *\nAllow:\n":                                        "line 5: write it as",
		head + "User-agent: *\nAllow: archive\n":                                `line 5: "archive" is no path`,
		head + "User-agent: *\nAllow: #/\n":                                     `line 5: "#/" is no path`,
		head + "User-agent: *\nAllow: /issue#1/\n":                              `line 5: "/issue#1/" holds a #: write %23`,
		head + "User-agent: *\nDisalow: /\n":                                    `line 5: "disalow" is no field`,
		head + "User-agent: *\nCrawl-delay: 0\n":                                `line 5: "crawl-delay" is no field`,
		head + "User-agent: *\nAllow: /a\rAllow: /":                             "line 5: it holds a control character",
		head + "User-agent: *\nAllow: /\xff\n":                                  "line 5: it holds a control character, is not UTF-8",
		head + "User-agent: *\nAllow: /" + strings.Repeat("a", 3000):            "line 5: it holds",
		head + "User-agent: *\nAllow: /\nUser-agent: B\n":                       "line 6: the entry for https://a.example above ends without a rule",
		head + "User-agent: *\nAllow: /\n" + head + "Allow: /\n":                "line 9: say above for whom it is",
		"Site: https://a.example":                                               "line 1: the entry for https://a.example above has no end",
		head + "User-agent: *":                                                  "line 4: the entry for https://a.example above ends without a rule",
		"Site: https://a.example\nReason: x\nUser-agent: *\nAllow: /\n":         "line 4: the entry for https://a.example above has no end",
		"Site: https://a.example\nUntil: 2000-01-01\nUser-agent: *\nAllow: /\n": "line 4: the entry for https://a.example above has no reason",
		head + "User-agent: *\n" + strings.Repeat("Allow: /"+strings.Repeat("a", 2000)+"\n", 40): "longer than 64 KiB",
	} {
		all, err := agreement.Parse([]byte(text))
		if all != nil || err == nil || !strings.HasPrefix(err.Error(), "agreements, line ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\r\n", "\uFEFF" + head + "User-agent: Bot-2\nUSER-AGENT: *\nDisallow: *.pdf$\n", head + "User-agent:\tB\t\nAllow\t:\t/ \t\n"} {
		if _, err := agreement.Parse([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
