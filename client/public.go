package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/fetch"
)

// With Fetcher.PublicOnly, no request reaches an address that is not public. What counts is the address
// that is connected to: a name may have another one each time it is asked for.

// ErrNotPublic is what errors.Is finds in the error of a request that was not sent because of Fetcher.PublicOnly: it,
// or robots.txt before it, leads to an address that is not public, or is not known to be.
var ErrNotPublic error = notSent("the address is not public")

type sendingKey struct{}

// publicTransport returns a copy of base that connects to public addresses only, or to its proxy: that is
// the operator's own.
func publicTransport(base *http.Transport) *http.Transport {
	t := base.Clone()
	if proxy := t.Proxy; proxy != nil {
		t.Proxy = func(req *http.Request) (*url.URL, error) {
			u, err := proxy(req)
			if s, ok := req.Context().Value(sendingKey{}).(*sending); ok {
				s.proxied.Store(u != nil)
			}
			return u, err
		}
	}
	// A copy with a dialer of its own would no longer offer HTTP/2.
	t.ForceAttemptHTTP2 = t.ForceAttemptHTTP2 || base.TLSNextProto["h2"] != nil
	//lint:ignore SA1019 a transport may still have them
	plain, secure := t.Dial, t.DialTLS
	if t.DialContext == nil && plain == nil {
		t.DialContext = new(net.Dialer).DialContext
	}
	t.DialContext = publicDialer(t.DialContext, plain) // which comes before Dial
	t.DialTLSContext = publicDialer(t.DialTLSContext, secure)
	return t
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// publicDialer returns dial, or old if that is nil, which closes a connection that must not be used.
func publicDialer(dial dialer, old func(network, addr string) (net.Conn, error)) dialer {
	switch {
	case dial == nil && old == nil:
		return nil
	case dial == nil:
		dial = func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil || conn == nil {
			return conn, err
		}
		if s, ok := ctx.Value(sendingKey{}).(*sending); ok && s.proxied.Load() || reachesPublic(conn) {
			return conn, nil
		}
		conn.Close()
		return nil, notPublic(addr)
	}
}

func reachesPublic(conn net.Conn) bool {
	if conn == nil {
		return false
	}
	to := conn.RemoteAddr()
	if to == nil {
		return false
	}
	addr, err := netip.ParseAddrPort(to.String())
	return err == nil && fetch.Public(addr.Addr())
}

// checkPublic returns why out, as it goes to Base, must not be sent, as far as its hosts tell, or nil. A proxy
// resolves names itself, so this is all that can be seen of what is behind one.
func (g *gate) checkPublic(out *http.Request) error {
	if !g.publicOnly {
		return nil
	}
	if isOther(out.URL) {
		return mistake{fmt.Errorf("client: not sent: PublicOnly cannot see where a request of scheme %q goes: %w",
			cut(out.URL.Scheme), ErrNotPublic)}
	}
	for _, u := range []*url.URL{out.URL, {Host: out.Host}} { // either may be what a proxy is asked for
		host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		addr, err := netip.ParseAddr(host)
		if host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && !fetch.Public(addr) {
			return notPublic(u.Host)
		}
	}
	return nil
}

func notPublic(host string) error {
	return mistake{fmt.Errorf("client: not sent: PublicOnly refuses %s: %w", cut(host), ErrNotPublic)}
}
