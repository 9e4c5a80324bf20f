package answer

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

// One verdict for each engine comes from robots.txt, header and meta elements together.
func TestListings(t *testing.T) {
	const fetched = "Googlebot may fetch and list it|YandexBot may fetch and list it|Bingbot may fetch and list it"
	for _, c := range []struct {
		name, agent, robots, header, page string
		want                              string // the sentences; the one about agent is checked if there are four
	}{
		{"nothing is said", "*", "", "", "", "a crawler may fetch and list it|" + fetched},
		{"meta", "MyBot", "", "", `<meta name="a"><meta name=robots content="noarchive, noindex">`,
			`MyBot may fetch it; it asks not to be listed: meta at byte 15: "noindex"|Googlebot may fetch it; it asks not to be listed: meta at byte 15: "noindex"|` +
				`YandexBot may fetch it; it asks not to be listed: meta at byte 15: "noindex"|Bingbot may fetch it; it asks not to be listed: meta at byte 15: "noindex"`},
		{"the header, for one", "*", "", "googlebot: none", "", `a crawler may fetch and list it|` +
			`Googlebot may fetch it; it asks not to be listed: X-Robots-Tag line 1: "googlebot: none"|` +
			`YandexBot may fetch and list it|Bingbot may fetch and list it`},
		{"Yandex takes the positive word", "*", "", "noindex, all", "", `a crawler may fetch it; it asks not to be listed: X-Robots-Tag line 1: "noindex"|` +
			`Googlebot may fetch it; it asks not to be listed: X-Robots-Tag line 1: "noindex"|` +
			`YandexBot may fetch and list it|Bingbot may fetch it; it asks not to be listed: X-Robots-Tag line 1: "noindex"`},
		{"a date in the past", "*", "", "unavailable_after: 2020-01-01", "", `a crawler may fetch it; it asks not to be listed: X-Robots-Tag line 1: "unavailable_after: 2020-01-01"|` +
			`Googlebot may fetch it; it asks not to be listed: X-Robots-Tag line 1: "unavailable_after: 2020-01-01"|` +
			`YandexBot may fetch and list it|Bingbot may fetch and list it`},
		{"a date to come", "*", "", "unavailable_after: 2999-01-01", "", "a crawler may fetch and list it|" + fetched},
		{"robots.txt shuts out one", "*", "User-agent: msnbot\nDisallow: /p\n", "", "", "a crawler may fetch and list it|Googlebot may fetch and list it|" +
			"YandexBot may fetch and list it|Bingbot may not fetch it (line 2: Disallow: /p); it may list the address alone"},
		{"and hides what it asks", "Googlebot-News", "User-agent: Googlebot\nDisallow: /\n", "noindex", "",
			`Googlebot-News may not fetch it (line 2: Disallow: /), nor see that it asks not to be listed: X-Robots-Tag line 1: "noindex"|` +
				`Googlebot may not fetch it (line 2: Disallow: /), nor see that it asks not to be listed: X-Robots-Tag line 1: "noindex"|` +
				`YandexBot may fetch it; it asks not to be listed: X-Robots-Tag line 1: "noindex"|` +
				`Bingbot may fetch it; it asks not to be listed: X-Robots-Tag line 1: "noindex"`},
		{"a narrow name goes first", "*", "User-agent: Yandex\nAllow: /\n\nUser-agent: YandexBot\nDisallow: /\n", "", "",
			"a crawler may fetch and list it|Googlebot may fetch and list it|" +
				"YandexBot may not fetch it (line 5: Disallow: /); it may list the address alone|Bingbot may fetch and list it"},
		{"what could steer a terminal", "*", "", "", "<meta name=robots content='noindex\u202e'>", "a crawler may fetch and list it|" + fetched},
		{"an outage", "*", "down", "", "", strings.Repeat("|X may not fetch it (robots.txt is unreachable); it may list the address alone", 4)[1:]},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := &fetch.Result{StatusCode: http.StatusOK, Body: []byte(c.robots)}
			if c.robots == "down" {
				res = &fetch.Result{Err: errors.New("no answer"), Policy: policy.Unreachable()}
			}
			var k Asker
			if err := k.SetAgent(c.agent); err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse("https://a.example/p")
			if err != nil {
				t.Fatal(err)
			}
			rules := page.ParseHTML([]byte(c.page))
			if c.header != "" {
				rules = page.ParseHeader([]string{c.header}).Add(rules)
			}
			var got []string
			for _, l := range k.Listings(res, u, rules) {
				text := l.String()
				if c.robots == "down" {
					_, text, _ = strings.Cut(text, " may")
					text = "X may" + text
				}
				got = append(got, text)
			}
			if text := strings.Join(got, "|"); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
		})
	}
}
