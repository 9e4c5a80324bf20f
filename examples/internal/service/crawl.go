package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// Main runs an example until it is interrupted. It says what the example needs if that is not installed.
func Main(needs string, run func(ctx context.Context, out, problems io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, os.Stdout, os.Stderr); {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Printf("this example needs %s, and go to build robots: %v\n", needs, err)
	case err != nil:
		log.Fatal(err)
	}
}

// Crawl runs robots serve and a crawler that asks it, and says what the sites saw of that. The crawler is given an empty
// folder, the URL of robots serve, and the address of the web: it has no names of its own, and is reached as a proxy
// would be.
func Crawl(ctx context.Context, out, problems io.Writer, crawler func(ctx context.Context, dir, at, web string) (*exec.Cmd, error)) error {
	dir, err := os.MkdirTemp("", "crawl")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	seen := new(seen)
	web := site.Serve(hosts(seen)...)
	defer web.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // the programs are built and installed first
	defer cancel()
	at, stop, err := Start(ctx, dir, web.Addr(), problems)
	if err != nil {
		return err
	}
	defer stop()
	p, err := crawler(ctx, dir, at, web.Addr())
	if err != nil {
		return err
	}
	p.Stderr = problems
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		failed <- Follow(p, lines)
	}()
	for line := range lines {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "the sites saw %s; the least delay at www.example was %v of %v\n",
		strings.Join(seen.paths, " "), seen.least.Truncate(time.Millisecond), delay)
	return <-failed
}

// delay is what www.example asks for.
const delay = 200 * time.Millisecond

// seen is what the sites see.
type seen struct {
	mu    sync.Mutex
	paths []string
	last  time.Time
	least time.Duration
}

func (s *seen) watch(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.paths = append(s.paths, r.Host+r.URL.Path)
		if gap := time.Since(s.last); r.Host == "www.example" && (s.least == 0 || gap < s.least) {
			s.least = gap
		}
		s.mu.Unlock()
		h(w, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Host == "www.example" {
			s.last = time.Now()
		}
	}
}

// hosts is a site with one private part, a second one that it redirects to, and one that is down.
func hosts(s *seen) []site.Host {
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			io.WriteString(w, site.Links("/public", "/private/", "/moved", "/gone"))
		case "/public":
			io.WriteString(w, "<p>welcome</p>")
		case "/moved":
			http.Redirect(w, r, "http://other.example/archive/1", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}
	return []site.Host{
		{
			Name:   "www.example",
			Robots: s.watch(site.Text("User-agent: ExampleBot", "Disallow: /private/", "Crawl-delay: 0.2")),
			Other:  s.watch(page),
		},
		{Name: "other.example", Robots: s.watch(site.Text("User-agent: *", "Disallow: /archive/")), Other: s.watch(page)},
		{Name: "down.example", Robots: site.Status(http.StatusServiceUnavailable), Other: s.watch(page)},
	}
}
