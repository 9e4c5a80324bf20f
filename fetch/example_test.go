package fetch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func ExampleFetcher_Fetch() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "User-agent: *\nDisallow: /private\n")
	}))
	defer site.Close()

	page, err := url.Parse(site.URL + "/private/x")
	if err != nil {
		fmt.Println(err)
		return
	}
	o, err := fetch.OriginOf(page)
	if err != nil {
		fmt.Println(err) // the URL names no site
		return
	}
	f := fetch.Fetcher{UserAgent: "ExampleBot/1.0 (+https://bot.example/about)"}
	res, err := f.Fetch(context.Background(), o, nil)
	if err != nil {
		fmt.Println(err) // the site was not asked
		return
	}
	switch d := res.Policy.Decide("ExampleBot", page.RequestURI()); {
	case d.Allowed:
		fmt.Println("may be fetched")
	case d.Reason == policy.ReasonUnreachable:
		fmt.Println("cannot be told:", res.Err)
	default:
		fmt.Printf("refused by line %d: Disallow: %s\n", d.Rule.Line, d.Rule.Pattern)
	}
	// Output: refused by line 2: Disallow: /private
}

func ExampleOriginOf() {
	for _, raw := range []string{"http://WWW.Müller.eu:80/a?b", "https://example.com.:8443/", "http://127.1/"} {
		u, err := url.Parse(raw)
		if err != nil {
			fmt.Println(err)
			continue
		}
		o, err := fetch.OriginOf(u)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(o, "has", o.RobotsURL())
	}
	// Output:
	// http://www.xn--mller-kva.eu has http://www.xn--mller-kva.eu/robots.txt
	// https://example.com:8443 has https://example.com:8443/robots.txt
	// fetch: no origin in URL "http://127.1/": host "127.1": its last label is a number, but it is not an IPv4 address in dotted decimal
}

// An Origin is a key of maps, and text in JSON.
func ExampleOrigin() {
	pages := map[fetch.Origin]int{}
	for _, raw := range []string{"https://example.com/a", "HTTPS://EXAMPLE.COM:443/b", "http://example.com/"} {
		u, err := url.Parse(raw)
		if err != nil {
			fmt.Println(err)
			return
		}
		o, err := fetch.OriginOf(u)
		if err != nil {
			fmt.Println(err)
			return
		}
		pages[o]++
	}
	text, err := json.Marshal(pages)
	fmt.Println(string(text), err)

	var read map[fetch.Origin]int
	err = json.Unmarshal(text, &read)
	fmt.Println(maps.Equal(read, pages), err)
	// Output:
	// {"http://example.com":1,"https://example.com":2} <nil>
	// true <nil>
}

// A sender of its own backs off from a page as a Pacer does.
func ExampleRetryAfter() {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	fmt.Println(fetch.RetryAfter(http.StatusTooManyRequests, http.Header{"Retry-After": {"120"}}, now))
	fmt.Println(fetch.RetryAfter(http.StatusOK, http.Header{"Retry-After": {"120"}}, now))
	// Output:
	// 2m0s
	// 0s
}
