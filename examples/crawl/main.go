// Crawl is a small polite crawler. It follows the links of a web that is embedded
// in the program (see web.go), prints what it sent and what it refused, and why.
// With --serve it shows that web to a browser instead.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/policy"
)

func main() {
	show := flag.Bool("serve", false, "show the embedded web to a browser, and do not crawl it")
	flag.Parse()
	web := site.Serve(hosts()...)
	defer web.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, web, *show); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, web *site.Web, show bool) error {
	if show {
		return serve(ctx, os.Stdout, web)
	}
	progress := io.Discard
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		progress = os.Stderr
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return crawl(ctx, os.Stdout, progress, web, "http://rules.example/")
}

// crawl follows links from start with four workers until there are no more, or ctx ends.
func crawl(ctx context.Context, out, progress io.Writer, web *site.Web, start string) error {
	u, err := url.Parse(start)
	if err != nil {
		return err
	}
	r := newReport(out, progress, web)
	gate := &client.Transport{
		Base:      web.Transport(), // leave it out on the network
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
		Pacer:     &client.Pacer{Delay: 20 * time.Millisecond}, // leave Delay out on the network: one second
		Trace:     &client.Trace{Fetched: r.fetched},
	}
	defer gate.CloseIdleConnections()
	c := &crawler{
		gate: gate, http: &http.Client{Transport: gate, Timeout: 10 * time.Second},
		frontier: newFrontier(u), report: r,
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() { c.work(ctx) })
	}
	workers.Wait()
	return errors.Join(r.totals(), ctx.Err())
}

type crawler struct {
	gate     *client.Transport
	http     *http.Client
	frontier *frontier
	report   *report
}

func (c *crawler) work(ctx context.Context) {
	for {
		u, ok := c.frontier.next(ctx)
		if !ok {
			return
		}
		c.visit(ctx, u)
		c.report.progress(c.frontier.len())
	}
}

// visit asks for u's turn. If the site is not free, because its robots.txt is being read or another worker was faster, u
// goes back and the worker takes another site.
func (c *crawler) visit(ctx context.Context, u *url.URL) {
	turn, err := c.gate.Try(ctx, u)
	if late, ok := errors.AsType[*client.LateError](err); ok {
		c.frontier.later(u, late.At)
		return
	}
	var links []*url.URL
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		c.report.refused(u, refusal.Answer)
	} else if err != nil {
		c.report.failed(u, err)
	} else if links, err = c.get(ctx, turn, u); err != nil {
		c.report.failed(u, err)
	}
	c.frontier.done(links)
}

// get sends the request whose turn it is, and returns the links of the page.
func (c *crawler) get(ctx context.Context, turn *client.Turn, u *url.URL) ([]*url.URL, error) {
	defer turn.End()
	answer, err := c.gate.Decide(ctx, u) // once more, for the report: the cache has it
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(turn.Context(ctx), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	says := client.PageRules(resp) // what the page says about itself
	found := links(u, io.LimitReader(resp.Body, 1<<20))
	effect := says.Rules().For(policy.RFC9309, "ExampleBot")
	if effect.NoFollow {
		found = nil
	}
	c.report.sent(u, resp.StatusCode, answer, effect.NoIndex) // with NoIndex, list it nowhere
	return found, nil
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
