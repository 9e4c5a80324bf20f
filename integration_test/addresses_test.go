package integration_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
)

// resolver answers what this process asks for names; nil: that of the machine.
var resolver atomic.Pointer[net.Resolver]

func dialNames(ctx context.Context, network, address string) (net.Conn, error) {
	if r := resolver.Load(); r != nil {
		return r.Dial(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Where IPv6 does not work, the addresses of it must not use up the tries of the others.
func TestAddressesOfEachFamilyAreCountedApart(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, origins.File) }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String()) // of 127.0.0.1 alone
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	for range 8 {
		addrs = append(addrs, netip.IPv6Loopback())
	}
	resolver.Store(origins.Resolver(0, addrs...))
	defer resolver.Store(nil)
	f := fetch.Fetcher{Transport: &http.Transport{}, Retries: -1}
	r, err := f.Fetch(t.Context(), originOf(t, "http://many.test:"+port), nil)
	if err != nil || verdictOf(r.Policy) != origins.Rules {
		t.Errorf("got %s, want %s (%v, %v)", verdictOf(r.Policy), origins.Rules, err, r.Err)
	}
}
