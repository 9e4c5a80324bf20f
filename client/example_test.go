package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
)

// exampleSite stands for a site on the network.
func exampleSite() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
			return
		}
		fmt.Fprint(w, "a page")
	}))
}

func ExampleTransport() {
	site := exampleSite()
	defer site.Close()

	c := &http.Client{Transport: &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)"}}
	for _, path := range []string{"/public", "/private/letters"} {
		resp, err := c.Get(site.URL + path)
		if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
			switch refusal.Decision.Reason {
			case policy.ReasonUnreachable:
				fmt.Println("ask again later:", path)
			default:
				fmt.Println("not sent:", path, "by", refusal.Decision.Rule)
			}
			continue
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("sent: %s gave %q\n", path, body)
	}
	// Output:
	// sent: /public gave "a page"
	// not sent: /private/letters by Disallow: /private
}

// Decide asks what RoundTrip would do, without sending the request.
func ExampleTransport_Decide() {
	site := exampleSite()
	defer site.Close()

	gate := &client.Transport{Token: "ExampleBot"}
	u, err := url.Parse(site.URL + "/private/letters")
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := gate.Decide(context.Background(), u)
	fmt.Println(d, err)
	// Output: disallowed by line 2: Disallow: /private (user-agent: *) <nil>
}

// A new Transport for each request works, and is wrong: it has a new cache each time,
// so every page costs a fetch of robots.txt as well.
func ExampleTransport_wrong() {
	fetches := 0
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fetches++
		}
	}))
	defer site.Close()

	for range 3 {
		c := &http.Client{Transport: &client.Transport{}} // belongs before the loop
		if resp, err := c.Get(site.URL + "/"); err == nil {
			resp.Body.Close()
		}
	}
	fmt.Println("three pages,", fetches, "fetches of robots.txt")
	// Output: three pages, 3 fetches of robots.txt
}

// WithoutRobots is for what a person asked for.
func ExampleWithoutRobots() {
	site := exampleSite()
	defer site.Close()

	c := &http.Client{Transport: &client.Transport{}}
	req, err := http.NewRequestWithContext(client.WithoutRobots(context.Background()), http.MethodGet, site.URL+"/private/letters", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := c.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}
