package client_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// pagesOf is a Base with no robots.txt and the pages that the function gives.
func pagesOf(page roundtrip.Func) roundtrip.Func {
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/robots.txt" {
			return answer(404, "", "no such file"), nil
		}
		return page(req)
	}
}

// siteOf is a Base with a robots.txt and empty pages.
func siteOf(robots string) roundtrip.Func {
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/robots.txt" {
			return answer(200, "", robots), nil
		}
		return ok(req)
	}
}

// answer is a response; retryAfter "" for none.
func answer(status int, retryAfter, body string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	if retryAfter != "" {
		res.Header.Set("Retry-After", retryAfter)
	}
	if body != "" {
		res.Body = io.NopCloser(strings.NewReader(body))
	}
	return res
}

// hang is a site that says nothing.
func hang(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

func ok(*http.Request) (*http.Response, error) { return answer(200, "", ""), nil }

func paced(p *client.Pacer, base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Pacer: p}}
}

// get asks for a page and says how long that took until the header came.
func get(t *testing.T, c *http.Client, url string) (*http.Response, time.Duration) {
	t.Helper()
	start := time.Now()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return res, time.Since(start)
}

func parse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}
