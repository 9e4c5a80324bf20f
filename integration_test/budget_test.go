package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// madeUp makes up a misbehaving server.
func madeUp(rnd *rand.Rand) origins.Program {
	texts := []string{
		"HTTP/1.1 200 OK\r\n", "HTTP/1.1 302 Found\r\nLocation: /robots.txt?", "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n",
		"HTTP/1.1 103 Early\r\n\r\n", "Content-Length: 100\r\n", "Content-Encoding: gzip\r\n", "Transfer-Encoding: chunked\r\n",
		"Connection: close\r\n", "\r\n", origins.File, "5\r\n# abc\r\n", "0\r\n\r\n", origins.Gzip(origins.File), strings.Repeat("# x\n", 50_000),
		origins.Reply(200, origins.File), origins.Reply(404, ""), origins.Reply(302, "", "Location: /other"), "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	}
	var p origins.Program
	for range 1 + rnd.IntN(7) {
		switch rnd.IntN(12) {
		case 0:
			p = append(p, origins.Pause(time.Duration(rnd.IntN(200))*time.Millisecond))
		case 1:
			p = append(p, origins.Close)
		case 2:
			p = append(p, origins.Reset)
		case 3:
			p = append(p, origins.HalfClose)
		case 4:
			p = append(p, origins.Hang)
		case 5:
			p = append(p, origins.Drip("HTTP/1", 100*time.Millisecond))
		case 6:
			p = append(p, origins.Flood(texts[rnd.IntN(len(texts))]))
		default:
			p = append(p, origins.Write(texts[rnd.IntN(len(texts))]))
		}
	}
	return p
}

func TestNoServerExceedsTheBudget(t *testing.T) {
	tier.Gate(t)
	aside(t)
	const (
		servers = 200
		timeout = 2 * time.Second
		retries = 2
	)
	n, err := origins.Start(4)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	base := n.Transport()
	f := fetch.Fetcher{Transport: base, Timeout: timeout, Retries: retries}
	slots := make(chan struct{}, 64)
	sites := make([]*origins.Origin, servers)
	took := make([]time.Duration, servers)
	var all sync.WaitGroup
	late := proc.WatchMachine()
	for i := range servers {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		o := &origins.Origin{Name: fmt.Sprintf("s%d.test", i), Paths: map[string][]origins.Program{
			"/robots.txt": {madeUp(rnd), madeUp(rnd)}, "/other": {madeUp(rnd)},
		}}
		if rnd.IntN(4) == 0 {
			o.Accept = []origins.Program{madeUp(rnd), nil}
		}
		n.Add(o)
		sites[i] = o
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			start := time.Now()
			r, err := f.Fetch(context.Background(), originOf(t, "http://"+o.Name), nil)
			took[i] = time.Since(start)
			if err != nil || r.Policy == nil || (r.Err != nil) != (verdictOf(r.Policy) == origins.Disallow) || len(r.Body) > 500<<10+1 {
				t.Errorf("server %d: %v, %v", i, r, err)
			}
		})
	}
	all.Wait()
	slack := time.Second + 4*late() // without a bound, many would never end
	for i, o := range sites {
		c := o.Counts()
		if limit := (1 + retries) * 6; c.Dials > limit || c.Dials > 18 {
			t.Errorf("server %d: got %d dials, want %d at most", i, c.Dials, min(limit, 18))
		}
		for path, n := range c.Requests {
			if n > 1+retries && !strings.HasPrefix(path, "/robots.txt") { // the query is not counted apart
				t.Errorf("server %d: %d requests for %s", i, n, path)
			}
		}
		if c.Bytes > int64(c.Dials)*(4<<20) {
			t.Errorf("server %d: %d bytes over %d connections", i, c.Bytes, c.Dials)
		}
		if took[i] > timeout+slack {
			t.Errorf("server %d: took %v", i, took[i])
		}
	}
}
