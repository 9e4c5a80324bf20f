package main

import (
	"net/http"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// hosts is the web that the crawler visits: one host for each thing that can
// happen to a robots.txt.
func hosts() []site.Host {
	return []site.Host{
		{
			Name:  "rules.example",
			Shows: "rules for everyone, others for ExampleBot",
			Robots: site.Text(
				"User-agent: *",
				"Disallow: /",
				"",
				"User-agent: ExampleBot",
				"Disallow: /private/",
				"Allow: /private/notice$",
				"Disallow: /*?session=",
				"Crawl-delay: 0.1",
			),
			Pages: map[string]string{
				"/": site.Links("/public/", "/private/", "/private/notice", "/public/?session=42",
					"http://slow.example/", "http://missing.example/", "http://recovers.example/",
					"http://moved.example/", "http://müller.example/", "http://down.example/"),
				"/public/":        "<p>welcome</p>",
				"/private/notice": "<p>the one private page that may be read</p>",
			},
		},
		{
			Name:   "slow.example",
			Shows:  "0.3 s between requests; one noindex page",
			Robots: site.Text("User-agent: *", "Crawl-delay: 0.3"),
			Pages:  map[string]string{"/": site.Links("/1", "/2"), "/1": "<p>one</p>", "/2": `<meta name="robots" content="noindex, nofollow">` + site.Links("/3")},
		},
		{
			Name:  "missing.example",
			Shows: "no robots.txt: everything is allowed",
			Pages: map[string]string{"/": site.Links("/anything")},
		},
		{
			Name:   "recovers.example",
			Shows:  "503 at first: asked again, then rules",
			Robots: site.Recovering(1, site.Text("User-agent: *", "Disallow: /drafts")),
			Pages:  map[string]string{"/": site.Links("/drafts/1", "/done"), "/done": "<p>done</p>"},
		},
		{
			Name:  "moved.example",
			Shows: "its robots.txt is at cdn.example, for it",
			Robots: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://cdn.example/moved/robots.txt", http.StatusMovedPermanently)
			},
			Pages: map[string]string{"/": site.Links("/old/1")},
		},
		{
			Name:   "cdn.example",
			Shows:  "where the robots.txt of moved.example is",
			Robots: site.Text("User-agent: *", "Disallow: /old/"),
		},
		{
			Name:   "xn--mller-kva.example",
			Shows:  "müller.example: one site, two spellings",
			Robots: site.Text("User-agent: *", "Disallow: /geheim"),
			Pages:  map[string]string{"/": site.Links("/geheim/1", "http://xn--mller-kva.example/")},
		},
		{
			Name:   "down.example",
			Shows:  "500 for its robots.txt: nothing is sent",
			Robots: site.Status(http.StatusInternalServerError),
			Pages:  map[string]string{"/": "<p>no crawler gets here</p>"},
		},
	}
}
