package main

import (
	"io"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// embedded is the web, and what its sites see.
func embedded() (all []*visits, hosts []site.Host) {
	add := func(name string, delay time.Duration, robots http.HandlerFunc, pages map[string]string) {
		v := &visits{host: name, delay: delay}
		all = append(all, v)
		page := func(w http.ResponseWriter, r *http.Request) { answer(w, r, pages[r.URL.Path]) }
		if name != "busy.example" { // it is about the pages there
			robots = v.watch(robots)
		}
		hosts = append(hosts, site.Host{Name: name, Robots: robots, Other: v.watch(page)})
	}
	add("slow.example", 700*time.Millisecond,
		site.Text("User-agent: *", "Crawl-delay: 0.7"),
		map[string]string{"/": site.Links("/1", "/2", "http://rules.example/", "http://busy.example/"),
			"/1": "<p>one</p>", "/2": "<p>two</p>"})
	add("rules.example", 100*time.Millisecond,
		site.Text("User-agent: *", "Disallow: /", "", "User-agent: ExampleBot", "Disallow: /private", "Crawl-delay: 0.1"),
		map[string]string{"/": site.Links("/1", "/2", "/3", "/4", "/private", "http://open.example/", "http://down.example/"),
			"/1": "<p>one</p>", "/2": "<p>two</p>", "/3": site.Links("/5"), "/4": "<p>four</p>", "/5": "<p>five</p>"})
	add("open.example", time.Second, // it has no robots.txt, and is given the usual second
		site.Status(http.StatusNotFound),
		map[string]string{"/": site.Links("/1", "http://slow.example/", "http://rules.example/"), "/1": "<p>one</p>"})
	add("busy.example", 3*time.Second, // that is its Retry-After
		site.Text("User-agent: *", "Crawl-delay: 0.1"),
		map[string]string{"/": "busy"})
	add("down.example", 0, site.Status(http.StatusInternalServerError), nil)
	return all, hosts
}

func answer(w http.ResponseWriter, r *http.Request, page string) {
	switch page {
	case "":
		http.NotFound(w, r)
	case "busy":
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page)
	}
}
