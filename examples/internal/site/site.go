// Package site is the small web that the examples run against: several origins,
// served from one listener on loopback, so that no example needs a network.
package site

import (
	"context"
	"fmt"
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
	Shows  string            // what it is there to show
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

// Recovering answers 503 to the first n requests, then as next does.
func Recovering(n int, next http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n--
		down := n >= 0
		mu.Unlock()
		if down {
			Status(http.StatusServiceUnavailable)(w, r)
			return
		}
		next(w, r)
	}
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

	mu    sync.Mutex // guards seen
	seen  map[string]*Count
	hosts map[string]Host
}

// Count is what one host saw.
type Count struct {
	Host, Shows   string
	Pages, Robots int

	last  time.Time                // when a request came
	apart map[string]time.Duration // by path: how long after the one before
}

// Serve starts the web.
func Serve(hosts ...Host) *Web {
	w := &Web{seen: map[string]*Count{}, hosts: map[string]Host{}}
	for _, h := range hosts {
		w.hosts[h.Name] = h
		w.seen[h.Name] = &Count{Host: h.Name, Shows: h.Shows, apart: map[string]time.Duration{}}
	}
	w.server = httptest.NewServer(w)
	return w
}

// Close stops the web.
func (w *Web) Close() { w.server.Close() }

// Addr is the address of the web, for programs that connect by themselves.
func (w *Web) Addr() string { return w.server.Listener.Addr().String() }

// Transport reaches the web: it dials every name to the one listener.
func (w *Web) Transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, w.Addr())
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

// Robots is how often the host was asked for its robots.txt.
func (w *Web) Robots(host string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.seen[host]; c != nil {
		return c.Robots
	}
	return 0
}

// Apart is how long after the one before the last request for a path of the host came.
func (w *Web) Apart(host, path string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.seen[host]; c != nil {
		return c.apart[path]
	}
	return 0
}

func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, ok := w.hosts[r.Host]
	if !ok {
		http.Error(rw, "no such host: "+r.Host, http.StatusMisdirectedRequest)
		return
	}
	isRobots := strings.HasSuffix(r.URL.Path, "robots.txt")
	w.count(host.Name, r.URL.Path, isRobots)
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

func (w *Web) count(host, path string, robots bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, now := w.seen[host], time.Now()
	if !c.last.IsZero() {
		c.apart[path] = now.Sub(c.last)
	}
	c.last = now
	if robots {
		c.Robots++
	} else {
		c.Pages++
	}
}
