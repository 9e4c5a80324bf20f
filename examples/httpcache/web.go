package main

import (
	"fmt"
	"net/http"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// host is a site whose pages may be kept for a minute, and that lets one crawler in.
func host() site.Host {
	return site.Host{
		Name: "www.example",
		Robots: site.Text(
			"User-agent: ExampleBot",
			"Disallow: /private",
			"",
			"User-agent: OtherBot",
			"Disallow: /",
		),
		Other: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			fmt.Fprint(w, "hello")
		},
	}
}
