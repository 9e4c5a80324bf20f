// Opentelemetry turns what the gate reports through its Trace into spans.
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

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

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
			Pages:  map[string]string{"/public": "hello"}},
		site.Host{Name: "broken.example", Robots: site.Status(http.StatusInternalServerError)},
	)
	defer web.Close()
	spans := tracetest.NewInMemoryExporter() // stands for the exporter of your choice
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tracer := provider.Tracer("robotsgate")
	gate := &client.Transport{
		Base:      web.Transport(), // leave it out to use the network
		UserAgent: agent,
		Fetcher:   &fetch.Fetcher{Retries: -1}, // leave it out to ask a broken server again
		Pacer:     &client.Pacer{Delay: 500 * time.Millisecond},
		Trace:     trace(tracer),
	}
	c := &http.Client{Transport: gate}

	for _, link := range []string{"http://www.example/public", "http://www.example/private", "http://broken.example/"} {
		if err := get(out, c, tracer, link); err != nil {
			return err
		}
	}
	if err := gate.Shutdown(context.Background()); err != nil { // also waits for the hooks
		return err
	}
	names := map[oteltrace.SpanID]string{}
	for _, s := range spans.GetSpans() {
		names[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range spans.GetSpans() {
		fmt.Fprintf(out, "span %q below %q: %v\n", s.Name, names[s.Parent.SpanID()], s.Status.Code)
		for _, a := range s.Attributes {
			fmt.Fprintf(out, "  %s=%s\n", a.Key, a.Value.String())
		}
	}
	return provider.Shutdown(context.Background())
}

func get(out io.Writer, c *http.Client, tracer oteltrace.Tracer, link string) error {
	ctx, span := tracer.Start(context.Background(), "get "+link)
	defer span.End()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		fmt.Fprintf(out, "refused  %s: %v\n", link, refusal.Decision)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "sent     %s gave %d\n", link, resp.StatusCode)
	return resp.Body.Close()
}
