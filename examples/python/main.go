// Python runs crawl.py, a polite crawler of thirty lines that is not written in Go: robots serve
// decides for it, and says when. Two of them crawl one embedded web at the same time, and each
// site sees one visitor that keeps its delay.
package main

import (
	"context"
	_ "embed"
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

//go:embed crawl.py
var crawler string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	visits, err := run(ctx, os.Stdout, os.Stderr)
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Println("this example needs python3, and go to build robots:", err)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range visits {
		fmt.Printf("%-14s asks for %-5v saw %2d requests, %v apart at least\n",
			v.host, v.delay, v.seen, v.least.Truncate(time.Millisecond))
	}
}

// run builds and starts robots serve, and crawls through it. When it returns, all that it has
// started has ended.
func run(ctx context.Context, out, problems io.Writer) ([]*visits, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "python")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	all, hosts := embedded()
	web := site.Serve(hosts...)
	defer web.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	at, stop, err := service.Start(ctx, dir, web.Addr(), problems)
	if err != nil {
		return nil, err
	}
	defer stop()
	lines, failed := make(chan string), make(chan error, 2)
	for _, start := range []string{"http://slow.example/", "http://open.example/"} {
		p := exec.CommandContext(ctx, python, "-", at, start)
		p.Stdin, p.Stderr = strings.NewReader(crawler), problems
		// The web has no names of its own: it is reached as a proxy would be.
		p.Env = append(os.Environ(), "http_proxy=http://"+web.Addr(), "no_proxy=127.0.0.1")
		go func() { failed <- service.Follow(p, lines) }()
	}
	for ended := 0; ended < 2; {
		select {
		case line := <-lines:
			fmt.Fprintln(out, line)
		case e := <-failed:
			ended, err = ended+1, errors.Join(err, e)
		}
	}
	return all, err
}

// visits is what one site sees of its visitors.
type visits struct {
	host  string
	delay time.Duration // what it asks for

	mu    sync.Mutex
	seen  int
	under int           // under way
	last  time.Time     // the latest end
	least time.Duration // from an end to the next start; negative: they overlapped
}

// watch is h with its requests noted.
func (v *visits) watch(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v.note(time.Now(), 1)
		h(w, r)
		v.note(time.Now(), -1)
	}
}

func (v *visits) note(now time.Time, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n < 0 {
		v.under--
		v.last = now
		return
	}
	gap := now.Sub(v.last)
	if v.under++; v.under > 1 {
		gap = -1
	}
	if v.seen++; v.seen == 2 || v.seen > 2 && gap < v.least {
		v.least = gap
	}
}
