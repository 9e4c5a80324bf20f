package harden

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Leash ties a connection to the one request that it serves. net/http goes on dialing, and
// keeps the connection, after the request has ended: so the Leash comes in the context.
type Leash struct {
	ctx        context.Context
	cancel     context.CancelCauseFunc
	guard      *Guard
	redirects  int
	late       func() error // why the request must not be sent any more, or nil
	proxied    atomic.Bool  // the transport's Proxy has named one
	detour     atomic.Bool  // the connection is to another address than the URL's
	Own        http.Header  // what the request carries before the transport has it
	credential atomic.Pointer[string]
	dials      atomic.Int32
	addresses  atomic.Int32
	addresses6 atomic.Int32
}

type leashKey struct{}

// Leash returns the context for a request to addr, after so many redirects, and its Leash.
// The guard decides where the request may connect to; the connection ends with ctx. plain
// says that the request is in no tunnel, where a proxy between reads its fields. late is asked
// when there is a connection.
func (g *Guard) Leash(ctx context.Context, redirects int, addr string, plain bool, late func() error) (context.Context, *Leash) {
	l := &Leash{guard: g, redirects: redirects, late: late}
	l.ctx, l.cancel = context.WithCancelCause(context.WithValue(ctx, leashKey{}, l)) // ends with ctx
	return httptrace.WithClientTrace(l.ctx, l.trace(addr, plain)), l
}

func leashOf(ctx context.Context) *Leash {
	return ctx.Value(leashKey{}).(*Leash)
}

// Credential returns the name of a field with credentials that the transport has added to
// the request, as far as httptrace tells; "" if there is none.
func (l *Leash) Credential() string {
	if name := l.credential.Load(); name != nil {
		return *name
	}
	return ""
}

// RefusedByProxy reports whether what RoundTrip returned is a proxy's 407, which says
// nothing about the origin. A transport below another one tells its reason phrase only.
func (l *Leash) RefusedByProxy(res *http.Response, err error) bool {
	switch {
	case err != nil:
		return errors.Is(err, ErrProxyAuth) ||
			l.detour.Load() && strings.HasSuffix(err.Error(), http.StatusText(http.StatusProxyAuthRequired))
	case res == nil:
		return false
	}
	return res.StatusCode == http.StatusProxyAuthRequired && (l.proxied.Load() || l.detour.Load())
}

// trace watches what any transport that tells it does with the request to addr: where it
// connects to, and which credentials it adds.
func (l *Leash) trace(addr string, plain bool) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(to string) {
			if to != addr {
				l.detour.Store(true)
			}
		},
		GotConn: l.gotConn,
		WroteHeaderField: func(name string, _ []string) {
			field := http.CanonicalHeaderKey(name)
			if !IsCredential(name) || l.Own[field] != nil {
				return
			}
			if field == "Proxy-Authorization" && (l.proxied.Load() || plain && l.detour.Load()) {
				return // of the proxy's URL, and for that proxy only
			}
			l.credential.CompareAndSwap(nil, &field)
		},
	}
}

// gotConn stops what is too late, and holds a transport that is not hardened to PublicOnly, before it
// writes. HTTP/2 looks at the context first, HTTP/1 does not.
func (l *Leash) gotConn(got httptrace.GotConnInfo) {
	err := l.late()
	if err == nil && l.guard.PublicOnly {
		var addr netip.Addr
		if got.Conn != nil {
			addr = addressOf(got.Conn)
		}
		err = l.check(addr)
	}
	if err == nil {
		return
	}
	l.cancel(err)
	if c, ok := got.Conn.(*tls.Conn); got.Conn != nil && (!ok || c.ConnectionState().NegotiatedProtocol != "h2") {
		got.Conn.Close()
	}
}

// IsCredential reports whether a field, by its name, must reach no other origin than it is
// meant for. We set no such field ourselves.
func IsCredential(name string) bool {
	is := func(field string) bool { return strings.EqualFold(name, field) }
	ends := func(end string) bool { return strings.EqualFold(name[max(0, len(name)-len(end)):], end) }
	return slices.ContainsFunc([]string{"Authorization", "Proxy-Authorization", "Cookie"}, is) ||
		slices.ContainsFunc([]string{"Key", "Token", "Secret", "Auth"}, ends)
}

func (l *Leash) check(addr netip.Addr) error {
	if l.proxied.Load() {
		return nil // the proxy's address says nothing about the site's
	}
	// If the origin's address is still unknown, the origin was reached through a proxy. It counts as
	// public then: no redirect reaches a private host past the proxy.
	return l.guard.judge(addr, l.redirects, global)
}

// checkAddress is called with each address before it is connected to. IPv4 and IPv6 are
// counted apart: if one of them does not work, it must not use up the other's share.
func checkAddress(ctx context.Context, network, address string, _ syscall.RawConn) error {
	l := leashOf(ctx)
	tried := &l.addresses
	if network == "tcp6" {
		tried = &l.addresses6
	}
	if tried.Add(1) > maxAddresses {
		return Final(fmt.Sprintf("none of the first %d addresses answered", maxAddresses))
	}
	addr, _ := netip.ParseAddrPort(address)
	return l.check(addr.Addr())
}

// leashed makes dial, and the connection that it returns, end with their Leash. It allows
// one dial for each.
func leashed(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		l := leashOf(ctx)
		if l.dials.Add(1) > 1 {
			return nil, Final("the transport dialled twice for one request")
		}
		defer caught(&err, "dialer")
		ctx, cancel := WithTimeout(l.ctx, dialTimeout, "connection")
		defer cancel()
		dialled, err := dial(ctx, network, addr)
		if err != nil {
			return nil, Cause(ctx, err)
		}
		if dialled == nil {
			return nil, Final("the transport's dialer returned neither a connection nor an error")
		}
		return l.hold(dialled)
	}
}

// Dial connects to addr as the hardened t does, for the request that ctx is of. It serves a
// protocol that net/http does not speak: a request may have several connections, and the
// server may speak first.
func Dial(ctx context.Context, t *http.Transport, addr string) (net.Conn, error) {
	l := leashOf(ctx)
	ctx, _ = l.guard.Leash(l.ctx, l.redirects, addr, false, l.late)
	conn, err := t.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := conn.(*leashedConn)
	c.once.Do(func() { close(c.wrote) })
	if err := l.late(); err != nil {
		c.Close()
		return nil, Final(err.Error())
	}
	return c, nil
}

func (l *Leash) hold(conn net.Conn) (net.Conn, error) {
	addr := addressOf(conn)
	if err := l.check(addr); err != nil {
		shut(conn)
		return nil, err
	}
	if l.redirects == 0 && !l.proxied.Load() {
		l.guard.reached(addr)
	}
	c := &leashedConn{
		Conn: conn, in: LimitedReader{R: conn, Left: MaxConn, Err: ErrTooMuch},
		ended: l.ctx.Done(), wrote: make(chan struct{}),
	}
	c.stop = context.AfterFunc(l.ctx, func() { shut(conn) })
	return c, nil
}

func addressOf(conn net.Conn) netip.Addr {
	addr, err := netip.ParseAddrPort(told(conn.RemoteAddr).String())
	if err != nil {
		return netip.Addr{}
	}
	return addr.Addr()
}

// shut closes a connection of the caller's and holds its panic.
func shut(conn net.Conn) (err error) {
	defer caught(&err, "connection")
	return conn.Close()
}

// told returns a copy of the address that a connection of the caller's tells. It is never
// nil: net/http asks for its text.
func told(by func() net.Addr) (a address) {
	defer func() { _ = recover() }() // unknown, then
	if addr := by(); addr != nil {
		a = address{addr.Network(), addr.String()}
	}
	return a
}

type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }

// leashedConn counts what is read, below TLS if TLS is ours. It reads nothing before the
// first write: net/http would print what a server says unasked to the standard log. It
// holds the panics of the connection, which may be of the caller's making.
type leashedConn struct {
	net.Conn
	in    LimitedReader
	stop  func() bool
	ended <-chan struct{}

	once   sync.Once
	wrote  chan struct{}
	secure atomic.Bool // TLS has begun, here or within a proxy's tunnel
}

func (c *leashedConn) Read(p []byte) (n int, err error) {
	select {
	case <-c.wrote:
	case <-c.ended:
		return 0, net.ErrClosed
	}
	defer caught(&err, "connection")
	if n, err = c.in.Read(p); n < 0 || n > len(p) { // net/http would panic
		return 0, Final("the transport's connection says that it has read an impossible number of bytes")
	}
	// crypto/tls forgives an end without close_notify, and anyone on the path can cause it.
	// A body that ends with the connection is incomplete then (RFC 9112 §8, §9.8).
	if err == io.EOF && c.secure.Load() {
		if err = errNoCloseNotify; n > 0 {
			err = nil // what came first is read first
		}
	}
	return n, err
}

func (c *leashedConn) Write(p []byte) (n int, err error) {
	c.once.Do(func() { close(c.wrote) })
	// A record of the handshake: RFC 8446 §5.1. Neither HTTP nor SOCKS begins a write so.
	if len(p) > 0 && p[0] == 0x16 {
		c.secure.Store(true)
	}
	defer caught(&err, "connection")
	return c.Conn.Write(p)
}

func (c *leashedConn) Close() error {
	c.stop()
	return shut(c.Conn)
}

func (c *leashedConn) LocalAddr() net.Addr  { return told(c.Conn.LocalAddr) }
func (c *leashedConn) RemoteAddr() net.Addr { return told(c.Conn.RemoteAddr) }

func (c *leashedConn) SetDeadline(t time.Time) error      { return limit(c.Conn.SetDeadline, t) }
func (c *leashedConn) SetReadDeadline(t time.Time) error  { return limit(c.Conn.SetReadDeadline, t) }
func (c *leashedConn) SetWriteDeadline(t time.Time) error { return limit(c.Conn.SetWriteDeadline, t) }

func limit(set func(time.Time) error, t time.Time) (err error) {
	defer caught(&err, "connection")
	return set(t)
}
