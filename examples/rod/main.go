// Rod lets the gate itself send what a browser asks for: each request, of a page, a redirect, an image or a script, goes
// through an http.Client whose Transport it is. So it keeps the pace of each site, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/go-rod/rod/lib/proto"

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
	gate := &client.Transport{
		Base: web.Transport(), UserAgent: agent, // leave Base out to use the network
		Pacer: &client.Pacer{Delay: 100 * time.Millisecond},
	}
	defer gate.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	browser, stop, err := open(ctx)
	if err != nil {
		return err
	}
	defer stop()

	var mu sync.Mutex // guards out
	c := &http.Client{
		Transport: gate,
		// The browser follows redirects itself, and asks for each hop.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	router := browser.HijackRequests()
	err = router.Add("*", "", func(h *rod.Hijack) {
		h.Request.Req().Header.Set("User-Agent", agent)
		err := h.LoadResponse(c, true)
		if err == nil {
			return
		}
		if no, ok := errors.AsType[*client.DisallowedError](err); ok {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "refused  %s: %v\n", h.Request.URL(), no.Decision)
		}
		h.Response.Fail(proto.NetworkErrorReasonBlockedByClient)
	})
	if err != nil {
		return err
	}
	go router.Run()
	defer func() { _ = router.Stop() }()

	tab, err := browser.Page(proto.TargetCreateTarget{})
	if err != nil {
		return err
	}
	for _, page := range []string{"http://www.example/", "http://www.example/private/", "http://www.example/moved"} {
		title, err := visit(tab, page)
		mu.Lock()
		if err != nil {
			fmt.Fprintf(out, "no page  %s: %v\n", page, err)
		} else {
			fmt.Fprintf(out, "page     %s is %q\n", page, title)
		}
		mu.Unlock()
	}
	for _, n := range web.Counts() {
		fmt.Fprintf(out, "%s saw %d pages and %d robots.txt asked for\n", n.Host, n.Pages, n.Robots)
	}
	return nil
}

func visit(tab *rod.Page, page string) (title string, err error) {
	if err := tab.Navigate(page); err != nil {
		return "", err
	}
	if err := tab.WaitLoad(); err != nil {
		return "", err
	}
	info, err := tab.Info()
	if err != nil {
		return "", err
	}
	return info.Title, nil
}

// open starts a browser.
func open(ctx context.Context) (*rod.Browser, func(), error) {
	binary, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "rod")
	if err != nil {
		return nil, nil, err
	}
	l := launcher.New().Context(ctx).Bin(binary).NoSandbox(os.Getuid() == 0).Leakless(false).UserDataDir(dir)
	at, err := l.Launch()
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	browser := rod.New().Context(ctx).ControlURL(at)
	if err := browser.Connect(); err != nil {
		l.Kill()
		l.Cleanup()
		return nil, nil, err
	}
	return browser, func() {
		if browser.Close() != nil {
			l.Kill()
		}
		l.Cleanup() // when the browser has ended
	}, nil
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
