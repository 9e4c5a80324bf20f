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
	"os/signal"
	"slices"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/links"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/policy"
)

// atOnce is how many pages may be under way.
const atOnce = 4

func main() {
	web := site.Serve(hosts()...)
	defer web.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	start := &url.URL{Scheme: "http", Host: "rules.example", Path: "/"}
	if err := crawl(ctx, os.Stdout, web.Transport(), start); err != nil {
		log.Fatal(err)
	}
	web.Report(os.Stdout)
}

// visited is what became of a page.
type visited struct {
	verdict string
	links   []*url.URL
}

// crawl follows links from start until there are no more, or ctx ends. Its queue gives out the page whose site is free
// first: no page stands in line for a slow site while another site could be asked.
func crawl(ctx context.Context, out io.Writer, base http.RoundTripper, start *url.URL) error {
	gate := &client.Transport{
		Base:      base, // leave it out on the network
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
		Pacer:     &client.Pacer{Delay: 20 * time.Millisecond}, // leave Delay out on the network: one second
	}
	defer gate.CloseIdleConnections()
	queue, seen := []*url.URL{start}, map[string]bool{start.String(): true}
	free := map[string]time.Time{} // when to ask for the turn of a host, as a client.LateError said; zero: at once
	done := make(chan visited, atOnce)
	for busy := 0; len(queue) > 0 || busy > 0; {
		var next <-chan time.Time
		if len(queue) > 0 && busy < atOnce {
			// A crawler of many pages keeps a queue for each site.
			slices.SortStableFunc(queue, func(a, b *url.URL) int { return free[a.Host].Compare(free[b.Host]) })
			next = time.After(time.Until(free[queue[0].Host]))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
			u := queue[0]
			turn, err := gate.Try(ctx, u)
			if late, ok := errors.AsType[*client.LateError](err); ok { // its robots.txt may be on its way
				free[u.Host] = late.At
				continue
			}
			queue = queue[1:]
			busy++
			go func() { done <- visit(ctx, gate, turn, u, err) }()
		case v := <-done:
			busy--
			fmt.Fprintln(out, v.verdict)
			for _, u := range v.links {
				if !seen[u.String()] {
					seen[u.String()] = true
					queue = append(queue, u)
				}
			}
		}
	}
	return nil
}

// visit sends the request whose turn it is, unless err says that there is none.
func visit(ctx context.Context, gate *client.Transport, turn *client.Turn, u *url.URL, err error) (v visited) {
	if err == nil {
		defer turn.End()
		v, err = get(turn.Context(ctx), &http.Client{Transport: gate, Timeout: 10 * time.Second}, u)
	}
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		v.verdict = fmt.Sprintf("refused  %s: %v", u, refusal.Decision)
	} else if err != nil {
		v.verdict = fmt.Sprintf("failed   %s: %v", u, err)
	}
	return v
}

// get fetches a page, and obeys what it says about itself.
func get(ctx context.Context, c *http.Client, u *url.URL) (v visited, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return v, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	v.verdict = fmt.Sprintf("sent     %s: %s", u, resp.Status)
	says := client.PageRules(resp) // it learns of meta elements while the page is read
	found := links.Of(u, resp.Body)
	effect := says.Rules().For(policy.RFC9309, "ExampleBot")
	if effect.NoIndex {
		v.verdict += ", to be listed nowhere"
	}
	for _, l := range found {
		if effect.MayFollow(l.Rel) {
			v.links = append(v.links, l.URL)
		}
	}
	return v, nil
}
