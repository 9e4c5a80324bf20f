package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/client"
)

// unhurriedSite is a site in this process that wants a pause between requests.
func unhurriedSite() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nCrawl-delay: 0.05\nDisallow: /private\n")
		}
	}))
}

// A crawler takes a turn, and sends on it: the time-out of the client is about the site alone, and what is forbidden
// costs no turn.
func ExamplePacer() {
	site := unhurriedSite()
	defer site.Close()

	transport := &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)", Pacer: &client.Pacer{}}
	httpClient := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	visit := func(ctx context.Context, link string) error {
		u, err := url.Parse(link)
		if err != nil {
			return err
		}
		turn, err := transport.Turn(ctx, u)
		if err != nil {
			return err
		}
		defer turn.End()
		req, err := http.NewRequestWithContext(turn.Context(ctx), http.MethodGet, link, nil)
		if err != nil {
			return err
		}
		resp, err := httpClient.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	for _, path := range []string{"/a", "/private", "/b"} {
		err := visit(context.Background(), site.URL+path)
		fmt.Println(path, errors.Is(err, client.ErrNotSent))
	}
	// Output:
	// /a false
	// /private true
	// /b false
}

// A worker of a queue waits for no site: it puts a URL back until its turn can come, and takes what is due. A redirect is
// a URL of its own.
func ExampleTransport_Try() {
	one, two := unhurriedSite(), unhurriedSite()
	defer one.Close()
	defer two.Close()

	transport := &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)", Pacer: &client.Pacer{}}
	httpClient := &http.Client{
		Transport:     transport,
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx, pages := context.Background(), 0
	type task struct {
		url *url.URL
		due time.Time
	}
	var queue []task // of a real one, what is due comes first
	for _, link := range []string{one.URL + "/1", one.URL + "/private", one.URL + "/2", two.URL + "/3"} {
		u, err := url.Parse(link)
		if err != nil {
			fmt.Println(err)
			return
		}
		queue = append(queue, task{url: u})
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		time.Sleep(time.Until(next.due))
		turn, err := transport.Try(ctx, next.url)
		if late, ok := errors.AsType[*client.LateError](err); ok {
			queue = append(queue, task{next.url, late.At})
			continue
		}
		if err != nil { // a refusal: drop it, but for one of policy.ReasonUnreachable, which has an Until
			continue
		}
		req, err := http.NewRequestWithContext(turn.Context(ctx), http.MethodGet, next.url.String(), nil)
		if err == nil {
			var resp *http.Response
			if resp, err = httpClient.Do(req); err == nil {
				resp.Body.Close() // after the page is read, and a Location put into the queue
				pages++
			}
		}
		turn.End()
	}
	fmt.Println("pages:", pages)
	// Output: pages: 3
}
