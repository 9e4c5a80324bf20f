// Crawl is a small polite crawler. It follows the links of a web that is embedded
// in the program (see web.go), prints what it sent and what it refused, and why.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"sync"
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
	progress := io.Discard
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		progress = os.Stderr
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := crawl(ctx, os.Stdout, progress, web, "http://rules.example/"); err != nil {
		log.Fatal(err)
	}
}

// crawl follows links from start with four workers until there are no more.
func crawl(ctx context.Context, out, progress io.Writer, web *site.Web, start string) error {
	pacer := &client.Pacer{Delay: 20 * time.Millisecond} // leave it out on the network: one second
	gate := &client.Transport{
		Base:      web.Transport(),
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
		Pacer:     pacer,
	}
	defer gate.CloseIdleConnections()
	c := &crawler{
		gate: gate, pacer: pacer, http: &http.Client{Transport: gate, Timeout: 10 * time.Second},
		out: out, progress: progress, frontier: newFrontier(start),
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() { c.work(ctx) })
	}
	workers.Wait()
	fmt.Fprint(progress, "\r\x1b[K")
	return report(out, web)
}

type crawler struct {
	gate     *client.Transport
	pacer    *client.Pacer
	http     *http.Client
	frontier *frontier

	mu            sync.Mutex // guards what follows
	out, progress io.Writer
	sent, refused int
}

func (c *crawler) work(ctx context.Context) {
	for {
		u, ok := c.frontier.next()
		if !ok {
			return
		}
		links, err := c.visit(ctx, u)
		if err != nil {
			c.say("failed", u, err)
		}
		c.frontier.done(links)
	}
}

// visit asks whether u may be fetched, waits for its turn, and returns the links of the
// page. The wait stands before the request, so that the client's time-out is about the
// site alone. The gate would refuse a forbidden request by itself: asking first saves
// the turn.
func (c *crawler) visit(ctx context.Context, u *url.URL) ([]*url.URL, error) {
	why, err := c.gate.Decide(ctx, u)
	if err != nil {
		return nil, err
	}
	if !why.Allowed {
		c.say("refused", u, why)
		return nil, nil
	}
	if err := c.pacer.Wait(ctx, u); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	c.say(fmt.Sprint("sent, ", resp.StatusCode), u, why)
	return links(u, resp.Body), nil
}

// say prints one line: what became of a URL, and by which line of which file.
func (c *crawler) say(what string, u *url.URL, why any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := why.(policy.Decision); ok && d.Allowed {
		c.sent++
	} else {
		c.refused++
	}
	origin := u.Scheme + "://" + u.Host // u.String would escape an internationalised host
	fmt.Fprint(c.progress, "\r\x1b[K")
	fmt.Fprintf(c.out, "%-9s  %-40s  %s/robots.txt: %v\n", what, origin+u.RequestURI(), origin, why)
	fmt.Fprintf(c.progress, "%d sent, %d refused, %d to go", c.sent, c.refused, c.frontier.len())
}

// links returns the absolute form of the links on a page.
func links(base *url.URL, page io.Reader) (found []*url.URL) {
	for z := html.NewTokenizer(page); ; {
		switch z.Next() {
		case html.ErrorToken:
			return found
		case html.StartTagToken:
			for _, a := range z.Token().Attr {
				if u, err := base.Parse(a.Val); a.Key == "href" && err == nil {
					found = append(found, u)
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
