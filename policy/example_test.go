package policy_test

import (
	"fmt"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

const robotsTxt = `User-agent: *
Disallow: /search
Allow: /search/about
Crawl-delay: 2

User-agent: BadBot
Disallow: /

Sitemap: https://www.example.com/sitemap.xml
`

func ExampleParse() {
	p := policy.Parse([]byte(robotsTxt))
	fmt.Println(p.Decide("ExampleBot", "/search?q=go").Allowed)
	fmt.Println(p.Decide("ExampleBot", "/search/about").Allowed)
	fmt.Println(p.Decide("BadBot", "/").Allowed)
	// Output:
	// false
	// true
	// false
}

// A crawler asks its group, which it finds once per file.
func ExamplePolicy_Group() {
	token := policy.ProductToken("ExampleBot/1.0 (+https://www.example.com/bot)")
	g := policy.Parse([]byte(robotsTxt)).Group(token)
	delay, _ := g.CrawlDelay()
	fmt.Println(token, "obeys group", g.Token(), "and waits", delay)
	fmt.Println(g.Decide("/about").Allowed)
	// Output:
	// ExampleBot obeys group * and waits 2s
	// true
}

// A decision says what it rests on.
func ExampleDecision() {
	p := policy.Parse([]byte(robotsTxt))
	for _, d := range []policy.Decision{
		p.Decide("ExampleBot", "/search/about"),
		p.Decide("badbot", "/"),
		p.Decide("ExampleBot", "/"),
		policy.Unreachable().Decide("ExampleBot", "/"),
	} {
		fmt.Println(d)
	}
	d := p.Decide("badbot", "/")
	fmt.Println(d.Reason == policy.ReasonRule, d.Rule.Line, d.Rule.Pattern, d.GroupToken)
	// Output:
	// allowed by line 3: Allow: /search/about (user-agent: *)
	// disallowed by line 7: Disallow: / (user-agent: BadBot)
	// allowed: no rule matches (user-agent: *)
	// disallowed: robots.txt is unreachable
	// true 7 / BadBot
}

// The target is what the request line carries. A decoded path is something
// else: the first answer below permits a request that the site forbids.
func ExampleGroup_Decide_wrong() {
	g := policy.Parse([]byte("User-agent: *\nDisallow: /*?sort=\nDisallow: /a%2Fb\n")).Group("ExampleBot")
	u, _ := url.Parse("https://www.example.com/list?sort=price")
	fmt.Println("wrong:", g.Decide(u.Path).Allowed)
	fmt.Println("right:", g.Decide(u.RequestURI()).Allowed)
	u, _ = url.Parse("https://www.example.com/a%2Fb")
	fmt.Println("wrong:", g.Decide(u.Path).Allowed)
	fmt.Println("right:", g.Decide(u.RequestURI()).Allowed)
	// Output:
	// wrong: true
	// right: false
	// wrong: true
	// right: false
}

// The same file, read by others.
func ExampleDialect() {
	file := []byte("User-agent: *\nDisalow: /private\n\nDisallow: /tmp\n")
	for _, d := range []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex} {
		p := d.Parse(file)
		fmt.Printf("%-8v /private %-5v /tmp %v\n", d, p.Decide("a", "/private").Allowed, p.Decide("a", "/tmp").Allowed)
	}
	// Output:
	// RFC9309  /private true  /tmp false
	// Google   /private false /tmp false
	// Yandex   /private true  /tmp false
}

func ExamplePolicy_Sitemaps() {
	for s := range policy.Parse([]byte(robotsTxt)).Sitemaps() {
		fmt.Println(s)
	}
	// Output: https://www.example.com/sitemap.xml
}

// What a policy does not interpret is there all the same.
func ExampleGroup_Records() {
	file := "User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"
	for r := range policy.Parse([]byte(file)).Group("ExampleBot").Records("content-signal") {
		fmt.Println(r.Line, r.Value)
	}
	// Output: 2 search=yes, ai-train=no
}

// A Reason distinguishes a refusal from a site that gave no answer.
func ExampleReason() {
	for _, p := range []*policy.Policy{policy.Parse([]byte(robotsTxt)), policy.Unavailable(), policy.Unreachable()} {
		d := p.Decide("ExampleBot", "/search")
		text, _ := d.Reason.MarshalText()
		fmt.Println(d.Allowed, string(text))
	}
	// Output:
	// false rule
	// true unavailable
	// false unreachable
}

// A crawler with two names obeys the groups of both.
func ExamplePolicy_Combined() {
	p := policy.Parse([]byte("User-agent: a\nDisallow: /x\n\nUser-agent: b\nDisallow: /y\n"))
	for r := range p.Combined("a", "b").Rules() {
		fmt.Println(r)
	}
	// Output:
	// Disallow: /x
	// Disallow: /y
}

// A product token is what a User-Agent calls its crawler.
func ExampleProductToken() {
	fmt.Println(policy.ProductToken("ExampleBot/1.0 (+https://example.com/bot)"))
	fmt.Println(policy.ProductToken("Mozilla/5.0 (compatible; ExampleBot/0.1; +https://example.com/bot)"))
	// Output:
	// ExampleBot
	// ExampleBot
}

// The rules of a group, with their lines in the file.
func ExampleRule() {
	for r := range policy.Parse([]byte(robotsTxt)).Group("ExampleBot").Rules() {
		fmt.Printf("line %d: %v\n", r.Line, r)
	}
	// Output:
	// line 2: Disallow: /search
	// line 3: Allow: /search/about
}

// All that a file holds beside groups and rules.
func ExampleRecord() {
	for r := range policy.Parse([]byte(robotsTxt)).Records("") {
		fmt.Println(r.Line, r.Field, r.Value)
	}
	// Output:
	// 4 Crawl-delay 2
	// 9 Sitemap https://www.example.com/sitemap.xml
}

// What Crawl-delay and Request-rate ask for depends on the time of the day.
func ExampleRate() {
	r := policy.Parse([]byte("User-agent: *\nCrawl-delay: 2\nRequest-rate: 1/10s 0600-1800\n")).Group("ExampleBot").Rate()
	for _, hour := range []int{3, 12} {
		delay, until, _ := r.At(time.Date(2026, 11, 29, hour, 0, 0, 0, time.UTC))
		fmt.Println(delay, until.Format(time.TimeOnly))
	}
	// Output:
	// 2s 06:00:00
	// 10s 18:00:00
}
