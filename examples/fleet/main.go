// Fleet crawls three hundred small sites with four processes, which share a Redis and nothing
// else: the URLs that are left, the robots.txt of each site, and the turns at it. One of the
// processes is killed in the middle, and the others take over what it held. At the end the sites
// bear witness. See worker.go for what each process does.
//
// It starts its own redis-server, which has to be installed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/examples/internal/site"
)

const (
	workers = 4
	sites   = 300
	pages   = 8                      // of a site that are allowed
	delay   = 500 * time.Millisecond // that a site asks for
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if name := os.Getenv("FLEET_WORKER"); name != "" {
		err = work(ctx, name, os.Getenv("FLEET_REDIS"), os.Getenv("FLEET_SITES"))
	} else {
		err = fleet(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// fleet runs the sites, the Redis and the workers, and returns an error if the sites saw what
// they should not have seen.
func fleet(ctx context.Context, out io.Writer) error {
	if _, err := exec.LookPath("redis-server"); err != nil {
		fmt.Fprintln(out, "this example needs redis-server: apt-get install redis-server, or brew install redis")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var forbidden atomic.Int32
	var hosts []site.Host
	var homes []any
	for i := range sites {
		hosts = append(hosts, host(fmt.Sprintf("site%d.example", i), &forbidden))
		homes = append(homes, hosts[i].Name, "http://"+hosts[i].Name+"/")
	}
	web := site.Serve(hosts...)
	defer web.Close()
	redisURL, stop, err := startRedis()
	if err != nil {
		return err
	}
	defer stop()
	store, err := redisstore.Open(redisURL)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := begin(ctx, store.Client, homes); err != nil {
		return err
	}
	running, end, err := startWorkers(ctx, redisURL, web.Addr())
	defer end()
	if err != nil {
		return err
	}
	killed := false
	for tick := time.Tick(time.Second); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
		left, err := store.Client.XLen(ctx, stream).Result()
		if err != nil {
			return err
		}
		sent := 0
		for _, n := range web.Counts() {
			sent += n.Pages
		}
		fmt.Fprintf(out, "%d pages sent; %d sites have more\n", sent, left)
		if left == 0 {
			return proof(out, web, int(forbidden.Load()))
		}
		if !killed && sent > sites*pages/2 {
			fmt.Fprintln(out, "worker 2 is killed")
			killed = true
			running[1].Process.Kill()
		}
	}
}

// host is a site whose first page links to the others. It counts requests for what it does not allow.
func host(name string, forbidden *atomic.Int32) site.Host {
	h := site.Host{
		Name:   name,
		Robots: site.Text("User-agent: *", "Disallow: /private/", "Crawl-delay: 0.5"),
		Pages:  map[string]string{"/": site.Links("/1", "/2", "/3", "/4", "/5", "/6", "/7", "/private/1", "/private/2")},
		Other:  func(http.ResponseWriter, *http.Request) { forbidden.Add(1) },
	}
	for i := 1; i < pages; i++ {
		h.Pages[fmt.Sprint("/", i)] = "a page"
	}
	return h
}

// proof prints what the sites saw. What they should not have seen is an error.
func proof(out io.Writer, web *site.Web, forbidden int) error {
	var wrong []error
	robots, least := 0, time.Hour
	for _, n := range web.Counts() {
		robots += n.Robots
		least = min(least, n.Apart)
		// A page whose worker died comes again. Between processes, the delay is from start to start: a request that
		// is on its way for longer than the next one, as on a busy machine, shortens what its site sees.
		if n.Pages < pages || n.Robots != 1 || n.Apart < delay-100*time.Millisecond {
			wrong = append(wrong, fmt.Errorf("not as it should be: %+v", n))
		}
	}
	fmt.Fprintf(out, "the sites saw %d requests for a page that is not allowed, %d for the %d robots.txt,\n"+
		"and two at least %v apart; they ask for %v\n", forbidden, robots, sites, least.Truncate(time.Millisecond), delay)
	if forbidden > 0 {
		wrong = append(wrong, errors.New("what is not allowed was sent"))
	}
	return errors.Join(wrong...)
}

// startWorkers runs copies of this program. The function end asks them to end, and waits for them.
func startWorkers(ctx context.Context, redisURL, web string) (running []*exec.Cmd, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	end = func() {
		cancel()
		all.Wait()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, end, err
	}
	for i := range workers {
		p := exec.CommandContext(ctx, self)
		p.Env = append(os.Environ(), fmt.Sprint("FLEET_WORKER=", i+1), "FLEET_REDIS="+redisURL, "FLEET_SITES="+web)
		p.Stderr = os.Stderr
		p.Cancel = func() error { return p.Process.Signal(os.Interrupt) }
		if err := p.Start(); err != nil {
			return nil, end, err
		}
		running = append(running, p)
		all.Go(func() { p.Wait() })
	}
	return running, end, nil
}

// startRedis runs a server that keeps nothing, on a socket.
func startRedis() (url string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return "", nil, err
	}
	socket := filepath.Join(dir, "redis")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket,
		"--dir", dir, "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	stop = func() {
		server.Process.Kill()
		server.Wait()
		os.RemoveAll(dir)
	}
	for range 100 {
		if _, err := os.Stat(socket); err == nil {
			return "unix://" + socket, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, errors.New("redis-server does not start")
}
