package fetch_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/internal/harden"
)

// Each spelling of an address in ranks is public or not, and what is not is not connected to.
func TestPublicOnlyConnectsToPublicAddresses(t *testing.T) {
	base := fetch.PublicOnly(&http.Transport{Proxy: func(*http.Request) (*url.URL, error) { panic("a proxy is used") }})
	for rank, addrs := range ranks {
		for _, text := range addrs {
			addr := netip.MustParseAddr(text)
			if got := harden.Public(addr); got != (rank == 0) {
				t.Errorf("%s: public %v", text, got)
			}
			if rank == 0 {
				continue
			}
			host := strings.ReplaceAll(net.JoinHostPort(text, "9"), "%", "%25")
			req, err := http.NewRequest(http.MethodGet, "http://"+host+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := base.RoundTrip(req); !errors.Is(err, fetch.ErrNotPublic) && !errors.Is(err, syscall.EAFNOSUPPORT) && addr.Zone() == "" {
				t.Errorf("%s: got %v, want ErrNotPublic", text, err)
			}
		}
	}
	if harden.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// Nothing is connected to, whatever dialers and proxies the transport had; robots.txt gets an error and no Result. The
// site is not blamed for it.
func TestPublicOnlyRefusesTheOriginItself(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f := fetch.Fetcher{Transport: fetch.PublicOnly(http.DefaultTransport.(*http.Transport))}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		r, err := f.Fetch(t.Context(), originOf(t, "http://"+host+":"+port), nil)
		if r != nil || !errors.Is(err, fetch.ErrNotPublic) {
			t.Errorf("%s: got %v, %v, want ErrNotPublic", host, r, err)
		}
	}
	l.(*net.TCPListener).SetDeadline(time.Now().Add(100 * time.Millisecond))
	if c, err := l.Accept(); err == nil {
		t.Errorf("connected from %v", c.RemoteAddr())
	}
}

// A site that redirects to an address that is not public has answered so: it is unreachable.
func TestPublicOnlyBehindARedirectIsTheSitesFault(t *testing.T) {
	base := piped(func() []byte { return []byte(reply(302, "", "Location: http://b.test/r")) })
	site := base.DialContext
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "a.test:80" {
			return site(ctx, network, addr)
		}
		return fetch.PublicOnly(new(http.Transport)).DialContext(ctx, network, "127.0.0.1:9")
	}
	r := fetched(t, &fetch.Fetcher{Transport: base}, "http://a.test", nil, "disallow")
	if len(r.Redirects) != 1 || cause(r) != "destination_ip_prohibited" {
		t.Errorf("got %v after %d redirects, cause %q", r, len(r.Redirects), cause(r))
	}
}
