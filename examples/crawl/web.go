package main

import (
	"net/http"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// hosts is the web that the crawler visits.
func hosts() []site.Host {
	return []site.Host{
		{
			Name: "rules.example",
			Robots: site.Text(
				"User-agent: *",
				"Disallow: /",
				"",
				"User-agent: ExampleBot",
				"Disallow: /private/",
				"Allow: /private/notice$",
			),
			Pages: map[string]string{
				"/": site.Links("/public/", "/private/", "/private/notice", "http://slow.example/",
					"http://missing.example/", "http://moved.example/", "http://down.example/"),
				"/public/":        "<p>welcome</p>",
				"/private/notice": "<p>the one private page that may be read</p>",
			},
		},
		{
			Name:   "slow.example",
			Robots: site.Text("User-agent: *", "Crawl-delay: 0.3"),
			Pages: map[string]string{
				"/":  site.Links("/1", "/2"),
				"/1": "<p>one</p>",
				"/2": `<meta name="robots" content="noindex, nofollow">` + site.Links("/3"),
			},
		},
		{
			Name:  "missing.example", // it has no robots.txt: everything is allowed
			Pages: map[string]string{"/": site.Links("/anything")},
		},
		{
			Name:   "moved.example", // its robots.txt is at another site, and holds for this one
			Robots: http.RedirectHandler("http://cdn.example/moved/robots.txt", http.StatusMovedPermanently).ServeHTTP,
			Pages:  map[string]string{"/": site.Links("/old/1")},
		},
		{
			Name:   "cdn.example",
			Robots: site.Text("User-agent: *", "Disallow: /old/"),
		},
		{
			Name:   "down.example", // nothing is sent
			Robots: site.Status(http.StatusInternalServerError),
		},
	}
}
