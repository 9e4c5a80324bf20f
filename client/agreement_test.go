package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/internal/memturns"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
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
Allow: /private/archive/ # not all
Disallow: /private/archive/drafts/
Disallow: /promised

user-agent: *
Allow: /private/open

Site: HTTPS://A.Example:443
Until: 2000-01-03
Reason: the later one
User-agent: ExampleBot
Allow: /private/archive/drafts/
Allow: /private/late
Allow: /private/café
Disallow: /private/no
`

// parsed reads agreements, whose log is of no interest.
func parsed(t *testing.T, text string) *client.Agreements {
	t.Helper()
	logTo(t, func(slog.Record) {})
	a, err := client.ParseAgreements([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An agreement decides for its origin, its crawlers and its paths, and for none else.
func TestAnAgreementDecidesBeforeRobots(t *testing.T) {
	const preferring = "User-agent: *\nDisallow: /private\nContent-Signal: search=no\n"
	for _, row := range []struct {
		url, token, robots string // robots: empty if it is unreachable
		uses               []string
		want               string // of Answer.LogValue
		until              int    // the day of the agreement; 0: none
	}{
		{"https://a.example/private/archive/1", "ExampleBot", robots, nil, "allowed by line 12 of an agreement: Allow: /private/archive/ (user-agent: ExampleBot), until 2000-01-02T00:00:00Z: e-mail of J. Doe, ticket #4711", 2},
		{"https://a.example/private/archive/1", "examplebot", robots, nil, "allowed by line 12 of an agreement", 2},
		{"https://a.example/private/archive/drafts/1", "ExampleBot", robots, nil, "disallowed by line 13 of an agreement", 2}, // the first entry
		{"https://a.example/promised", "ExampleBot", robots, nil, "disallowed by line 14 of an agreement", 2},
		{"https://a.example/private/late", "ExampleBot", preferring, nil, "allowed by line 24 of an agreement", 4},
		{"https://a.example/private/caf%C3%A9", "ExampleBot", preferring, nil, "allowed by line 25 of an agreement", 4},
		{"https://a.example/private/open", "OtherBot", robots, nil, "allowed by line 17 of an agreement", 2},
		{"https://a.example/private/open", "ExampleBot", preferring, nil, "disallowed by line 2 of robots.txt", 0}, // * is for others
		{"https://a.example/private/archive/1", "OtherBot", robots, nil, "disallowed by line 2 of robots.txt", 0},
		{"https://a.example/private", "ExampleBot", preferring, nil, "disallowed by line 2 of robots.txt", 0},
		{"https://a.example/", "ExampleBot", robots, nil, "allowed: no rule matches", 0},
		{"https://a.example/robots.txt", "ExampleBot", robots, nil, "allowed: no rule matches", 0},
		// Another origin is another site.
		{"http://a.example/private/archive/1", "ExampleBot", preferring, nil, "disallowed by line 2 of robots.txt", 0},
		{"https://a.example:8443/private/archive/1", "ExampleBot", preferring, nil, "disallowed by line 2 of robots.txt", 0},
		{"https://www.a.example/private/archive/1", "ExampleBot", preferring, nil, "disallowed by line 2 of robots.txt", 0},
		// All that a server may make of dot segments has to be allowed.
		{"https://a.example/private/archive/../1", "ExampleBot", preferring, nil, "disallowed by line 2 of robots.txt", 0},
		{"https://a.example/private/archive/../../promised", "ExampleBot", robots, nil, "disallowed by line 14 of an agreement", 2},
		{"https://a.example/private/archive/../../news", "ExampleBot", robots, nil, "allowed by line 12 of an agreement", 2},
		{"https://a.example/private/late/../archive/1", "ExampleBot", robots, nil, "allowed by line 12 of an agreement", 2}, // which ends first
		{"https://a.example/private/archive/../no", "ExampleBot", robots, nil, "disallowed by line 26 of an agreement", 4},
		// It says nothing about use.
		{"https://a.example/private/archive/1", "ExampleBot", preferring, []string{"search"}, `disallows the use "search"`, 0},
		{"https://a.example/private/archive/1", "ExampleBot", preferring, []string{"train-ai"}, "allowed by line 12 of an agreement", 2},
		// An outage voids nothing and opens nothing.
		{"https://a.example/private/archive/1", "ExampleBot", "", nil, "allowed by line 12 of an agreement", 2},
		{"https://a.example/promised", "ExampleBot", "", nil, "disallowed by line 14 of an agreement", 2},
		{"https://a.example/private/1", "ExampleBot", "", nil, "disallowed: robots.txt is unreachable", 0},
		{"https://a.example/private/archive/1", "ExampleBot", "", []string{"search"}, "disallowed: robots.txt is unreachable", 0},
		{"http://a.example/private/archive/1", "ExampleBot", "", nil, "disallowed: robots.txt is unreachable", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var traced client.DecidedInfo
			sent := 0
			gate := &client.Transport{
				Token: row.token, Uses: row.uses, Agreements: parsed(t, agreed),
				Trace: &client.Trace{Decided: func(_ context.Context, d client.DecidedInfo) { traced = d }},
				Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
					switch {
					case req.URL.Path != "/robots.txt":
						sent++
						return ok(req)
					case row.robots == "":
						return answer(404+99, "", ""), nil
					}
					return answer(200, "", row.robots), nil
				}),
			}
			defer gate.Shutdown(t.Context())
			time.Sleep(12 * time.Hour) // so that the file holds longer than the first agreement
			u := parse(row.url)
			a, err := gate.Decide(t.Context(), u)
			said := a.LogValue().String()
			if err != nil || !strings.Contains(said, row.want) {
				t.Fatalf("%s for %s: %s, %v; want %s", row.url, row.token, said, err, row.want)
			}
			if by := a.Agreement; (by != nil) != (row.until > 0) || (by != nil) != (a.Reason == policy.ReasonAgreement) ||
				by != nil && (by.Until.Day() != row.until || a.Until.After(by.Until) || row.robots != "" && a.Until.Day() != 2) {
				t.Errorf("%s: %+v, until %v, want day %d", row.url, by, a.Until, row.until)
			}
			_, err = gate.RoundTrip(&http.Request{URL: u})
			if robots := u.Path == "/robots.txt"; (err == nil) != a.Allowed || !robots && (sent == 1) != a.Allowed || traced.Answer.LogValue().String() != said {
				t.Errorf("%s: %d sent, %v, and Trace has %v", row.url, sent, err, traced.Answer.LogValue())
			}
			if _, is := errors.AsType[*client.DisallowedError](err); err != nil && is && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: %v", row.url, err)
			}
			if row.robots != "" {
				with, err := gate.Agreements.Decide(policy.Parse([]byte(row.robots)), row.token, u, row.uses...)
				if err != nil || with.Decision != a.Decision || with.Agreement != a.Agreement {
					t.Errorf("%s: without a Transport %+v, %v", row.url, with, err)
				}
			}
		})
	}
}

// A redirect to another site is decided on there.
func TestAnAgreementOpensNoOtherSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				return answer(200, "", robots), nil
			}
			res := answer(302, "", "")
			res.Header = http.Header{"Location": {"https://b.example" + req.URL.Path}}
			return res, nil
		})
		c := &http.Client{Transport: &client.Transport{Base: base, Token: "OtherBot", Agreements: parsed(t, agreed)}}
		_, err := c.Get("https://a.example/private/open")
		if u, is := errors.AsType[*url.Error](err); !is || !strings.Contains(u.URL, "b.example") || !errors.Is(err, client.ErrNotSent) {
			t.Errorf("%v, want what b.example forbids", err)
		}
	})
}

// Nothing is sent past the date: not what waited for its turn or for Sign, and not if robots.txt is not known any
// more when its turn comes.
func TestNoAgreementOutlivesItsDate(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		at, sign time.Duration
		decided  time.Duration // what Trace.Decided takes
		pace     time.Duration
		store    time.Duration // that its turn takes to come from there
		closed   bool          // before the turn comes
		sent     bool
	}{
		"a second before":         {at: day - time.Second - 1, sent: true},
		"less than that":          {at: day - time.Second},
		"at its end":              {at: day},
		"its turn comes in time":  {at: day - 40*time.Second, pace: 10 * time.Second, sent: true},
		"its turn comes too late": {at: day - 5*time.Second, pace: 10 * time.Second},
		"and robots.txt is gone":  {at: day - 5*time.Second, pace: 10 * time.Second, closed: true},
		"it is, but in time":      {at: day - 40*time.Second, pace: 10 * time.Second, closed: true, sent: true},
		"from a slow store":       {at: day - 3200*time.Millisecond, store: 2400 * time.Millisecond},
		"from one, but in time":   {at: day - 20*time.Second, store: 2400 * time.Millisecond, sent: true},
		"a slow Decided":          {at: day - 5*time.Second, decided: 10 * time.Second},
		"a slow Decided in time":  {at: day - 20*time.Second, decided: 10 * time.Second, sent: true},
		"and a bit of Sign":       {at: day - 1500*time.Millisecond, decided: 900 * time.Millisecond, sign: 900 * time.Millisecond},
		"that, and a turn":        {at: day - 5*time.Second, decided: 10 * time.Second, pace: time.Second},
		"a slow Sign":             {at: day - 5*time.Second, sign: 10 * time.Second},
		"and robots.txt too":      {at: day - 5*time.Second, sign: 10 * time.Second, closed: true},
		"a turn, and a slow Sign": {at: day - 15*time.Second, pace: 10 * time.Second, sign: 10 * time.Second, closed: true},
		"a slow Sign in time":     {at: day - 20*time.Second, sign: 10 * time.Second, sent: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last time.Time
				gate := &client.Transport{Token: "ExampleBot", Agreements: parsed(t, agreed), Cache: &cache.Cache{MinTTL: -1, MaxTTL: 2 * time.Second}}
				gate.Base = roundtrip.Func(func(req *http.Request) (*http.Response, error) {
					if req.URL.Path == "/robots.txt" {
						return answer(200, "", "User-agent: *\nDisallow: /private\n"), nil
					}
					last = time.Now()
					return ok(req)
				})
				if c.pace > 0 {
					gate.Pacer = &client.Pacer{Delay: c.pace}
				}
				if c.store > 0 {
					gate.Pacer = &client.Pacer{Turns: slowPages{new(memturns.Store), c.store}}
				}
				if c.decided > 0 {
					gate.Trace = &client.Trace{Decided: func(context.Context, client.DecidedInfo) { time.Sleep(c.decided) }}
				}
				if c.sign > 0 {
					gate.Sign = func(req *http.Request) error {
						if req.URL.Path != "/robots.txt" {
							time.Sleep(c.sign)
						}
						return nil
					}
				}
				time.Sleep(c.at)
				if c.closed {
					time.AfterFunc(time.Second, func() { gate.Cache.Close() })
				}
				_, err := gate.RoundTrip(&http.Request{URL: parse("https://a.example/private/archive/1")})
				end := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)
				if c.sent != (err == nil) || c.sent == last.IsZero() || !last.Before(end) {
					t.Errorf("got %v, sent at %v, want it sent: %v, and before %v", err, last, c.sent, end)
				}
				if refusal, is := errors.AsType[*client.DisallowedError](err); err != nil && !errors.Is(err, client.ErrNotSent) || is && refusal.Reason == 0 {
					t.Errorf("%+v", err)
				}
			})
		})
	}
}

// slowPages is a store that takes its time to say that the turn of a page has come.
type slowPages struct {
	turns.Store
	takes time.Duration
}

func (s slowPages) Take(ctx context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	got, err := s.Store.Take(ctx, origin, a)
	if got.Taken && a.Kind == turns.Page {
		time.Sleep(s.takes)
	}
	return got, err
}

// Nothing of what an agreement forbids is sent late, so it forbids to its end.
func TestAnAgreementForbidsToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Token: "ExampleBot", Agreements: parsed(t, agreed), Base: roundtrip.Func(func(*http.Request) (*http.Response, error) {
			return answer(200, "", robots), nil
		})}
		defer gate.Shutdown(t.Context())
		time.Sleep(24*time.Hour - time.Nanosecond)
		for _, allowed := range []bool{false, true} {
			if a, err := gate.Decide(t.Context(), parse("https://a.example/promised")); err != nil || a.Allowed != allowed {
				t.Errorf("at %v: %v, %v; want %v", time.Now(), a, err, allowed)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

func TestAgreementsAreLoggedOnce(t *testing.T) {
	var log strings.Builder
	synctest.Test(t, func(t *testing.T) {
		all, u := parsed(t, agreed), parse("https://a.example/private/archive/1")
		logTo(t, func(r slog.Record) {
			slog.NewTextHandler(&log, nil).Handle(t.Context(), r)
			all.Decide(new(policy.Policy), "ExampleBot", u) // a handler may ask
		})
		for range 3 {
			all.Decide(new(policy.Policy), "ExampleBot", u)
		}
		time.Sleep(48 * time.Hour)
		for range 3 {
			all.Decide(new(policy.Policy), "ExampleBot", u)
		}
	})
	for text, want := range map[string]int{
		`level=INFO msg="client: an agreement decides" site=https://a.example reason="e-mail of J. Doe, ticket #4711"`: 1,
		`level=WARN msg="client: an agreement has ended" site=https://a.example reason="e-mail of J. Doe`:              1,
		`level=WARN msg="client: an agreement has ended" site=https://a.example reason="has ended"`:                    1,
		"level=": 3,
	} {
		if n := strings.Count(log.String(), text); n != want {
			t.Errorf("%d times %s in\n%s", n, text, log.String())
		}
	}
}

// What is not understood is an error that names the line: it must be no permission, nor lose a promise.
func TestAgreementsThatAreNotUnderstood(t *testing.T) {
	const head = "Site: https://a.example\nUntil: 2000-01-01\nReason: x\n"
	for text, want := range map[string]string{
		"Allow: /\n":                                                            "line 1: begin with the site",
		"Site: a.example\n":                                                     `line 1: "a.example" is no site: write its scheme and host alone`,
		"Site: https://a.example/archive\n":                                     "line 1: \"https://a.example/archive\" is no site",
		"Site: https://a.example?x\n":                                           "is no site",
		"Site: https://u:p@a.example\n":                                         "is no site",
		"Site: ftp://a.example\n":                                               "is no site",
		"Site: https://*.a.example\n":                                           "is no site",
		"Site: https://*\n":                                                     "is no site",
		"Site: https://a.example:x\n":                                           "line 1: ",
		"Site:\n":                                                               "line 1: write it as FIELD: VALUE",
		"\n\nSite https //a.example\n":                                          "line 3: write it as FIELD: VALUE",
		"Site: https://a.example\nUntil: tomorrow":                              `line 2: "tomorrow" is no date`,
		"Site: https://a.example\nUntil: 2000-02-30":                            `line 2: "2000-02-30" is no date`,
		head + "Until: 2001-01-01\n":                                            "line 4: the entry has its until",
		head + "Reason: y\n":                                                    "line 4: the entry has its reason",
		head + "Allow: /\n":                                                     "line 4: say above for whom it is",
		head + "User-agent: Example Bot\nAllow: /\n":                            `line 4: "Example Bot" is no product token`,
		head + "User-agent: B/1.0\nAllow: /\n":                                  `line 4: "B/1.0" is no product token`,
		head + "User-agent: B*\nAllow: /\n":                                     `line 4: "B*" is no product token`,
		head + "User-agent: B # all\nAllow: /\n":                                `line 4: "B # all" is no product token`,
		head + "User-agent: *\nAllow:\n":                                        "line 5: write it as",
		head + "User-agent: *\nAllow: archive\n":                                `line 5: "archive" is no path`,
		head + "User-agent: *\nAllow: #/\n":                                     `line 5: "#/" is no path`,
		head + "User-agent: *\nDisalow: /\n":                                    `line 5: "disalow" is no field`,
		head + "User-agent: *\nCrawl-delay: 0\n":                                `line 5: "crawl-delay" is no field`,
		head + "User-agent: *\nAllow: /a\rAllow: /":                             "line 5: it holds a control character",
		head + "User-agent: *\nAllow: /\xff\n":                                  "line 5: it holds a control character, is not UTF-8",
		head + "User-agent: *\nAllow: /" + strings.Repeat("a", 3000):            "line 5: it holds",
		head + "User-agent: *\nAllow: /\nUser-agent: B\n":                       "line 6: the entry for https://a.example above ends without a rule",
		head + "\nSite: https://b.example\n":                                    "line 5: the entry for https://a.example above ends without a rule",
		head + "User-agent: *\nAllow: /\n" + head + "Allow: /\n":                "line 9: say above for whom it is",
		"Site: https://a.example":                                               "line 1: the entry for https://a.example above has no end",
		head + "User-agent: *":                                                  "line 4: the entry for https://a.example above ends without a rule",
		"Site: https://a.example\nReason: x\nUser-agent: *\nAllow: /\n":         "line 4: the entry for https://a.example above has no end",
		"Site: https://a.example\nUntil: 2000-01-01\nUser-agent: *\nAllow: /\n": "line 4: the entry for https://a.example above has no reason",
		head + "User-agent: *\n" + strings.Repeat("Allow: /"+strings.Repeat("a", 2000)+"\n", 40): "longer than 64 KiB",
	} {
		all, err := client.ParseAgreements([]byte(text))
		if all != nil || err == nil || !strings.HasPrefix(err.Error(), "client: agreements, line ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\r\n", "\uFEFF" + head + "User-agent: Bot-2\nUSER-AGENT: *\nDisallow: *.pdf$\n", head + "User-agent:\tB\t\nAllow\t:\t/ \t# all\n"} {
		if _, err := client.ParseAgreements([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The last of all days is as good as any other: JSON has no year 10000.
func TestAnAgreementForEver(t *testing.T) {
	all := parsed(t, "Site: https://a.example\nUntil: 9999-12-31\nReason: x\nUser-agent: *\nAllow: /\n")
	a, err := all.Decide(policy.Parse([]byte(robots)), "B", parse("https://a.example/private"))
	if err != nil || !a.Allowed {
		t.Fatalf("%v, %v", a, err)
	}
	if text, err := json.Marshal(a.Agreement); string(text) != `{"reason":"x","until":"9999-12-31T23:59:59Z"}` {
		t.Errorf("%s, %v", text, err)
	}
}
