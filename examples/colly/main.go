// Colly puts the gate under a colly Collector and its queue: colly finds the links, the
// gate says which of them are sent.
//
// Colly's own check of robots.txt stays off, as it is by default. The gate sees
// what that check does not: HEAD requests, and every hop of a redirect.
package main

import (
	"errors"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	web := site.Serve(hosts()...)
	defer web.Close()

	// Colly puts its own User-Agent on each page request; robots.txt is asked for with the gate's.
	const agent = "ExampleBot/1.0 (+https://example.com/bot)"
	gate := &client.Transport{Base: web.Transport(), UserAgent: agent} // leave Base out to use the network
	defer gate.CloseIdleConnections()
	c := colly.NewCollector(colly.UserAgent(agent))
	c.WithTransport(gate)
	q, err := queue.New(2, nil)
	if err != nil {
		return err
	}

	say := log.New(out, "", 0).Printf // the queue has two threads
	c.OnResponse(func(r *colly.Response) {
		say("sent     %-4s %s gave %d\n", r.Request.Method, r.Request.URL, r.StatusCode)
	})
	c.OnError(func(r *colly.Response, err error) {
		refusal, ok := errors.AsType[*client.DisallowedError](err)
		if !ok {
			say("failed   %-4s %s: %v\n", r.Request.Method, r.Request.URL, err)
			return
		}
		// refusal.URL is the hop that was refused, perhaps on another host than r's.
		say("refused  %-4s %s: %v\n", r.Request.Method, refusal.URL, refusal.Decision)
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if err := q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))); err != nil {
			say("no URL: %v\n", err)
		}
	})
	if err := q.AddURL("http://www.example/"); err != nil {
		return err
	}
	if err := q.Run(c); err != nil {
		return err
	}
	_ = c.Head("http://www.example/private/report") // OnError hears of it

	for _, n := range web.Counts() {
		say("%s saw %d pages and %d robots.txt asked for\n", n.Host, n.Pages, n.Robots)
	}
	return nil
}

// hosts is a site with one private part, and a second one that it redirects to.
func hosts() []site.Host {
	return []site.Host{
		{
			Name:   "www.example",
			Robots: site.Text("User-agent: ExampleBot", "Disallow: /private/"),
			Pages: map[string]string{
				"/":       site.Links("/public", "/private/", "/moved"),
				"/public": "<p>welcome</p>",
			},
			Other: http.RedirectHandler("http://other.example/archive/1", http.StatusFound).ServeHTTP, // of /moved
		},
		{Name: "other.example", Robots: site.Text("# the old pages", "User-agent: *", "Disallow: /archive/")},
	}
}
