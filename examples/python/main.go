// Python runs crawl.py, a polite crawler of thirty lines that is not written in Go: robots serve
// decides for it, and says when. Two of them crawl one embedded web at the same time, and each
// site sees one visitor that keeps its delay.
package main

import (
	"bufio"
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
	"path/filepath"
	"strings"
	"sync"
	"time"

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
	service, stop, err := serve(ctx, dir, web.Addr(), problems)
	if err != nil {
		return nil, err
	}
	defer stop()
	lines, failed := make(chan string), make(chan error, 2)
	for _, start := range []string{"http://slow.example/", "http://open.example/"} {
		p := exec.CommandContext(ctx, python, "-", service, start)
		p.Stdin, p.Stderr = strings.NewReader(crawler), problems
		// The web has no names of its own: it is reached as a proxy would be.
		p.Env = append(os.Environ(), "http_proxy=http://"+web.Addr(), "no_proxy=127.0.0.1")
		go func() { failed <- follow(p, lines) }()
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

// follow runs p and hands on its lines.
func follow(p *exec.Cmd, lines chan<- string) error {
	out, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	for s := bufio.NewScanner(out); s.Scan(); {
		lines <- s.Text()
	}
	return p.Wait()
}

// serve runs "robots serve" until stop, and returns its URL. All names lead to one address.
func serve(ctx context.Context, dir, web string, problems io.Writer) (url string, stop func(), err error) {
	robots := filepath.Join(dir, "robots")
	if _, err := exec.LookPath("go"); err != nil {
		return "", nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", robots, "github.com/robotsgate/robotsgate/cmd/robots")
	build.Stderr = problems
	// Go ends its compilers when it is interrupted, and not when it is killed.
	build.Cancel, build.WaitDelay = func() error { return build.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := build.Run(); err != nil {
		return "", nil, err
	}
	p := exec.CommandContext(ctx, robots, "serve", "--listen=127.0.0.1:0", "--cache=none", "--private",
		"--connect-to=::"+web)
	p.Stderr = problems
	said, err := p.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := p.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		p.Process.Kill()
		p.Wait()
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		stop()
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "robots serve: ")), stop, err
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
