package main

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// TestMain lets copies of the test be the workers.
func TestMain(m *testing.M) {
	if os.Getenv("JETSTREAM_SITES") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheCrawlProvesWhatItSays(t *testing.T) {
	tier.Nightly(t)
	for _, tt := range []struct {
		name    string
		servers int
	}{{"its own server", 0}, {"a cluster of three", 3}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			urls := ""
			if tt.servers > 0 {
				urls = newCluster(t, tt.servers)
			}
			var out bytes.Buffer
			if err := crawl(t.Context(), &out, urls, max(1, tt.servers)); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, want := range []string{
				`a worker was killed\n +and came back`,
				// Of its last visits the worker that was killed may have told nothing, and on a busy machine what is
				// late is visited again; the sites' count is the proof.
				`: 1[23]\d\d sent, (1[89]\d|2\d\d) refused, (9\d|1\d\d) gone, \d+ put back \(\d\.\d\d a page\)`,
				`1400 of 1400 pages that are allowed`,
				`  0 requests for a page that is not\n`,
			} {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("the output does not match %q:\n%s", want, &out)
				}
			}
		})
	}
}

// newCluster returns the URLs of NATS servers that keep one queue together.
func newCluster(t *testing.T, n int) string {
	var ports []int
	var routes []*url.URL
	var held []net.Listener // until all have a port
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		held = append(held, l)
	}
	for _, l := range held {
		l.Close()
	}
	var urls []string
	var all []*server.Server
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
			Cluster: server.ClusterOpts{Name: "crawl", Host: "127.0.0.1", Port: port},
			Routes:  routes, NoLog: true, NoSigs: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		all = append(all, s)
	}
	for _, s := range all {
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatal("a NATS server does not start")
		}
		urls = append(urls, s.ClientURL())
	}
	// The leader alone knows with whom it can share a queue.
	whole := func(s *server.Server) bool { return len(s.JetStreamClusterPeers()) == n }
	for !slices.ContainsFunc(all, whole) {
		select {
		case <-t.Context().Done():
			t.Fatal("the cluster finds no leader, or not each other")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return strings.Join(urls, ",")
}
