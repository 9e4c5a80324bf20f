// Sharedcache runs three processes that crawl the same hundred origins through one
// Redis. Each robots.txt is fetched once for all of them: a hundred fetches, not three
// hundred. It starts a redis-server of its own, which has to be installed.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
)

const (
	processes = 3
	origins   = 100
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := parent
	if os.Getenv("SHAREDCACHE_REDIS") != "" {
		run = crawl
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sharedcache:", err)
		os.Exit(1)
	}
}

// crawl is what each process does: its gate has a cache, and the cache a store.
func crawl(ctx context.Context) error {
	store, err := redisstore.Open(os.Getenv("SHAREDCACHE_REDIS"))
	if err != nil {
		return err
	}
	shared := &cache.Cache{Store: store}
	gate := &client.Transport{
		Base:      toSite(os.Getenv("SHAREDCACHE_SITE")), // leave it out to use the network
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
		Cache:     shared,
	}
	refused := 0
	for i := range origins {
		page := &url.URL{Scheme: "http", Host: fmt.Sprintf("www%d.example", i), Path: "/private"}
		d, err := gate.Decide(ctx, page)
		if err != nil {
			return err
		}
		if !d.Allowed {
			refused++
		}
	}
	fmt.Printf("process %d: %d origins looked up, /private refused by %d\n", os.Getpid(), origins, refused)
	return shared.Shutdown(context.Background()) // what is still to be written
}

// parent has the site, the Redis, and the processes, and outlives them.
func parent(ctx context.Context) error {
	var fetches atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	}))
	defer site.Close()
	address, stop, err := startRedis()
	if err != nil {
		fmt.Println("this example needs redis-server, as apt-get install redis-server gives it:", err)
		return nil
	}
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for range processes {
		p := exec.CommandContext(ctx, self)
		p.Env = append(os.Environ(), "SHAREDCACHE_REDIS=redis://"+address, "SHAREDCACHE_SITE="+site.Listener.Addr().String())
		p.Stdout, p.Stderr = os.Stdout, os.Stderr
		group.Go(func() {
			if err := p.Run(); err != nil {
				fmt.Println("a process failed:", err)
			}
		})
	}
	group.Wait()
	fmt.Printf("%d processes, %d origins: %d fetches in all\n", processes, origins, fetches.Load())
	return nil
}

// toSite dials every name to one address.
func toSite(address string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

// startRedis runs a server that keeps nothing.
func startRedis() (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		server.Process.Kill()
		server.Wait()
	}
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return address, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("no answer at %s", address)
}
