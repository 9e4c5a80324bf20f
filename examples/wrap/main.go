// Wrap puts the gate under an http.Client and shows its three answers: sent,
// refused by a rule, and refused because robots.txt could not be had.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

const agent = "ExampleBot/1.0 (+https://example.com/bot)"

func main() {
	web := site.Serve(
		site.Host{
			Name:   "www.example",
			Robots: site.Text("User-agent: *", "Disallow: /private"),
			Pages:  map[string]string{"/public": "hello"},
		},
		site.Host{Name: "broken.example", Robots: site.Status(http.StatusInternalServerError)},
	)
	defer web.Close()
	base := web.Transport() // leave Base and Fetcher.Transport out to use the network

	c := &http.Client{Transport: &client.Transport{
		Base:      base,
		UserAgent: agent,
		Fetcher:   &fetch.Fetcher{Transport: base, UserAgent: agent, Retries: -1}, // leave it out to ask a broken server again
	}}
	for _, link := range []string{"http://www.example/public", "http://www.example/private", "http://broken.example/"} {
		fmt.Println(get(c, link))
	}
}

func get(c *http.Client, link string) string {
	resp, err := c.Get(link)
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		if refusal.Decision.Reason == policy.ReasonUnreachable {
			return "later: " + refusal.Error() // try again when robots.txt answers
		}
		return "never: " + refusal.Error() // drop the URL
	}
	if err != nil {
		return "failed: " + err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("sent: %s gave %q", link, body)
}
