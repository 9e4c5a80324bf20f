package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// TestSilentOriginsStarveNoOther asks for thousands of origins at once, of which every fourth
// accepts the connection and never answers. No healthy one is refused for that, or has to
// wait until the silent ones have had their time: with 256 fetches at once that would take a
// minute, and with the time-outs as they are by default a minute and a half.
func TestSilentOriginsStarveNoOther(t *testing.T) {
	tier.Gate(t)
	const patience = 40 * time.Second
	sites := 3000
	if proc.Slowdown() > 1 { // a fetch takes milliseconds of the processor, and patience is for the silent ones
		sites /= 2
	}
	healthy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "User-agent: *\nDisallow: /private\n")
	}))
	defer healthy.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(io.Discard, conn) // until the client goes
				conn.Close()
			}()
		}
	}()
	base := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := healthy.Listener
			if strings.HasPrefix(addr, "silent") {
				to = silent
			}
			return new(net.Dialer).DialContext(ctx, network, to.Addr().String())
		},
	}
	gate := &client.Transport{UserAgent: userAgent, Base: base,
		Fetcher: &fetch.Fetcher{Transport: base, UserAgent: userAgent, Timeout: 20 * time.Second}}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var asking, givingUp sync.WaitGroup
	start := time.Now()
	for i := range sites {
		if i%4 == 0 {
			givingUp.Go(func() {
				u := &url.URL{Scheme: "http", Host: fmt.Sprintf("silent%d.test", i), Path: "/public"}
				if d, err := gate.Decide(ctx, u); err == nil && d.Allowed || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v, %v", u, d, err)
				}
			})
			continue
		}
		asking.Go(func() {
			u := &url.URL{Scheme: "http", Host: fmt.Sprintf("healthy%d.test", i), Path: "/public"}
			if d, err := gate.Decide(ctx, u); err != nil || !d.Allowed {
				t.Errorf("%s: %v, %v", u, d, err)
			}
		})
	}
	asking.Wait()
	t.Logf("%d healthy origins were known after %v", sites*3/4, time.Since(start).Round(time.Millisecond))
	cancel()
	givingUp.Wait()
	if err := gate.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
