// Httpcache puts the gate above an HTTP cache for pages, so that a page which may not
// be asked for is not served from the cache either: what is kept there may have been
// allowed to another crawler, or at another time. Robots.txt is read past the page
// cache, which knows nothing of what RFC 9309 §2.4 says about its lifetime.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/gohugoio/httpcache"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
)

const agent = "ExampleBot/1.0 (+https://example.com/bot)"

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// pages is a store for httpcache in memory.
type pages struct{ *lru.Cache[string, []byte] }

func (p pages) Set(key string, response []byte) { p.Add(key, response) }
func (p pages) Delete(key string)               { p.Remove(key) }

func run(out io.Writer) error {
	web := site.Serve(site.Host{
		Name:   "www.example",
		Robots: site.Text("User-agent: ExampleBot", "Disallow: /private", "", "User-agent: OtherBot", "Disallow: /"),
		Other: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
		},
	})
	defer web.Close()
	plain := web.Transport() // http.DefaultTransport, to use the network
	defer plain.CloseIdleConnections()
	kept, err := lru.New[string, []byte](1000)
	if err != nil {
		return err
	}
	c := &http.Client{Transport: &client.Transport{
		Base:      &httpcache.Transport{Transport: plain, Cache: pages{kept}, MarkCachedResponses: true},
		UserAgent: agent,
		Fetcher:   &fetch.Fetcher{Transport: plain}, // not through the page cache
	}}

	ctx := context.Background()
	asOther := client.WithToken(ctx, "OtherBot") // a crawler that shares the page cache
	if err := errors.Join(
		get(ctx, out, c, "http://www.example/public"),
		get(ctx, out, c, "http://www.example/public"),
		get(asOther, out, c, "http://www.example/public"),
		get(ctx, out, c, "http://www.example/private"),
	); err != nil {
		return err
	}
	fmt.Fprintln(out, "in the page cache:", kept.Keys())
	web.Report(out)
	return nil
}

func get(ctx context.Context, out io.Writer, c *http.Client, link string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		fmt.Fprintf(out, "refused  %s for %s: %v\n", link, refusal.Token, refusal.Decision)
		return nil
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	from := "the site"
	if resp.Header.Get(httpcache.XFromCache) != "" {
		from = "the page cache"
	}
	fmt.Fprintf(out, "sent     %s gave %d from %s\n", link, resp.StatusCode, from)
	_, err = io.Copy(io.Discard, resp.Body) // httpcache keeps what was read to its end
	return err
}
