// Package site is the small web that the examples run against: several origins,
// served from one listener on loopback, so that no example needs a network.
package site

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Host is one origin of the web: how it answers for robots.txt, and its pages.
type Host struct {
	Name   string            // as the wire names it: lower case, IDNA
	Robots http.HandlerFunc  // nil: 404
	Pages  map[string]string // path to HTML
	Other  http.HandlerFunc  // answers for any other path; nil: 404
}

// Text answers with a robots.txt.
func Text(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, strings.Join(lines, "\n"))
	}
}

// Status answers with a status code and nothing else.
func Status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, http.StatusText(code), code) }
}

// Links is a page with a link to each URL.
func Links(urls ...string) string {
	var b strings.Builder
	for _, u := range urls {
		fmt.Fprintf(&b, "<a href=%q>%s</a>\n", u, u)
	}
	return b.String()
}

// Web serves hosts until Close.
type Web struct {
	server *httptest.Server
	hosts  map[string]Host

	mu   sync.Mutex // guards seen
	seen map[string]*Count
}

// Count is what one host saw.
type Count struct {
	Host          string
	Pages, Robots int           // requests
	Apart         time.Duration // the least between two requests; zero if there were not two

	last time.Time // when a request came
}

// Serve starts the web.
func Serve(hosts ...Host) *Web {
	w := &Web{seen: map[string]*Count{}, hosts: map[string]Host{}}
	for _, h := range hosts {
		w.hosts[h.Name] = h
		w.seen[h.Name] = &Count{Host: h.Name}
	}
	w.server = httptest.NewServer(w)
	return w
}

// Close stops the web.
func (w *Web) Close() { w.server.Close() }

// Addr is the address of the web, for programs that connect by themselves.
func (w *Web) Addr() string { return w.server.Listener.Addr().String() }

// Transport reaches the web.
func (w *Web) Transport() *http.Transport { return Transport(w.Addr()) }

// Transport dials every name to the one address of a web, which may be of another process.
func Transport(addr string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
		},
	}
}

// Counts is what each host saw, by name.
func (w *Web) Counts() []Count {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Count
	for _, c := range w.seen {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Count) int { return strings.Compare(a.Host, b.Host) })
	return all
}

// Report prints what each host saw.
func (w *Web) Report(out io.Writer) {
	for _, c := range w.Counts() {
		fmt.Fprintf(out, "%s saw %d pages and %d robots.txt asked for", c.Host, c.Pages, c.Robots)
		if apart := c.Apart.Truncate(time.Millisecond); apart > 0 {
			fmt.Fprintf(out, ", %v apart at least", apart)
		}
		fmt.Fprintln(out)
	}
}

func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, ok := w.hosts[r.Host]
	if !ok {
		http.Error(rw, "no such host: "+r.Host, http.StatusMisdirectedRequest)
		return
	}
	isRobots := strings.HasSuffix(r.URL.Path, "robots.txt")
	w.count(host.Name, isRobots)
	page, found := host.Pages[r.URL.Path]
	switch {
	case isRobots && host.Robots != nil:
		host.Robots(rw, r)
	case found && !isRobots:
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(rw, page)
	case !isRobots && host.Other != nil:
		host.Other(rw, r)
	default:
		http.NotFound(rw, r)
	}
}

func (w *Web) count(host string, robots bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, now := w.seen[host], time.Now()
	if apart := now.Sub(c.last); !c.last.IsZero() && (c.Apart == 0 || apart < c.Apart) {
		c.Apart = apart
	}
	c.last = now
	if robots {
		c.Robots++
	} else {
		c.Pages++
	}
}
