package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	delay = 500 * time.Millisecond // that the sites ask for

	noRobots = "" // 404: all is allowed
	closed   = "User-agent: *\nDisallow: /\n"
	usual    = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.5\n"
)

// paths are what each site has: the first links to the others.
var paths = []string{"/", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/private/1", "/private/2"}

// web is many sites at one address. It remembers who was asked for what, and when.
type web struct {
	server *httptest.Server

	mu    sync.Mutex // guards what follows
	sites map[string]*site
}

type site struct {
	robots  string
	fetches map[string]int // by path, robots.txt included
	last    time.Time      // the latest request
	gap     time.Duration  // the least between two requests
}

func newWeb(n int) *web {
	w := &web{sites: map[string]*site{}}
	for i := range n {
		s := &site{robots: usual, fetches: map[string]int{}, gap: time.Hour}
		switch i % 10 {
		case 3:
			s.robots = noRobots
		case 7:
			s.robots = closed
		}
		w.sites[fmt.Sprintf("site%d.example", i)] = s
	}
	w.server = httptest.NewServer(w)
	return w
}

func (w *web) Close() { w.server.Close() }

func (w *web) Address() string { return w.server.Listener.Addr().String() }

// homes returns each site and the URL of its first page.
func (w *web) homes() (links []any) {
	for name := range w.sites {
		links = append(links, name, "http://"+name+"/")
	}
	return links
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s := w.note(r)
	switch {
	case s == nil:
		http.Error(rw, "no such site", http.StatusMisdirectedRequest)
	case r.URL.Path == "/robots.txt" && s.robots != noRobots:
		io.WriteString(rw, s.robots)
	case r.URL.Path == "/":
		for _, path := range paths {
			fmt.Fprintf(rw, "<a href=%q>%s</a>\n", path, path)
		}
	case slices.Contains(paths, r.URL.Path):
		fmt.Fprintln(rw, "a page")
	default:
		http.NotFound(rw, r)
	}
}

func (w *web) note(r *http.Request) *site {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sites[r.Host]
	if s == nil {
		return nil
	}
	now := time.Now()
	if !s.last.IsZero() {
		s.gap = min(s.gap, now.Sub(s.last))
	}
	s.last = now
	s.fetches[r.URL.Path]++
	return s
}

// allowed reports whether a path may be fetched: the rules again, in words of our own.
func (s *site) allowed(path string) bool {
	return s.robots == noRobots || s.robots == usual && !strings.HasPrefix(path, "/private/")
}

// account is what all sites saw.
type account struct {
	met, robots     int           // sites that were asked, requests for a robots.txt
	twice           int           // sites whose robots.txt was asked for more than once
	wanted, fetched int           // pages that may be fetched, and were
	again           int           // requests for pages that had been fetched before
	forbidden       int           // requests for pages that may not
	gap             time.Duration // the least at any site
}

func (w *web) account() account {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := account{gap: time.Hour}
	for _, s := range w.sites {
		a.gap = min(a.gap, s.gap)
		n := s.fetches["/robots.txt"]
		a.robots += n
		if n > 0 {
			a.met++
		}
		if n > 1 {
			a.twice++
		}
		for _, path := range paths {
			n := s.fetches[path]
			switch {
			case !s.allowed(path):
				a.forbidden += n
				continue
			case n > 0:
				a.fetched++
				a.again += n - 1
			}
			a.wanted++
		}
	}
	return a
}

// proof prints what the sites saw. What they should not have seen is an error.
func (w *web) proof(out io.Writer) error {
	a := w.account()
	var errs []error
	claim := func(holds bool, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if fmt.Fprintln(out, " ", text); !holds {
			errs = append(errs, errors.New("not as it should be: "+text))
		}
	}
	fmt.Fprintln(out, "the sites saw:")
	claim(a.fetched == a.wanted, "%d of %d pages that are allowed; %d of them again, because their worker had died",
		a.fetched, a.wanted, a.again)
	claim(a.forbidden == 0, "%d requests for a page that is not", a.forbidden)
	claim(a.gap >= delay-time.Millisecond, "%.3f s between two requests at least; they ask for %.1f s",
		a.gap.Seconds(), delay.Seconds())
	claim(a.met == len(w.sites) && a.twice == 0, "%d requests for the robots.txt of %d sites", a.robots, a.met)
	return errors.Join(errs...)
}
