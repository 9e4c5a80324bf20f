// Lookup asks questions and sends none of the pages: may these URLs be fetched, and
// what else does the origin's robots.txt say?
package main

import (
	"context"
	"fmt"
	"log"
	"net/url"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
)

func main() {
	web := site.Serve(site.Host{
		Name: "www.example",
		Robots: site.Text(
			"User-agent: ExampleBot",
			"Disallow: /search",
			"Allow: /search/about",
			"Crawl-delay: 2.5",
			"Sitemap: https://www.example/sitemap.xml",
		),
	})
	defer web.Close()
	gate := &client.Transport{Base: web.Transport(), Token: "ExampleBot"}
	ctx := context.Background()

	for _, target := range []string{"/", "/search?q=go", "/search/about"} {
		u, err := url.Parse("http://www.example" + target)
		if err != nil {
			log.Fatal(err)
		}
		d, err := gate.Decide(ctx, u)
		if err != nil {
			log.Fatal(err) // the context ended, or u names no origin
		}
		fmt.Printf("%s\n    %v\n", u, d)
	}

	p, err := gate.Lookup(ctx, &url.URL{Scheme: "http", Host: "www.example"})
	if err != nil {
		log.Fatal(err)
	}
	if delay, ok := p.Group("ExampleBot").CrawlDelay(); ok {
		fmt.Println("crawl delay:", delay)
	}
	for sitemap := range p.Sitemaps() {
		fmt.Println("sitemap:", sitemap)
	}
}
