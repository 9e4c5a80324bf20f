// Chromedp puts the gate between a browser and the web: the browser holds each request, of a page,
// a redirect, an image or a script, and Decide says which go on.
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
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
)

const agent = "ExampleBot/1.0 (+https://example.com/bot)"

func main() {
	err := run(context.Background(), os.Stdout)
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Println("this example needs chromium:", err)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	web := site.Serve(hosts()...)
	defer web.Close()
	gate := &client.Transport{Base: web.Transport(), UserAgent: agent} // leave Base out to use the network
	defer gate.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tab, stop, err := open(ctx, web.Addr())
	if err != nil {
		return err
	}
	defer stop()

	g := &guard{gate: gate, out: out}
	err = chromedp.Listen(tab, func(event any) {
		if held, ok := event.(*fetch.EventRequestPaused); ok {
			go g.decide(tab, held) // the listener itself must not wait
		}
	})
	if err != nil {
		return err
	}
	if _, err := chromedp.Call(tab, fetch.Enable, fetch.EnableParams{}); err != nil {
		return err
	}
	for _, page := range []string{"http://www.example/", "http://www.example/private/", "http://www.example/moved"} {
		if err := chromedp.Do(tab, chromedp.Navigate(page)); err != nil {
			g.printf("no page  %s: %v\n", page, err)
			continue
		}
		title, err := chromedp.Run(tab, chromedp.Title())
		if err != nil {
			return err
		}
		g.printf("page     %s is %q\n", page, title)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	web.Report(out)
	return nil
}

// guard decides on what the browser holds.
type guard struct {
	gate *client.Transport
	mu   sync.Mutex // guards out
	out  io.Writer
}

func (g *guard) printf(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fmt.Fprintf(g.out, format, args...)
}

func (g *guard) decide(tab context.Context, held *fetch.EventRequestPaused) {
	u, err := url.Parse(held.Request.URL)
	if err != nil {
		return // it stays where it is
	}
	a, err := g.gate.Decide(tab, u)
	if err == nil && a.Allowed {
		_, _ = chromedp.Call(tab, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: held.RequestID})
		return
	}
	if err == nil {
		g.printf("refused  %s: %v\n", u, a.Decision)
	}
	why := fetch.FailRequestParams{RequestID: held.RequestID, ErrorReason: network.ErrorReasonBlockedByClient}
	_, _ = chromedp.Call(tab, fetch.FailRequest, why)
}

// open starts a browser in which each name leads to addr.
func open(ctx context.Context, addr string) (tab context.Context, stop func(), err error) {
	binary, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.UserAgent(agent),
		chromedp.Flag("host-resolver-rules", "MAP * "+addr)) // leave it out to use the network
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	tab, leave := chromedp.NewContext(ctx)
	return tab, func() { _ = chromedp.Cancel(tab); leave(); end() }, chromedp.Do(tab)
}

// hosts is a site with a private part, which its start page shows an image of, and a second one that it redirects to.
func hosts() []site.Host {
	return []site.Host{
		{
			Name:   "www.example",
			Robots: site.Text("User-agent: ExampleBot", "Disallow: /private/"),
			Pages: map[string]string{
				"/": `<title>Welcome</title><link rel="icon" href="data:,"><img src="/private/face.png"><script src="/code.js"></script>`, "/code.js": "",
			},
			Other: http.RedirectHandler("http://other.example/archive/1", http.StatusFound).ServeHTTP, // of /moved
		},
		{Name: "other.example", Robots: site.Text("# the old pages", "User-agent: *", "Disallow: /archive/")},
	}
}
