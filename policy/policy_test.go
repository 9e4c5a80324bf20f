package policy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

func TestZeroValueAllows(t *testing.T) {
	var p policy.Policy
	var g policy.Group
	for name, d := range map[string]policy.Decision{
		"Policy": p.Decide("a", "/x"), "Policy.Group": p.Group("a", "b").Decide("/x"), "Group": g.Decide("/x"),
	} {
		if want := (policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}); d != want {
			t.Errorf("zero %s: got %+v, want %+v", name, d, want)
		}
	}
	if d := (policy.Decision{}); d.Allowed || d.Reason != 0 {
		t.Error("the zero Decision allows")
	}
	if s := p.String() + (policy.Rule{}).String(); s != "" {
		t.Errorf("zero Policy and Rule print %q, want nothing", s)
	}
	if g.Token() != "" || len(slices.Collect(g.Rules())) != 0 || len(slices.Collect(g.Records(""))) != 0 || len(slices.Collect(p.Sitemaps())) != 0 {
		t.Error("zero values hold something")
	}
	if _, ok := g.CrawlDelay(); ok {
		t.Error("the zero Group has a Crawl-delay")
	}
}

// A nil policy is a file that was not read: it must not turn into permission.
func TestNilPolicyDecidesAsUnreachable(t *testing.T) {
	var p *policy.Policy
	want := policy.Decision{Reason: policy.ReasonUnreachable}
	for name, d := range map[string]policy.Decision{
		"Decide": p.Decide("a", "/x"), "Group": p.Group("a").Decide("/x"), "Combined": p.Combined("a", "b").Decide("/x"),
	} {
		if d != want {
			t.Errorf("%s: got %+v, want %+v", name, d, want)
		}
	}
	if p.String() != policy.Unreachable().String() || len(slices.Collect(p.Records(""))) != 0 || len(slices.Collect(p.Sitemaps())) != 0 {
		t.Error("nil policy holds something")
	}
}

func TestPoliciesWithoutAFile(t *testing.T) {
	for _, c := range []struct {
		p         *policy.Policy
		allowed   bool
		reason    policy.Reason
		robotsTxt policy.Reason
	}{
		{policy.Unavailable(), true, policy.ReasonUnavailable, policy.ReasonUnavailable},
		{policy.Unreachable(), false, policy.ReasonUnreachable, policy.ReasonNoRule},
	} {
		for _, g := range []policy.Group{c.p.Group("a"), c.p.Group("*", "b"), c.p.Combined("a", "b")} {
			if d, want := g.Decide("/x"), (policy.Decision{Allowed: c.allowed, Reason: c.reason}); d != want {
				t.Errorf("got %+v, want %+v", d, want)
			}
			if d, want := g.Decide("/robots.txt"), (policy.Decision{Allowed: true, Reason: c.robotsTxt}); d != want {
				t.Errorf("/robots.txt: got %+v, want %+v (§2.2.2: implicitly allowed)", d, want)
			}
			if g.Token() != "" {
				t.Errorf("got token %q of a site without groups, want none", g.Token())
			}
		}
		if got := policy.Parse([]byte(c.p.String())).Decide("a", "/x").Allowed; got != c.allowed {
			t.Errorf("%q allows %v, want %v", c.p.String(), got, c.allowed)
		}
	}
}

func TestGroupTakesTheFirstTokenThatHasOne(t *testing.T) {
	p := policy.Parse([]byte("user-agent: *\ndisallow: /star\n\nuser-agent: GoogleBot/2.1\ndisallow: /g\n\nuser-agent: News\ndisallow: /n\n"))
	for _, c := range []struct{ tokens, want string }{
		{"news", "News"},
		{"news googlebot", "News"},
		{"googlebot news", "GoogleBot"},
		{"images googlebot news", "GoogleBot"},
		{"images video", "*"},
		{"GOOGLEBOT/2.1", "GoogleBot/2.1"},
		{"*", "*"},
	} {
		tokens := strings.Fields(c.tokens)
		if got := p.Group(tokens[0], tokens[1:]...).Token(); got != c.want {
			t.Errorf("%s: got group %q, want %q", c.tokens, got, c.want)
		}
	}
	if got := p.Group("").Token(); got != "*" {
		t.Errorf("no token: got group %q, want *", got)
	}
	if got := policy.Parse([]byte("user-agent: a\ndisallow: /\n")).Group("b").Token(); got != "" {
		t.Errorf("no group: got %q, want none", got)
	}
}

func TestCombinedIsTheUnionOfNamedGroups(t *testing.T) {
	p := policy.Parse([]byte("user-agent: *\ndisallow: /star\n\nuser-agent: a\nuser-agent: b\ndisallow: /x\n\nuser-agent: b\nallow: /x/y\ncrawl-delay: 2\n"))
	for _, c := range []struct{ tokens, rules string }{
		{"a", "6 Disallow: /x"},
		{"a b", "6 Disallow: /x, 9 Allow: /x/y"},
		{"b c", "6 Disallow: /x, 9 Allow: /x/y"},
		{"c a", "6 Disallow: /x"},
		{"c d", "2 Disallow: /star"},
		{"", "2 Disallow: /star"},
	} {
		if got := rulesOf(p.Combined(strings.Fields(c.tokens)...)); got != c.rules {
			t.Errorf("%q: got %s, want %s", c.tokens, got, c.rules)
		}
	}
	if d, ok := p.Combined("a", "b").CrawlDelay(); !ok || d != 2e9 {
		t.Errorf("got delay %v, want 2s", d)
	}
}

func rulesOf(g policy.Group) string {
	var s []string
	for r := range g.Rules() {
		s = append(s, fmt.Sprint(r.Line, " ", r))
	}
	return strings.Join(s, ", ")
}

func TestRulesAreInFileOrderAndNamedOnce(t *testing.T) {
	small := "user-agent: a\nallow: /b\ndisallow: /cc # why\ndisallow:\nallow: /index.html\ndisallow: /cc\nallow: /cc\n"
	want := "2 Allow: /b, 3 Disallow: /cc, 4 Disallow:, 5 Allow: /index.html, 7 Allow: /cc"
	large := small
	for i := range 100 {
		large += fmt.Sprintf("disallow: /%d*\ndisallow: /%d\n", 100-i, i)
	}
	for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
		if got := rulesOf(d.Parse([]byte(small)).Group("a")); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
		g := d.Parse([]byte(large)).Group("a")
		if got := rulesOf(g); !strings.HasPrefix(got, want+", 8 Disallow: /100*, 9 Disallow: /0, 10 Disallow: /99*") || strings.Count(got, ",") != 204 {
			t.Errorf("%v: got %s, want 205 rules that begin with %s", d, got, want)
		}
		if got := rulesOf(d.Parse([]byte(large)).Combined("a")); got != rulesOf(g) {
			t.Errorf("%v: copy has %s, want %s", d, got, rulesOf(g))
		}
	}
	for range policy.Parse([]byte(small)).Group("a").Rules() {
		break
	}
}

// Both forms a group is compiled to must name the same line.
func TestDecidingLineOfEqualRules(t *testing.T) {
	var many strings.Builder
	for i := range 50 {
		fmt.Fprintf(&many, "disallow: /filler%d\n", i)
	}
	for _, c := range []struct {
		rules, target string
		line          int
	}{
		{"disallow: /a\ndisallow: /a\n", "/a", 2},
		{"disallow: /*b\ndisallow: /ab\n", "/ab", 2},
		{"disallow: /ab\ndisallow: /*b\n", "/ab", 2},
		{"disallow: /a*c\ndisallow: /*bc\n", "/abc", 2},
		{"disallow: /*bc\ndisallow: /a*c\n", "/abc", 2},
		{"disallow: /ab\nallow: /*b\n", "/ab", 3},
		{"disallow: /*b\nallow: /ab\n", "/ab", 3},
		{"allow: /ab\ndisallow: /ab$\n", "/ab", 3},
		{"disallow: /%61b\nallow: /ab\n", "/ab", 3},
		{"allow:\ndisallow:\n", "/ab", 2},
		{"disallow:\nallow:\n", "/ab", 3},
	} {
		for _, rest := range []string{"", "disallow: /other\n", many.String()} {
			d := policy.Parse([]byte("user-agent: *\n"+c.rules+rest)).Decide("a", c.target)
			if d.Rule.Line != c.line {
				t.Errorf("%q asked for %s: got line %d, want %d", c.rules, c.target, d.Rule.Line, c.line)
			}
		}
	}
}

// Callers who hand over something else than origin form are not let in for it.
func TestTargetsThatAreNotInOriginForm(t *testing.T) {
	for _, d := range dialects {
		p := d.Parse([]byte("user-agent: *\ndisallow: /private\ndisallow: /?q\n"))
		root := d.Parse([]byte("user-agent: *\ndisallow: /\n"))
		for target, allowed := range map[string]bool{
			"private":                          false,
			"/private":                         false,
			"https://example.com/private?x":    false,
			"https://example.com?q":            false,
			"?q":                               false,
			"https://example.com/":             true,
			"https://example.com":              true,
			"":                                 true,
			"x?u=https://example.com/private":  true,
			"/x?u=https://example.com/private": true,
			"*":                                true,
		} {
			if got := p.Decide("a", target).Allowed; got != allowed {
				t.Errorf("%v: %q: got allowed %v, want %v", d, target, got, allowed)
			}
			if root.Decide("a", target).Allowed {
				t.Errorf("%v: %q is allowed although nothing is", d, target)
			}
		}
	}
}

func TestCanonicalText(t *testing.T) {
	const file = "Sitemap: https://example.com/s.xml # first\r\n\r\nuser-agent : B/1.0\nUSER-AGENT: a\n\nCrawl-delay: 5\nfoo\nallow:/%7e\ndisallow: /\u30c4\n\nuser-agent: *\nuser-agent: c\n\n\nuser-agent: a\ndisallow: /x*$\ndisallow: /index.html\n"
	for d, want := range map[policy.Dialect]string{
		policy.RFC9309: "Sitemap: https://example.com/s.xml\n\nUser-agent: B\nUser-agent: B/1.0\nUser-agent: a\nCrawl-delay: 5\nAllow: /~\nDisallow: /%E3%83%84\n\nUser-agent: *\nUser-agent: c\nUser-agent: a\nDisallow: /x*$\nDisallow: /index.html\n",
		policy.Google:  "Sitemap: https://example.com/s.xml\n\nUser-agent: B\nUser-agent: a\nCrawl-delay: 5\nAllow: /%7E\nDisallow: /%E3%83%84\n\nUser-agent: *\nUser-agent: c\nUser-agent: a\nDisallow: /x*$\nDisallow: /index.html\n",
	} {
		if got := d.Parse([]byte(file)).String(); got != want {
			t.Errorf("%v:\ngot\n%s\nwant\n%s", d, got, want)
		}
	}
	if got, want := policy.Parse([]byte("User-agent: *\n")).String(), "User-agent: *\nDisallow:\n"; got != want {
		t.Errorf("a group without rules: got %q, want %q", got, want)
	}
	const empty = "User-agent: a\nAllow:\n\nUser-agent: b\nDisallow: /\n"
	if got, want := policy.Yandex.Parse([]byte(empty)).String(), "User-agent: a\nAllow:\n\nUser-agent: b\nDisallow: /\n"; got != want {
		t.Errorf("a group without rules must not grow into the next: got %q, want %q", got, want)
	}
}

func TestDecisionExplainsItself(t *testing.T) {
	p := policy.Parse([]byte("user-agent: *\nallow: /a\ndisallow: /b\n\nuser-agent: Free/1.0\ndisallow:\n"))
	for _, c := range []struct {
		d    policy.Decision
		want string
	}{
		{p.Decide("x", "/a/b"), "allowed by line 2: Allow: /a (user-agent: *)"},
		{p.Decide("x", "/b"), "disallowed by line 3: Disallow: /b (user-agent: *)"},
		{p.Decide("x", "/c"), "allowed: no rule matches (user-agent: *)"},
		{p.Decide("x", "/robots.txt"), "allowed: no rule matches"},
		{p.Decide("FREE", "/c"), "allowed by line 6: Disallow: (user-agent: Free)"},
		{policy.Google.Parse([]byte("user-agent: *\ndisallow: /\x1b[2J\x7f\n")).Decide("x", "/\x1b[2J\x7f"), "disallowed by line 2: Disallow: /%1B[2J%7F (user-agent: *)"},
		{policy.Parse([]byte("user-agent: *\ndisallow: /"+strings.Repeat("a", 300))).Decide("x", "/"+strings.Repeat("a", 300)),
			"disallowed by line 2: Disallow: /" + strings.Repeat("a", 255) + "… (user-agent: *)"},
		{policy.Decision{GroupToken: "a\u202eb\u009bc\xffd é"}, "disallowed (user-agent: a%E2%80%AEb%C2%9Bc%FFd é)"},
		{policy.Unavailable().Decide("x", "/"), "allowed: robots.txt is unavailable"},
		{policy.Unreachable().Decide("x", "/"), "disallowed: robots.txt is unreachable"},
		{policy.Decision{}, "disallowed"},
	} {
		if got := c.d.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := policy.Reason(9).String(); got != "Reason(9)" {
		t.Errorf("got %q, want \"Reason(9)\"", got)
	}
}

func TestDialectText(t *testing.T) {
	for _, d := range dialects {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back policy.Dialect
		if err := json.Unmarshal(text, &back); err != nil || back != d || string(text) != `"`+d.String()+`"` {
			t.Errorf("%v: got %v from %s (%v), want it again", d, back, text, err)
		}
		if err := back.UnmarshalText([]byte(strings.ToLower(d.String()))); err != nil || back != d {
			t.Errorf("%v: got %v from lower case (%v), want it again", d, back, err)
		}
	}
	back := policy.Google
	err := back.UnmarshalText([]byte("Baidu"))
	if want := `policy: unknown dialect "Baidu"; use one of RFC9309, Google, Yandex, Bing, Original`; err == nil || err.Error() != want || back != policy.Google {
		t.Errorf("got %v (%v), want %s", err, back, want)
	}
	if _, err := policy.Dialect(77).MarshalText(); err == nil || !strings.Contains(err.Error(), "Dialect(77)") {
		t.Errorf("got %v, want an error that names the value", err)
	}
	if !policy.Dialect(77).Parse([]byte("user-agent: *\ndisallow: /x*y\n")).Decide("a", "/x").Allowed {
		t.Error("an unknown dialect does not read as RFC9309")
	}
}

var productTokens = map[string]string{
	"ExampleBot":                              "ExampleBot",
	"ExampleBot/1.0":                          "ExampleBot",
	"ExampleBot/1.0 (+https://example.com)":   "ExampleBot",
	"  ExampleBot 1.0":                        "ExampleBot",
	"MJ12bot/v1.4.8":                          "MJ12bot",
	"Example_Bot-News/2":                      "Example_Bot-News",
	"Mozilla/5.0":                             "Mozilla",
	"Mozilla/5.0 (X11; Linux x86_64) Gecko/1": "Mozilla",
	"Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)":              "ExampleBot",
	"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.0; +https://x/)": "GPTBot",
	"mozilla/4.0 (compatible;bingbot/2.0)":                                                    "bingbot",
	"Mozilla/5.0 (Compatible; ExampleBot/1.0)":                                                "ExampleBot",
	"Mozilla/5.0 (compatible; ; compatible; b)":                                               "b",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)": "Applebot",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/600.2.5 (KHTML, like Gecko) Safari/600.2.5 (Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot)": "Amazonbot",
	"Mozilla/5.0 (X11; Linux x86_64; +https://example.com)": "Mozilla",
	"Mozilla/5.0 (Chrome/1.0) x; +http://x":                 "Mozilla",
	"Mozilla/5.0 (Chrome/1.0)":                              "Mozilla",
	"Mozilla/5.0 (compatible; )":                            "Mozilla",
	"":                                                      "",
	"/1.0":                                                  "",
	"\xff\xfe":                                              "",
	"бот/1.0":                                               "",
}

func TestProductToken(t *testing.T) {
	for userAgent, want := range productTokens {
		if got := policy.ProductToken(userAgent); got != want {
			t.Errorf("%q: got %q, want %q", userAgent, got, want)
		}
		if n := testing.AllocsPerRun(1, func() { policy.ProductToken(userAgent) }); n > 0 { // it is asked for each request
			t.Errorf("%q: %v allocations, want none", userAgent, n)
		}
	}
	// A server that passes on its clients' requests takes the field from strangers.
	for _, part := range []string{"(", "(a", "(a/", "compatible; ", "compatible;", "; +http", ")("} {
		userAgent := "Mozilla/5.0 " + strings.Repeat(part, 1<<19/len(part))
		if took := proc.CPUTime(func() { policy.ProductToken(userAgent) }); took > 400*time.Millisecond {
			t.Errorf("%d bytes of %q: got %v, want 400ms at most", len(userAgent), part, took)
		}
	}
	// google-token.jsonl: what is a valid token is its own product token, but digits are kept.
	for _, f := range vectors.Read[struct {
		ID, Agent string
		Valid     bool
	}](t, "vectors/google-token.jsonl") {
		if got := policy.ProductToken(f.Agent) == f.Agent && f.Agent != ""; got != f.Valid {
			t.Errorf("%s: %q is a token: got %v, want %v", f.ID, f.Agent, got, f.Valid)
		}
	}
}

func TestPolicyIsSafeForConcurrentUse(t *testing.T) {
	p := policy.Parse([]byte(recordsFile))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				g := p.Group("a", "b")
				g.Decide("/x%2f")
				g.CrawlDelay()
				_ = slices.Collect(g.Rules())
				_, _ = p.String(), policy.Google.Parse([]byte(recordsFile))
			}
		})
	}
	wg.Wait()
}

func TestReasonOfAPolicy(t *testing.T) {
	// Too many rules to keep count as a file that could not be had.
	var many strings.Builder
	many.WriteString("user-agent: *\n")
	for range 20_000 {
		many.WriteString("allow:" + strings.Repeat("\xff", 18) + "\n")
	}
	tooLarge := policy.Parse([]byte(many.String()))
	for _, c := range []struct {
		name string
		p    *policy.Policy
		want policy.Reason
	}{
		{"nil", nil, policy.ReasonUnreachable},
		{"zero", &policy.Policy{}, 0},
		{"empty file", policy.Parse(nil), 0},
		{"file", policy.Parse([]byte("user-agent: *\ndisallow: /\n")), 0},
		{"unavailable", policy.Unavailable(), policy.ReasonUnavailable},
		{"unreachable", policy.Unreachable(), policy.ReasonUnreachable},
		{"rules that outgrow the limit", tooLarge, policy.ReasonUnreachable},
	} {
		if got := c.p.Reason(); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestReasonsAsText(t *testing.T) {
	for r, want := range []string{"", "no-rule", "rule", "unavailable", "unreachable", "use"} {
		text, err := policy.Reason(r).MarshalText()
		var back policy.Reason
		if err != nil || string(text) != want || back.UnmarshalText(text) != nil || back != policy.Reason(r) {
			t.Errorf("Reason(%d): %q, %v, and back %v; want %q", r, text, err, back, want)
		}
	}
	if text, err := policy.Reason(6).MarshalText(); err == nil {
		t.Errorf("Reason(6) is %q, want an error", text)
	}
	var r policy.Reason
	if err := r.UnmarshalText([]byte("no rule")); err == nil {
		t.Errorf(`"no rule" is %v, want an error`, r)
	}
}
