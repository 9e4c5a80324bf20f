package client

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"

	"github.com/robotsgate/robotsgate/fetch"
)

// With Fetcher.PublicOnly, no request reaches an address that is not public. What counts is the address
// that is connected to: a name may have another one each time it is asked for.

// proxiedKey is of an *atomic.Bool: whether the connection of a request is to a proxy.
type proxiedKey struct{}

// publicTransport returns a copy of base that connects to public addresses only, or to its proxy: that is
// the operator's own.
func publicTransport(base *http.Transport) *http.Transport {
	t := base.Clone()
	if proxy := t.Proxy; proxy != nil {
		t.Proxy = func(req *http.Request) (*url.URL, error) {
			u, err := proxy(req)
			if proxied, ok := req.Context().Value(proxiedKey{}).(*atomic.Bool); ok {
				proxied.Store(u != nil)
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
		if proxied, ok := ctx.Value(proxiedKey{}).(*atomic.Bool); ok && proxied.Load() || reachesPublic(conn) {
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
