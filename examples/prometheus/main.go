// Prometheus turns what the gate reports through its Trace into metrics.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

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

func run(out io.Writer) error {
	web := site.Serve(
		site.Host{Name: "www.example",
			Robots: site.Text("User-agent: ExampleBot", "Disallow: /private"),
			Pages:  map[string]string{"/": "hello", "/public": "hello again"}},
		site.Host{Name: "missing.example", Pages: map[string]string{"/": "no robots.txt here"}},
		site.Host{Name: "broken.example", Robots: site.Status(http.StatusInternalServerError)},
	)
	defer web.Close()
	metrics := prometheus.NewRegistry()
	gate := &client.Transport{
		Base:      web.Transport(), // leave it out to use the network
		UserAgent: agent,
		Fetcher:   &fetch.Fetcher{Retries: -1}, // leave it out to ask a broken server again
		Pacer:     &client.Pacer{Delay: 50 * time.Millisecond},
		Trace:     trace(metrics),
	}
	c := &http.Client{Transport: gate}

	for _, link := range []string{
		"http://www.example/", "http://www.example/public", "http://www.example/private",
		"http://missing.example/", "http://broken.example/",
	} {
		resp, err := c.Get(link)
		if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
			fmt.Fprintf(out, "refused  %s: %v\n", link, refusal.Decision)
			continue
		}
		if err != nil {
			return err
		}
		resp.Body.Close()
		fmt.Fprintf(out, "sent     %s gave %d\n", link, resp.StatusCode)
	}

	if err := gate.Shutdown(context.Background()); err != nil { // also waits for the hooks
		return err
	}

	// A program serves the handler; here one scrape is printed.
	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	_, err := io.Copy(out, scrape.Body)
	return err
}
