package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client"
)

// unhurriedSite is a site in this process that wants a pause between requests.
func unhurriedSite() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nCrawl-delay: 0.05\nDisallow: /private\n")
		}
	}))
}

// Ask, wait, send: the time-out of the client is about the site alone, and what is
// forbidden does not cost a turn.
func ExamplePacer() {
	site := unhurriedSite()
	defer site.Close()

	pacer := &client.Pacer{}
	transport := &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)", Pacer: pacer}
	httpClient := &http.Client{Transport: transport, Timeout: 10 * time.Second}

	ctx := context.Background()
	var last time.Time
	for _, path := range []string{"/a", "/private", "/b", "/c"} {
		u, err := url.Parse(site.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		if d, err := transport.Decide(ctx, u); err != nil || !d.Allowed {
			fmt.Println(path, "is not for us")
			continue
		}
		if err := pacer.Wait(ctx, u); err != nil {
			fmt.Println(err)
			return
		}
		distance := time.Since(last)
		last = time.Now()
		res, err := httpClient.Get(u.String())
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
		fmt.Println(path, res.StatusCode, "at a distance:", distance >= 50*time.Millisecond)
	}
	// Output:
	// /a 200 at a distance: true
	// /private is not for us
	// /b 200 at a distance: true
	// /c 200 at a distance: true
}

// A crawler with a queue of its own takes whatever may start first, and never waits for
// one site while another is free.
func ExamplePacer_Next() {
	busy, idle := unhurriedSite(), unhurriedSite()
	defer busy.Close()
	defer idle.Close()

	pacer := &client.Pacer{}
	httpClient := &http.Client{Transport: &client.Transport{Pacer: pacer}}
	if res, err := httpClient.Get(busy.URL); err == nil {
		res.Body.Close() // the delay runs from here
	}

	var queue []*url.URL
	for _, s := range []string{busy.URL + "/busy", idle.URL + "/idle"} {
		u, err := url.Parse(s)
		if err != nil {
			fmt.Println(err)
			return
		}
		queue = append(queue, u)
	}
	slices.SortFunc(queue, func(a, b *url.URL) int { return pacer.Next(a).Compare(pacer.Next(b)) })
	for _, u := range queue {
		fmt.Println(strings.TrimPrefix(u.Path, "/"))
	}
	// Output:
	// idle
	// busy
}

// Without a Transport, a Pacer spaces the starts by its Delay.
func ExamplePacer_Wait() {
	pacer := &client.Pacer{Delay: 50 * time.Millisecond}
	u := &url.URL{Scheme: "https", Host: "example.com"}
	start := time.Now()
	for range 3 {
		if err := pacer.Wait(context.Background(), u); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("three turns in two delays:", time.Since(start) >= 100*time.Millisecond)
	// Output: three turns in two delays: true
}
