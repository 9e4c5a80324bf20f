package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// serve shows the web to a browser until ctx ends. Browsers know that a name that ends in
// .localhost is this machine: http://rules.example is http://rules.example.localhost:PORT.
func serve(ctx context.Context, out io.Writer, web *site.Web) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://localhost:%s/ has the list of sites. Ctrl-C ends.\n", port)
	server := &http.Server{Handler: inBrowser(web, ".localhost:"+port), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// inBrowser answers for each site under its name and suffix, and rewrites links to match.
func inBrowser(web *site.Web, suffix string) http.Handler {
	var names []string
	for _, n := range web.Counts() {
		names = append(names, "http://"+n.Host+"/", "http://"+n.Host+suffix+"/")
	}
	names = append(names, "http://müller.example/", "http://xn--mller-kva.example"+suffix+"/")
	rewrite := strings.NewReplacer(names...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, named := strings.CutSuffix(r.Host, suffix)
		if !named {
			index(w, web, suffix)
			return
		}
		answer := httptest.NewRecorder()
		inside := r.Clone(r.Context())
		inside.Host = host
		web.ServeHTTP(answer, inside)
		for name, values := range answer.Header() {
			for _, v := range values {
				w.Header().Add(name, rewrite.Replace(v))
			}
		}
		w.WriteHeader(answer.Code)
		io.WriteString(w, rewrite.Replace(answer.Body.String()))
	})
}

func index(w http.ResponseWriter, web *site.Web, suffix string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, "<!DOCTYPE html><title>the web of the crawl example</title>\n<ul>\n")
	for _, n := range web.Counts() {
		fmt.Fprintf(w, "<li><a href=%q>%s</a> (<a href=%q>robots.txt</a>): %s\n",
			"http://"+n.Host+suffix+"/", n.Host, "http://"+n.Host+suffix+"/robots.txt", html.EscapeString(n.Shows))
	}
	io.WriteString(w, "</ul>\n")
}
