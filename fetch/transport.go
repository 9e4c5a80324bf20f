package fetch

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
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// harden returns a copy of base that a server cannot make open more than one connection
// per request, read more than maxConn, or live longer than the attempt it serves.
func harden(base *http.Transport) *http.Transport {
	t := base.Clone()

	// HTTP/1.1 only: in HTTP/2 a server can have a client dial again for as long as it
	// likes (go.dev/issue/52459), and send frames without end that hold no body. A
	// transport that has spoken HTTP/2 offers it in TLS, even so: NextProtos must go.
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.HTTP2 = nil
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil
	}

	// Connections to a site are needed once a day. Kept, they would be three goroutines
	// and a descriptor each; used again, net/http would resend requests by itself.
	t.DisableKeepAlives = true
	t.MaxResponseHeaderBytes = smaller(t.MaxResponseHeaderBytes, maxHeader)
	t.TLSHandshakeTimeout = smaller(t.TLSHandshakeTimeout, tlsTimeout)
	t.ResponseHeaderTimeout = smaller(t.ResponseHeaderTimeout, headerTimeout)

	if proxy := t.Proxy; proxy != nil {
		t.Proxy = func(req *http.Request) (*url.URL, error) {
			u, err := proxy(req)
			if u != nil {
				leashOf(req.Context()).proxied.Store(true)
			}
			return u, err
		}
	}
	if header := t.GetProxyConnectHeader; header != nil {
		t.GetProxyConnectHeader = func(ctx context.Context, proxy *url.URL, target string) (h http.Header, err error) {
			defer caught(&err, "GetProxyConnectHeader")
			return header(ctx, proxy, target)
		}
	}
	connected := t.OnProxyConnectResponse
	t.OnProxyConnectResponse = func(ctx context.Context, proxy *url.URL, req *http.Request, res *http.Response) (err error) {
		defer caught(&err, "OnProxyConnectResponse")
		if connected != nil {
			err = connected(ctx, proxy, req, res)
		}
		if err == nil && res.StatusCode == http.StatusProxyAuthRequired {
			err = errProxyAuth
		}
		return err
	}
	t.DialContext = leashed(plainDialer(t))
	if dial := tlsDialer(t); dial != nil {
		t.DialTLSContext = overHTTP1(leashed(dial))
	}
	return t
}

// anonymous returns t, or a copy of it, that has no client certificate to present, nor a
// session to resume in which one was.
func anonymous(t *http.Transport) *http.Transport {
	if t.TLSClientConfig == nil {
		return t
	}
	t = t.Clone()
	t.TLSClientConfig.Certificates = nil
	t.TLSClientConfig.GetClientCertificate = nil
	t.TLSClientConfig.ClientSessionCache = nil
	return t
}

// errProxyAuth: RFC 9110 §15.5.8. Only a proxy answers 407, and it has not asked the origin.
const errProxyAuth = final("the proxy answered 407 Proxy Authentication Required: give the URL that the transport's Proxy returns the right credentials")

// caught makes an error of a panic in what the caller has set in the transport. net/http
// calls it on goroutines of its own, where a panic would end the process.
func caught(err *error, what string) {
	if p := recover(); p != nil {
		*err = final(fmt.Sprintf("panic in the transport's %s: %v", what, p))
	}
}

func smaller[T int64 | time.Duration](set, ours T) T {
	if set > 0 && set < ours {
		return set
	}
	return ours
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

func plainDialer(t *http.Transport) dialFunc {
	//lint:ignore SA1019 a transport that still has it is to be used as it is meant
	switch dial := t.Dial; {
	case t.DialContext != nil:
		return t.DialContext
	case dial != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return dial(network, addr) }
	}
	d := &net.Dialer{KeepAlive: -1, ControlContext: checkAddress}
	return d.DialContext
}

// tlsDialer returns the transport's own way to TLS, or nil.
func tlsDialer(t *http.Transport) dialFunc {
	dial := t.DialTLSContext
	//lint:ignore SA1019 as above
	if old := t.DialTLS; dial == nil && old != nil {
		dial = func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	return dial
}

// overHTTP1 refuses the connections of a leashed TLS dialer that are for another protocol.
// The handshake is finished for that: net/http, which does so for a *tls.Conn, gets to see
// a leashedConn.
func overHTTP1(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := agreesOnHTTP1(leashOf(ctx).ctx, conn.(*leashedConn).Conn); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

func agreesOnHTTP1(ctx context.Context, conn net.Conn) (err error) {
	c, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	defer caught(&err, "TLS dialer")
	ctx, cancel := withTimeout(ctx, tlsTimeout, "TLS handshake")
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		return cause(ctx, err)
	}
	if p := c.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
		return final(fmt.Sprintf("the transport's DialTLSContext agreed on %q: robots.txt is read over HTTP/1.1 only;"+
			" set Fetcher.Transport to an http.Transport without DialTLSContext, or with one that offers http/1.1 alone", p))
	}
	return nil
}

// checkAddress is called with each address before it is connected to. IPv4 and IPv6 are
// counted apart: where one of them does not work, its addresses must not spend the others'.
func checkAddress(ctx context.Context, network, address string, _ syscall.RawConn) error {
	l := leashOf(ctx)
	tried := &l.addresses
	if network == "tcp6" {
		tried = &l.addresses6
	}
	if tried.Add(1) > maxAddresses {
		return final(fmt.Sprintf("none of the first %d addresses answered", maxAddresses))
	}
	addr, _ := netip.ParseAddrPort(address)
	return l.check(addr.Addr())
}

// leash ties the connection of one attempt to it. net/http goes on dialling, and keeps
// the connection, when the request it was for has ended: so it comes with the context.
type leash struct {
	ctx        context.Context
	guard      *guard
	redirects  int
	proxied    atomic.Bool // the transport's Proxy has named one
	detour     atomic.Bool // the connection is to another address than the URL's
	credential atomic.Pointer[string]
	dials      atomic.Int32
	addresses  atomic.Int32
	addresses6 atomic.Int32
}

type leashKey struct{}

func withLeash(ctx context.Context, g *guard, redirects int) context.Context {
	l := &leash{guard: g, redirects: redirects}
	l.ctx = context.WithValue(ctx, leashKey{}, l)
	return l.ctx
}

func leashOf(ctx context.Context) *leash {
	return ctx.Value(leashKey{}).(*leash)
}

// trace watches what any transport that tells it does with the request for h: where it
// connects to, and which credentials it adds.
func (l *leash) trace(h hop) *httptrace.ClientTrace {
	addr := h.address()
	return &httptrace.ClientTrace{
		GetConn: func(to string) {
			if to != addr {
				l.detour.Store(true)
			}
		},
		WroteHeaderField: func(name string, _ []string) {
			name = http.CanonicalHeaderKey(name)
			if name == "Proxy-Authorization" && (l.proxied.Load() || l.detour.Load() && h.origin.scheme == schemeHTTP) {
				return // of the proxy's URL, and for that proxy only
			}
			if isCredential(name) {
				l.credential.CompareAndSwap(nil, &name)
			}
		},
	}
}

// isCredential reports whether a field is, by its name, one that should not get to another
// origin than it is meant for. We set no such field ourselves.
func isCredential(name string) bool {
	switch name = strings.ToLower(name); name {
	case "authorization", "proxy-authorization", "cookie":
		return true
	}
	for _, end := range [...]string{"key", "token", "secret", "auth"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// check says whether a connection to addr may be made.
func (l *leash) check(addr netip.Addr) error {
	if l.proxied.Load() {
		return nil // the proxy's address says nothing about the site's
	}
	return l.guard.check(addr, l.redirects)
}

// leashed makes dial end with the attempt, dial once in it, and return a connection that
// ends with it.
func leashed(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		l := leashOf(ctx)
		if l.dials.Add(1) > 1 {
			return nil, final("the transport dialled twice for one request")
		}
		defer caught(&err, "dialer")
		ctx, cancel := withTimeout(l.ctx, dialTimeout, "connection")
		defer cancel()
		dialled, err := dial(ctx, network, addr)
		if err != nil {
			return nil, cause(ctx, err)
		}
		if dialled == nil {
			return nil, final("the transport's dialer returned neither a connection nor an error")
		}
		return l.hold(dialled)
	}
}

func (l *leash) hold(conn net.Conn) (net.Conn, error) {
	addr := addressOf(conn)
	if err := l.check(addr); err != nil {
		shut(conn)
		return nil, err
	}
	if l.redirects == 0 && !l.proxied.Load() {
		l.guard.reached(addr)
	}
	c := &leashedConn{
		Conn: conn, in: limitedReader{r: conn, left: maxConn, err: errTooMuch},
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

// shut closes a connection of the caller's, whose panic would end the process.
func shut(conn net.Conn) (err error) {
	defer caught(&err, "connection")
	return conn.Close()
}

// told is the address that a connection of the caller's tells, copied. It is never nil:
// net/http asks one for its text.
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

// leashedConn counts what is read, below TLS where TLS is ours. It reads nothing before the
// first write: what a server says unasked, net/http would print to the standard log. It
// holds the panics of the connection, which a dialer of the caller's may have made.
type leashedConn struct {
	net.Conn
	in    limitedReader
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
		return 0, final("the transport's connection says that it has read an impossible number of bytes")
	}
	// crypto/tls forgives an end without close_notify, and anybody on the path can make
	// one. A body that ends with the connection is incomplete then (RFC 9112 §8, §9.8).
	if err == io.EOF && c.secure.Load() {
		if err = errNoCloseNotify; n > 0 {
			err = nil // what came first is read first
		}
	}
	return n, err
}

var errNoCloseNotify = errors.New("the connection ended without TLS's close_notify")

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

func (c *leashedConn) SetDeadline(t time.Time) (err error) {
	defer caught(&err, "connection")
	return c.Conn.SetDeadline(t)
}

func (c *leashedConn) SetReadDeadline(t time.Time) (err error) {
	defer caught(&err, "connection")
	return c.Conn.SetReadDeadline(t)
}

func (c *leashedConn) SetWriteDeadline(t time.Time) (err error) {
	defer caught(&err, "connection")
	return c.Conn.SetWriteDeadline(t)
}
