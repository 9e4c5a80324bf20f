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
	rules = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.5\n"
)

// paths are what each site has. The first page links to the others, and "/gone" is a 404.
var paths = func() []string {
	all := []string{"/", "/gone", "/private/1", "/private/2"}
	for i := range 12 {
		all = append(all, fmt.Sprint("/", i+1))
	}
	return all
}()

// web is many sites at one address. It remembers who was asked for what, and when.
type web struct {
	server *httptest.Server

	mu    sync.Mutex // guards what follows
	sites map[string]*site
}

type site struct {
	fetches map[string]int // by path, robots.txt included
	last    time.Time      // the latest request for a page
	by      string         // and the worker that made it
	gap     time.Duration  // the least between two of one worker
	early   int            // pages that came sooner after another worker's
}

func newWeb(n int) *web {
	w := &web{sites: map[string]*site{}}
	for i := range n {
		w.sites[fmt.Sprintf("site%d.example", i)] = &site{fetches: map[string]int{}, gap: time.Hour}
	}
	w.server = httptest.NewServer(w)
	return w
}

// homes returns the URL of each site's first page.
func (w *web) homes() (urls []string) {
	for name := range w.sites {
		urls = append(urls, "http://"+name+"/")
	}
	slices.Sort(urls)
	return urls
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch known := w.note(r); {
	case !known:
		http.Error(rw, "no such site", http.StatusMisdirectedRequest)
	case r.URL.Path == "/robots.txt":
		io.WriteString(rw, rules)
	case r.URL.Path == "/gone" || !slices.Contains(paths, r.URL.Path):
		http.NotFound(rw, r)
	case r.URL.Path == "/":
		for _, path := range paths {
			fmt.Fprintf(rw, "<a href=%q>%s</a>\n", path, path)
		}
	default:
		fmt.Fprintln(rw, "a page")
	}
}

func (w *web) note(r *http.Request) (known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sites[r.Host]
	if s == nil {
		return false
	}
	if r.URL.Path != "/robots.txt" {
		now, by := time.Now(), r.UserAgent()
		switch gap := now.Sub(s.last); {
		case s.by == by:
			s.gap = min(s.gap, gap)
		case s.by != "" && gap < delay-time.Millisecond:
			s.early++
		}
		s.last, s.by = now, by
	}
	s.fetches[r.URL.Path]++
	return true
}

// proof prints what the sites saw. What they should not have seen is an error.
func (w *web) proof(out io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var wanted, fetched, again, forbidden, early int
	gap, slowest := time.Hour, ""
	for name, s := range w.sites {
		early += s.early
		if s.gap < gap {
			gap, slowest = s.gap, name
		}
		for _, path := range paths {
			switch n := s.fetches[path]; {
			case strings.HasPrefix(path, "/private/"):
				forbidden += n
			case n > 0:
				wanted, fetched, again = wanted+1, fetched+1, again+n-1
			default:
				wanted++
			}
		}
	}
	var errs []error
	claim := func(holds bool, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if fmt.Fprintln(out, " ", text); !holds {
			errs = append(errs, errors.New("not as it should be: "+text))
		}
	}
	fmt.Fprintln(out, "the sites saw:")
	claim(fetched == wanted, "%d of %d pages that are allowed; %d of them again, because their worker had died",
		fetched, wanted, again)
	claim(forbidden == 0, "%d requests for a page that is not", forbidden)
	claim(gap >= delay-time.Millisecond, "%.3f s between two pages of a worker at least (%s); they ask for %.1f s",
		gap.Seconds(), slowest, delay.Seconds())
	claim(early <= fetched/20, "%d pages sooner after another worker's, because a part had just got another worker", early)
	return errors.Join(errs...)
}
