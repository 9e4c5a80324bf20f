package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// exampleSite stands for a site on the network.
func exampleSite() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\n\nUser-agent: NewsBot\nAllow: /\n")
			return
		}
		fmt.Fprint(w, "a page")
	}))
}

func ExampleTransport() {
	site := exampleSite()
	defer site.Close()

	c := &http.Client{Transport: &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)"}}
	for _, path := range []string{"/public", "/private/letters"} {
		resp, err := c.Get(site.URL + path)
		if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
			fmt.Println("not sent:", path, "by", refusal.Rule)
			continue
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("sent: %s gave %q\n", path, body)
	}
	// Output:
	// sent: /public gave "a page"
	// not sent: /private/letters by Disallow: /private
}

// A crawler that collects pages to train a model with says so, and is not let through where
// robots.txt disallows that use.
func ExampleTransport_uses() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nAllow: /\nContent-Usage: /essays/ train-ai=n\n")
			return
		}
		fmt.Fprint(w, "a page")
	}))
	defer site.Close()

	c := &http.Client{Transport: &client.Transport{Token: "ExampleBot", Uses: []string{"train-ai"}}}
	for _, path := range []string{"/news", "/essays/1"} {
		resp, err := c.Get(site.URL + path)
		if refusal, ok := errors.AsType[*client.DisallowedError](err); ok && refusal.Reason == policy.ReasonUse {
			fmt.Println("not sent:", path, "by", refusal.By)
			continue
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		resp.Body.Close()
		fmt.Println("sent:", path)
	}
	// Output:
	// sent: /news
	// not sent: /essays/1 by robots.txt line 3, Content-Usage: "/essays/ train-ai=n"
}

// A shop gives its crawler a key. It goes to that shop alone, for pages and for robots.txt.
func ExampleTransport_key() {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("X-Crawler-Key"))
	}))
	defer shop.Close()

	c := &http.Client{Transport: &client.Transport{
		Token: "ExampleBot",
		Sign: func(req *http.Request) error { // called for each hop: the URL tells to whom
			if req.URL.Scheme+"://"+req.URL.Host == shop.URL {
				req.Header.Set("X-Crawler-Key", "abc")
			}
			return nil
		},
	}}
	resp, err := c.Get(shop.URL + "/a")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	// Output:
	// /robots.txt abc
	// /a abc
}

// A page is dropped for what it says about itself.
func ExamplePageRules() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Robots-Tag", "noarchive")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<meta name="robots" content="nofollow"><p>A page`)
	}))
	defer site.Close()
	resp, err := http.Get(site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	body := client.PageRules(resp)
	io.Copy(io.Discard, resp.Body) // what the crawler does with the page
	resp.Body.Close()
	effect := body.Rules().For(policy.RFC9309, "ExampleBot")
	fmt.Println("keep a copy:", !effect.NoArchive, "follow links:", effect.MayFollow(""))
	// Output: keep a copy: false follow links: false
}

// Decide asks what RoundTrip would do, without sending the request.
func ExampleTransport_Decide() {
	site := exampleSite()
	defer site.Close()

	gate := &client.Transport{Token: "ExampleBot"}
	u, err := url.Parse(site.URL + "/private/letters")
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := gate.Decide(context.Background(), u)
	fmt.Println(answer, err)
	// Output: "ExampleBot": disallowed by line 2 of robots.txt: Disallow: /private (user-agent: *) <nil>
}

// Lookup gives the policy itself, for what else the file says.
func ExampleTransport_Lookup() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "User-agent: *\nCrawl-delay: 2.5\n\nSitemap: https://example.com/sitemap.xml\n")
	}))
	defer site.Close()

	gate := &client.Transport{UserAgent: "ExampleBot/1.0"}
	u, err := url.Parse(site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := gate.Lookup(context.Background(), u)
	if err != nil {
		fmt.Println(err)
		return
	}
	delay, ok := p.Group("ExampleBot").CrawlDelay()
	fmt.Println(delay, ok)
	for sitemap := range p.Sitemaps() {
		fmt.Println(sitemap)
	}
	// Output:
	// 2.5s true
	// https://example.com/sitemap.xml
}

// In a test, Base is the client of an httptest.Server. The handler is asked for
// robots.txt as well. One that fails there is asked three times: a Fetcher without
// retries spares the test the wait.
func ExampleTransport_httptest() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	c := &http.Client{Transport: &client.Transport{
		Base:    server.Client().Transport,
		Fetcher: &fetch.Fetcher{Retries: -1},
	}}
	_, err := c.Get(server.URL + "/page")
	refusal, ok := errors.AsType[*client.DisallowedError](err)
	fmt.Println(ok, refusal.Reason)
	// Output: true robots.txt is unreachable
}

// bearer adds credentials, as oauth2.Transport does.
type bearer struct {
	token string
	base  http.RoundTripper
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.base.RoundTrip(req)
}

// What adds credentials stands above the gate: pages are asked for with them, and
// robots.txt without.
func ExampleTransport_stack() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("%s %q\n", r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer site.Close()

	gate := &client.Transport{UserAgent: "ExampleBot/1.0"}
	c := &http.Client{Transport: bearer{"secret", gate}} // or &oauth2.Transport{Source: …, Base: gate}
	if resp, err := c.Get(site.URL + "/page"); err == nil {
		resp.Body.Close()
	}
	// Output:
	// /robots.txt ""
	// /page "Bearer secret"
}

// kept is a cache.Store in memory. dirstore and redisstore keep what they are given.
type kept struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (k *kept) Get(_ context.Context, key string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, ok := k.values[key]; ok {
		return v, nil
	}
	return nil, cache.ErrMiss
}

func (k *kept) Put(_ context.Context, key string, value []byte, _ time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[key] = value
	return nil
}

// A Cache with a Store outlives the process. It is closed after its Transports, and
// writes then what it still owes.
func ExampleTransport_store() {
	site := exampleSite()
	defer site.Close()
	u, err := url.Parse(site.URL + "/private")
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	store := &kept{values: map[string][]byte{}}
	for _, run := range []string{"first", "second"} {
		c := &cache.Cache{Store: store}
		gate := &client.Transport{UserAgent: "ExampleBot/1.0", Cache: c, Trace: &client.Trace{
			Fetched: func(context.Context, fetch.Origin, *fetch.Result, time.Duration, error) {
				fmt.Println("robots.txt was fetched")
			},
		}}
		answer, err := gate.Decide(ctx, u)
		fmt.Printf("%s run: %v %v\n", run, answer.Allowed, err)
		if err := errors.Join(gate.Shutdown(ctx), c.Shutdown(ctx)); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// robots.txt was fetched
	// first run: false <nil>
	// second run: false <nil>
}

// A crawler drops what a rule forbids, and asks again about what it could not find out. A context that ended is neither.
func ExampleDisallowedError() {
	site := exampleSite()
	gone := exampleSite()
	defer site.Close()
	gone.Close()

	base := &http.Transport{}
	defer base.CloseIdleConnections()
	c := &http.Client{Transport: &client.Transport{Base: base, Fetcher: &fetch.Fetcher{Retries: -1}}}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for _, link := range []struct {
		ctx context.Context
		url string
	}{
		{context.Background(), site.URL + "/private"},
		{context.Background(), gone.URL + "/page"},
		{stopped, site.URL + "/page"},
	} {
		req, err := http.NewRequestWithContext(link.ctx, http.MethodGet, link.url, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = c.Do(req)
		refusal, ok := errors.AsType[*client.DisallowedError](err)
		switch {
		case !ok && link.ctx.Err() != nil:
			fmt.Println("stopped before an answer:", req.URL.Path)
		case !ok:
			fmt.Println(err)
		case refusal.Reason == policy.ReasonUnreachable:
			fmt.Println("ask again later:", refusal.URL.Path)
		default:
			fmt.Println("never ask again:", refusal.URL.Path)
		}
	}
	// Output:
	// never ask again: /private
	// ask again later: /page
	// stopped before an answer: /page
}

// DecideWith rules without a network, on a policy that is at hand. A link with dot segments is resolved first.
func ExampleDecideWith() {
	p := policy.Parse([]byte("User-agent: *\nDisallow: /private\n"))
	page, err := url.Parse("https://example.com/public/page")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, link := range []string{"other", "../private"} {
		u, err := page.Parse(link) // resolves
		if err != nil {
			fmt.Println(err)
			return
		}
		a, err := client.DecideWith(p, "ExampleBot", u)
		fmt.Println(u.Path, a.Allowed, err)
	}
	// Output:
	// /public/other true <nil>
	// /private false <nil>
}

// Trace writes each decision to a log.
func ExampleTrace() {
	site := exampleSite()
	defer site.Close()

	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // for the same output each time
			}
			return a
		},
	}))
	gate := &client.Transport{UserAgent: "ExampleBot/1.0", Trace: &client.Trace{
		Fetched: func(_ context.Context, _ fetch.Origin, r *fetch.Result, _ time.Duration, err error) {
			if err != nil {
				log.Warn("robots.txt was not asked for", "error", err)
				return
			}
			log.Info("robots.txt", "result", r)
		},
		Decided: func(_ context.Context, u *url.URL, a client.Answer, _ time.Duration, err error) {
			log.Info("decided", "target", u.RequestURI(), "answer", a, "error", err)
		},
	}}
	resp, err := (&http.Client{Transport: gate}).Get(site.URL + "/public?q=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	// Output:
	// level=INFO msg=robots.txt result="status 200 in RFC9309: rules in 63 bytes"
	// level=INFO msg=decided target="/public?q=1" answer="\"ExampleBot\": allowed: no rule matches (user-agent: *)" error=<nil>
}

// WithToken decides for another product token, in a program that runs several crawlers.
func ExampleWithToken() {
	site := exampleSite()
	defer site.Close()

	gate := &client.Transport{UserAgent: "ExampleBot/1.0"}
	u, err := url.Parse(site.URL + "/private/letters")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, ctx := range []context.Context{ctx, client.WithToken(ctx, "NewsBot")} {
		answer, err := gate.Decide(ctx, u)
		fmt.Println(answer.Token, answer.Allowed, err)
	}
	// Output:
	// ExampleBot false <nil>
	// NewsBot true <nil>
}

// WithoutRobots is for what a person asked for.
func ExampleWithoutRobots() {
	site := exampleSite()
	defer site.Close()

	c := &http.Client{Transport: &client.Transport{}}
	req, err := http.NewRequestWithContext(client.WithoutRobots(context.Background()), http.MethodGet, site.URL+"/private/letters", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := c.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// Decided counts answers by their reason, as a service does for its metrics.
func ExampleTrace_decided() {
	site := exampleSite()
	defer site.Close()

	answers := map[policy.Reason]int{} // guard it, if requests are made concurrently
	c := &http.Client{Transport: &client.Transport{UserAgent: "ExampleBot/1.0", Trace: &client.Trace{
		Decided: func(_ context.Context, _ *url.URL, a client.Answer, _ time.Duration, _ error) { answers[a.Reason]++ },
	}}}
	for _, path := range []string{"/public", "/private/a", "/private/b"} {
		if resp, err := c.Get(site.URL + path); err == nil {
			resp.Body.Close()
		}
	}
	fmt.Println("no rule:", answers[policy.ReasonNoRule], "rule:", answers[policy.ReasonRule])
	// Output: no rule: 1 rule: 2
}

// Fetched says why a site is unreachable.
func ExampleTrace_fetched() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer site.Close()

	gate := &client.Transport{
		Fetcher: &fetch.Fetcher{Retries: -1},
		Trace: &client.Trace{Fetched: func(_ context.Context, _ fetch.Origin, r *fetch.Result, _ time.Duration, err error) {
			if err != nil {
				fmt.Println("given up:", err)
				return
			}
			fmt.Println(r.StatusCode, r.Policy.Reason(), "and asks for", r.RetryAfter)
		}},
	}
	if _, err := (&http.Client{Transport: gate}).Get(site.URL); err == nil {
		fmt.Println("sent")
	}
	// Output: 503 robots.txt is unreachable and asks for 2m0s
}

// Waited tells of each request that the Pacer held back. The first page waits too: reading
// robots.txt was a request.
func ExampleTrace_waited() {
	site := exampleSite()
	defer site.Close()

	c := &http.Client{Transport: &client.Transport{
		Pacer: &client.Pacer{Delay: 250 * time.Millisecond},
		Trace: &client.Trace{Waited: func(_ context.Context, u *url.URL, took time.Duration, err error) {
			fmt.Println(u.Path, took > 0, err)
		}},
	}}
	if resp, err := c.Get(site.URL + "/public"); err == nil {
		resp.Body.Close()
	}
	// Output: /public true <nil>
}
