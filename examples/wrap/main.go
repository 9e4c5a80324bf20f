// Wrap puts the gate under an http.Client and shows its three answers: sent,
// refused by a rule, and refused because robots.txt could not be read.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

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

	c := &http.Client{Transport: &client.Transport{
		Base:      web.Transport(), // leave it out to use the network
		UserAgent: agent,
		Fetcher:   &fetch.Fetcher{Retries: -1}, // leave it out to ask a broken server again
	}}
	for _, link := range []string{"http://www.example/public", "http://www.example/private", "http://broken.example/"} {
		fmt.Println(get(c, link))
	}
}

func get(c *http.Client, link string) string {
	resp, err := c.Get(link)
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		if refusal.Reason == policy.ReasonUnreachable { // ask again after Until
			again := time.Until(refusal.Until).Round(time.Second)
			return fmt.Sprintf("later: %s, in %v\n       %v", link, again, refusal.Unreachable)
		}
		return fmt.Sprintf("never: %s\n       %v", link, refusal.Decision) // drop the URL
	}
	if err != nil {
		return "failed: " + err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("sent:  %s gave %q", link, body)
}
