package integration_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// full runs tests at the sizes that the READMEs state:
//
//	ROBOTSGATE_TIER=nightly go test ./integration_test -run 'Cache|Fleet' -full -timeout 40m
var full = flag.Bool("full", false, "run tests at the sizes that the READMEs state; takes some minutes")

// TestMain lets copies of this test binary play the other processes of a test.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // by default go-redis reports every failed dial
	switch store, site := os.Getenv("ROBOTSGATE_REDIS"), os.Getenv("ROBOTSGATE_SITE"); proc.Role() {
	case "":
		// Set before anything may read it: a client of Redis that has no server dials on when its test is over.
		net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dialNames}
		flag.Parse()
		if waiting := flag.Lookup("test.parallel"); waiting.Value.String() == waiting.DefValue {
			waiting.Value.Set("8") // tests that wait, see aside
		}
		os.Exit(m.Run())
	case "engine":
		childTriesEngine(store)
	case "meeter":
		childMeets(store, site)
	case "crawler":
		childCrawls(store, site)
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// busy is how much longer than on a quiet machine a test may take for what it has to show. One that shows it takes
// none of that.
const busy = time.Minute

// aside runs a test that mostly waits beside others of its kind. With -full it runs alone, for its figures.
func aside(t *testing.T) {
	if !*full {
		t.Parallel()
	}
}

func siteURL(i int) *url.URL {
	return &url.URL{Scheme: "http", Host: fmt.Sprintf("a%d.example", i), Path: "/"}
}

// dialTo leads to one address, whatever the name.
func dialTo(addr string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

func originOf(t testing.TB, raw string) (o fetch.Origin) {
	t.Helper()
	u, err := url.Parse(raw)
	if err == nil {
		o, err = fetch.OriginOf(u)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}
