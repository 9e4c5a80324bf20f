package main

import (
	"net/http"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// hosts is the web that the crawler visits: one host for each thing that can
// happen to a robots.txt.
func hosts() []site.Host {
	return []site.Host{
		{ // has rules, for everybody and for us
			Name: "rules.example",
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
					"http://missing.example/", "http://recovers.example/", "http://moved.example/",
					"http://müller.example/", "http://down.example/"),
				"/public/":        "<p>welcome</p>",
				"/private/notice": "<p>the one private page that may be read</p>",
			},
		},
		{ // has no robots.txt: everything is allowed
			Name:  "missing.example",
			Pages: map[string]string{"/": site.Links("/anything")},
		},
		{ // answers 503 once: asked again, and its rules are kept
			Name:   "recovers.example",
			Robots: site.Recovering(1, site.Text("User-agent: *", "Disallow: /drafts")),
			Pages:  map[string]string{"/": site.Links("/drafts/1", "/done")},
		},
		{ // moved its robots.txt to another host: those rules hold here
			Name: "moved.example",
			Robots: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://cdn.example/moved/robots.txt", http.StatusMovedPermanently)
			},
			Pages: map[string]string{"/": site.Links("/old/1")},
		},
		{ // where the file has gone
			Name:   "cdn.example",
			Robots: site.Text("User-agent: *", "Disallow: /old/"),
		},
		{ // an internationalised name: müller.example
			Name:   "xn--mller-kva.example",
			Robots: site.Text("User-agent: *", "Disallow: /geheim"),
			Pages:  map[string]string{"/": site.Links("/geheim/1", "http://xn--mller-kva.example/")},
		},
		{ // its robots.txt is broken: nothing may be sent
			Name:   "down.example",
			Robots: site.Status(http.StatusInternalServerError),
			Pages:  map[string]string{"/": "<p>nobody gets here</p>"},
		},
	}
}
