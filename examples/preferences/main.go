// Preferences is a crawler that keeps only what sites let it keep: it collects pages to
// train a model with, from a web that is embedded in the program. The gate refuses what
// robots.txt does not want used so, before it is fetched. Of what comes, it drops pages that
// ask not to be kept, and queues no link that is not to be followed.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/links"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

const (
	token = "ExampleBot"
	use   = "train-ai"
)

func main() {
	web := site.Serve(host)
	defer web.Close()
	if err := crawl(os.Stdout, web, "http://www.example/"); err != nil {
		log.Fatal(err)
	}
}

// crawl follows links from start, and prints what became of each page.
func crawl(out io.Writer, web *site.Web, start string) error {
	gate := &client.Transport{Base: web.Transport(), Token: token, Uses: []string{use}}
	defer gate.CloseIdleConnections()
	queue := []string{start}
	for i := 0; i < len(queue); i++ {
		next, verdict, err := visit(gate, queue[i])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-32s %s\n", queue[i], verdict)
		for _, link := range next {
			if !slices.Contains(queue, link) {
				queue = append(queue, link)
			}
		}
	}
	return nil
}

// visit fetches a page and returns the links that may be followed.
func visit(gate *client.Transport, link string) (next []string, verdict string, err error) {
	resp, err := (&http.Client{Transport: gate}).Get(link)
	if refused, ok := err.(*url.Error); ok {
		return nil, "not sent: " + why(refused.Err), nil
	}
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()

	said := usage.ParseHeader(resp.Header)
	p := client.PageRules(resp)
	found := links.Of(resp.Request.URL, resp.Body) // if it reads less than the page, the effect is Incomplete
	p.Metas(func(name, content string, offset int64) {
		said = append(said, usage.ParseMeta(name, content, offset)...)
	})
	effect := p.Rules().For(policy.RFC9309, token)
	for _, l := range found {
		if effect.MayFollow(l.Rel) {
			next = append(next, l.URL.String())
		}
	}
	robots, err := gate.Lookup(context.Background(), resp.Request.URL)
	if err != nil {
		return nil, "", err
	}
	said = append(said, usage.ParseRules(p.Rules(), policy.RFC9309, token)...)
	what, by, err := usage.Combine(use, robots, token, resp.Request.URL.RequestURI(), said...)
	if err != nil || what == usage.Disallow {
		return next, "dropped: " + by.String(), nil
	}
	return next, keep(effect), nil
}

func why(err error) string {
	e, ok := err.(*client.DisallowedError)
	switch {
	case !ok:
		return err.Error()
	case e.Reason == policy.ReasonUse:
		return e.By
	}
	return e.Rule.String()
}

// keep returns what is done with a page that may be used.
func keep(e page.Effect) string {
	switch {
	case e.NoArchive:
		return "dropped: noarchive"
	case e.Incomplete:
		return "dropped: not all of it was read"
	case e.NoFollow:
		return "kept, links not followed"
	}
	return "kept"
}

// host is the site: what it says about use is in robots.txt, headers and pages.
var host = site.Host{
	Name: "www.example",
	Robots: site.Text(
		"User-agent: *",
		"Disallow: /private/",
		"Content-Usage: train-ai=y",
		"Content-Usage: /essays/ train-ai=n, search=y",
	),
	Pages: map[string]string{
		"/": site.Links("/essays/1", "/news", "/private/x", "/reserved", "/report", "/list") +
			`<a href="/advert" rel="sponsored nofollow">`,
		"/news":     "<p>News.",
		"/reserved": `<meta name="tdm-reservation" content="1"><p>A reservation of rights.`,
		"/list":     `<meta name="robots" content="nofollow"><a href="/unseen">`,
	},
	Other: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/report" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/pdf")
		w.Header().Set("X-Robots-Tag", "noai")
	},
}
