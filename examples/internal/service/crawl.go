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

// Crawler returns a program that crawls. It is given an empty folder, the URL of robots serve, and the address of the
// web: that has no names of its own, and is reached as a proxy would be.
type Crawler func(ctx context.Context, dir, at, web string) (*exec.Cmd, error)

// Crawl runs robots serve and n crawlers that ask it at the same time, and says what the sites saw of that.
func Crawl(ctx context.Context, out, problems io.Writer, n int, crawler Crawler) error {
	dir, err := os.MkdirTemp("", "crawl")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	web := site.Serve(hosts()...)
	defer web.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // the programs are built and installed first
	defer cancel()
	at, stop, err := start(ctx, dir, web.Addr(), problems)
	if err != nil {
		return err
	}
	defer stop()
	var crawlers sync.WaitGroup
	failed, lines := make([]error, n), &shared{out: out}
	for i := range n {
		p, err := crawler(ctx, dir, at, web.Addr())
		if err != nil {
			return err
		}
		p.Stdout, p.Stderr = lines, problems
		crawlers.Go(func() { failed[i] = p.Run() })
	}
	crawlers.Wait()
	web.Report(out)
	return errors.Join(failed...)
}

// shared is what several programs write to.
type shared struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// hosts is a site with one private part, a second one that it redirects to, and one that is down.
func hosts() []site.Host {
	return []site.Host{
		{
			Name:   "www.example",
			Robots: site.Text("User-agent: ExampleBot", "Disallow: /private/", "Crawl-delay: 0.2"),
			Pages: map[string]string{
				"/":       site.Links("/public", "/private/", "/moved", "http://down.example/"),
				"/public": "<p>welcome</p>",
			},
			Other: http.RedirectHandler("http://other.example/archive/1", http.StatusFound).ServeHTTP, // of /moved
		},
		{Name: "other.example", Robots: site.Text("User-agent: *", "Disallow: /archive/")},
		{Name: "down.example", Robots: site.Status(http.StatusServiceUnavailable)},
	}
}
