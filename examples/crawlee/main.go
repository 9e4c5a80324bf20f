// Crawlee runs a crawler whose requests robots serve decides on and paces, each hop of a redirect included:
// crawl.mjs asks it before each request, and follows redirects itself.
package main

import (
	"context"
	"embed"
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

	"github.com/robotsgate/robotsgate/examples/internal/service"
	"github.com/robotsgate/robotsgate/examples/internal/site"
)

//go:embed crawl.mjs package.json
var program embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, os.Stderr)
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Println("this example needs node and npm, and go to build robots:", err)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run starts robots serve and the spider, and says what the sites saw of it.
func run(ctx context.Context, out, problems io.Writer) error {
	node, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "crawlee")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, program); err != nil {
		return err
	}
	if err := install(ctx, dir); err != nil {
		return err
	}
	seen := new(seen)
	web := site.Serve(hosts(seen)...)
	defer web.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	at, stop, err := service.Start(ctx, dir, web.Addr(), problems)
	if err != nil {
		return err
	}
	defer stop()
	p := exec.CommandContext(ctx, node, "crawl.mjs", at, "http://www.example/", "http://down.example/")
	p.Dir, p.Stderr = dir, problems
	p.Env = append(os.Environ(), "WEB=http://"+web.Addr()) // it has no names of its own: it is reached as a proxy would be
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		failed <- service.Follow(p, lines)
	}()
	for line := range lines {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintf(out, "the sites saw %s; the least delay at www.example was %v of %v\n",
		strings.Join(seen.paths, " "), seen.least.Truncate(time.Millisecond), delay)
	return <-failed
}

// install has npm get Crawlee. What it says is the error.
func install(ctx context.Context, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	p.Dir, p.WaitDelay = dir, time.Second
	if said, err := p.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm install: %w: %s", exec.ErrNotFound, err, said)
	}
	return nil
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
