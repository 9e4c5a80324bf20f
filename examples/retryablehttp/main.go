// Retryablehttp puts the gate under go-retryablehttp. Its default policy takes a
// refusal for a failure of the network and asks again; ours does not: a "no" from
// robots.txt is final, and a "could not find out" goes back into the crawler's queue.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

const agent = "ExampleBot/1.0 (+https://example.com/bot)"

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// checkRetry never retries what the gate held back: a rule, an outage, a use, a delay. The gate has
// already asked again for a robots.txt that failed, and until its next attempt the answer stays the
// same.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if errors.Is(err, client.ErrNotSent) {
		return false, err
	}
	return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
}

func run(out io.Writer) error {
	web := site.Serve(
		site.Host{Name: "www.example",
			Robots: site.Text("User-agent: ExampleBot", "Disallow: /private"),
			Other:  site.Recovering(1, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })},
		site.Host{Name: "restarting.example",
			Robots: site.Recovering(1, site.Text("User-agent: *", "Allow: /")),
			Pages:  map[string]string{"/": "back again"}},
		site.Host{Name: "essays.example", Robots: site.Text("User-agent: *", "Content-Usage: train-ai=n")},
		site.Host{Name: "slow.example", Robots: site.Text("User-agent: *", "Crawl-delay: 3600")},
	)
	defer web.Close()

	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: &client.Transport{
		Base:      web.Transport(), // leave it out to use the network
		UserAgent: agent,
		Uses:      []string{"train-ai"},
		Pacer:     &client.Pacer{Delay: -1, RefuseLongDelays: true},
		// Leave these two out: then one 503 is bridged, and an outage rests for 30 s.
		Fetcher: &fetch.Fetcher{Retries: -1},
		Cache:   &cache.Cache{MinRetry: time.Millisecond},
	}}
	defer c.HTTPClient.CloseIdleConnections()
	c.CheckRetry, c.RetryWaitMin, c.Logger = checkRetry, time.Millisecond, nil
	c.RequestLogHook = func(_ retryablehttp.Logger, req *http.Request, retry int) {
		fmt.Fprintf(out, "asked    %s, retry %d\n", req.URL, retry)
	}

	queue := []string{"http://www.example/public", "http://www.example/private", "http://restarting.example/",
		"http://essays.example/", "http://slow.example/"}
	for left := 10; len(queue) > 0 && left > 0; left-- { // a crawler would count for each URL, and wait longer
		link := queue[0]
		queue = queue[1:]
		resp, err := c.Get(link)
		switch refusal, ok := errors.AsType[*client.DisallowedError](err); {
		case ok && refusal.Decision.Reason == policy.ReasonUnreachable:
			fmt.Fprintf(out, "requeued %s: %v\n", link, refusal.Unreachable)
			queue = append(queue, link)
			time.Sleep(10 * time.Millisecond)
		case errors.Is(err, client.ErrNotSent):
			fmt.Fprintf(out, "refused  %v\n", err)
		case err != nil:
			return err
		default:
			resp.Body.Close()
			fmt.Fprintf(out, "sent     %s gave %d\n", link, resp.StatusCode)
		}
	}
	return nil
}
