// Fleet crawls three hundred small sites with four processes, which share a Redis and nothing
// else: the URLs that are left, the robots.txt of each site, and the turns at it. One of the
// processes is killed in the middle, and the others take over what it held. At the end the sites
// bear witness. See worker.go for what each process does.
//
// It starts a redis-server of its own, which has to be installed.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache/redisstore"
)

const (
	workers = 4
	sites   = 300
	killed  = 2 // the worker that does not live to see the end
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
	web := newWeb(sites)
	defer web.Close()
	url, stop, err := startRedis()
	if err != nil {
		return err
	}
	defer stop()
	store, err := redisstore.Open(url)
	if err != nil {
		return err
	}
	defer store.Close()
	c := store.Client
	if err := begin(ctx, c, web.homes()); err != nil {
		return err
	}
	t := &table{out: out, web: web, start: time.Now()}
	running, err := startWorkers(t, url, web.Address())
	defer end(t, running)
	if err != nil {
		return err
	}
	if err := watch(ctx, c, t, running); err != nil {
		return err
	}
	end(t, running)
	t.last()
	return web.proof(out)
}

// watch shows how far the fleet is until no URL is left.
func watch(ctx context.Context, c redis.UniversalClient, t *table, running []*exec.Cmd) error {
	for {
		left, err := c.XLen(ctx, stream).Result()
		if err != nil || left == 0 {
			return err
		}
		urls, err := c.SCard(ctx, seen).Result()
		if err != nil {
			return err
		}
		done := t.show(urls)
		if t.killed == 0 && done > sites*len(paths)/2 {
			running[killed-1].Process.Kill()
			t.killed = killed
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d sites are not done: %w", left, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// startWorkers runs copies of this program, each of which says in lines what it does.
func startWorkers(t *table, redisURL, address string) (running []*exec.Cmd, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for i := range workers {
		p := exec.Command(self)
		p.Env = append(os.Environ(), fmt.Sprint("FLEET_WORKER=", i+1), "FLEET_REDIS="+redisURL, "FLEET_SITES="+address)
		p.Stderr = os.Stderr
		said, err := p.StdoutPipe()
		if err != nil {
			return running, err
		}
		if err := p.Start(); err != nil {
			return running, err
		}
		running = append(running, p)
		t.reading.Go(func() {
			for lines := bufio.NewScanner(said); lines.Scan(); {
				t.hear(i, lines.Text())
			}
		})
	}
	return running, nil
}

// end asks all workers to end, and waits for them.
func end(t *table, running []*exec.Cmd) {
	for _, p := range running {
		p.Process.Signal(os.Interrupt)
	}
	t.reading.Wait()
	for _, p := range running {
		p.Wait()
	}
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
