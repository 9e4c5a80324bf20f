// Crawl is a small polite crawler. It follows the links of a web that is embedded
// in the program (see web.go), prints what it sent and what it refused, and why.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/policy"
)

func main() {
	web := site.Serve(hosts()...)
	defer web.Close()
	if err := crawl(os.Stdout, web, "http://rules.example/"); err != nil {
		log.Fatal(err)
	}
}

func crawl(out io.Writer, web *site.Web, start string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	gate := &client.Transport{
		Base:      web.Transport(),
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
	}
	defer gate.CloseIdleConnections()
	c := &http.Client{Transport: gate}

	queue, seen := []string{start}, map[string]bool{start: true}
	for len(queue) > 0 {
		link := queue[0]
		queue = queue[1:]
		found, err := visit(ctx, out, c, gate, link)
		if err != nil {
			return err
		}
		for _, next := range found {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return report(out, web)
}

// visit asks for one page and returns its links. A refusal is not an error: it is an answer.
func visit(ctx context.Context, out io.Writer, c *http.Client, gate *client.Transport, link string) ([]string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		say(out, "refused", u, refusal.Decision)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	why, err := gate.Decide(ctx, u) // from the cache: nothing is sent
	if err != nil {
		return nil, err
	}
	say(out, fmt.Sprint("sent, ", resp.StatusCode), u, why)
	return links(u, resp.Body), nil
}

// say prints one line: what became of a URL, and by which line of which file.
func say(out io.Writer, what string, u *url.URL, why policy.Decision) {
	link := u.Scheme + "://" + u.Host // u.String would escape an internationalised host
	fmt.Fprintf(out, "%-9s  %-40s  %s/robots.txt: %v\n", what, link+u.RequestURI(), link, why)
}

// links returns the absolute form of the links on a page.
func links(base *url.URL, page io.Reader) (found []string) {
	for z := html.NewTokenizer(page); ; {
		switch z.Next() {
		case html.ErrorToken:
			return found
		case html.StartTagToken:
			for _, a := range z.Token().Attr {
				if u, err := base.Parse(a.Val); a.Key == "href" && err == nil {
					found = append(found, u.String())
				}
			}
		}
	}
}

// report prints what the sites themselves saw.
func report(out io.Writer, web *site.Web) error {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pages asked\trobots.txt fetched\tby host\t")
	for _, n := range web.Counts() {
		fmt.Fprintf(w, "%d\t%d\t%s\t\n", n.Pages, n.Robots, n.Host)
	}
	return w.Flush()
}
