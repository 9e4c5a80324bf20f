package gatebench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
)

// BenchmarkCold is the first question about an origin, 64 origins at once, beside a bare GET
// of the same robots.txt over a fresh connection. The files are real, the server is on
// loopback and in this process, so both sides pay for it. Fetcher is the part of the first
// question that reads robots.txt: what is left is the cache's and the gate's.
//
//	go test -run XXX -bench Cold -benchtime 21x -count 3
func BenchmarkCold(b *testing.B) {
	const atOnce, perRound = 64, 2048
	hosts := serveFiles(b)
	bare := &http.Transport{DisableKeepAlives: true}
	get := func(host string) error {
		req, err := http.NewRequest(http.MethodGet, "http://"+host+"/robots.txt", nil)
		if err != nil {
			return err
		}
		req.Header.Set("User-Agent", agent)
		res, err := bare.RoundTrip(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.ReadAll(res.Body)
		return err
	}
	round := func(ask func(host string) error) func() time.Duration {
		return func() time.Duration {
			names := hosts(perRound)
			runtime.GC() // each side pays for its own garbage only
			start := time.Now()
			var group sync.WaitGroup
			var next atomic.Int64
			for range atOnce {
				group.Go(func() {
					for i := next.Add(1); i <= perRound; i = next.Add(1) {
						if err := ask(names[i-1]); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			return time.Since(start)
		}
	}
	b.Run("gate", func(b *testing.B) {
		rt := &client.Transport{UserAgent: agent, Cache: &cache.Cache{MaxBytes: 4 << 30}}
		sides.Compare(b, perRound, round(func(host string) error {
			a, err := rt.Decide(b.Context(), &url.URL{Scheme: "http", Host: host, Path: "/articles/page.html"})
			if err == nil {
				err = a.Unreachable
			}
			return err
		}), round(get))
	})
	b.Run("fetcher", func(b *testing.B) {
		f := &fetch.Fetcher{UserAgent: agent}
		sides.Compare(b, perRound, round(func(host string) error {
			o, err := fetch.OriginOf(&url.URL{Scheme: "http", Host: host})
			if err != nil {
				return err
			}
			res, err := f.Fetch(context.Background(), o, nil)
			if err == nil {
				err = res.Err
			}
			return err
		}), round(get))
	})
}

// serveFiles serves the corpus on loopback, file by file. It returns a function that names so
// origins that were not named before.
func serveFiles(b *testing.B) (hosts func(n int) []string) {
	var bodies [][]byte
	files := vectors.Corpus(b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		bodies = append(bodies, files[name])
	}
	l, err := net.Listen("tcp4", "0.0.0.0:0") // 127.0.0.0/8 is all ours
	if err != nil {
		b.Fatal(err)
	}
	served := atomic.Int64{}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body := bodies[served.Add(1)%int64(len(bodies))]
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})}
	go server.Serve(l)
	b.Cleanup(func() { server.Close() })
	port, named := l.Addr().(*net.TCPAddr).Port, 0
	return func(n int) []string {
		names := make([]string, n)
		for i := range names {
			named++
			names[i] = fmt.Sprintf("127.%d.%d.%d:%d", 1+named>>16, named>>8&255, named&255, port)
		}
		return names
	}
}
