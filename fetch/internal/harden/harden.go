// Package harden bounds what a server can make an http.Transport do: how much it reads, how long it takes, and
// where redirects lead. It knows nothing of robots.txt.
package harden

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Limits of one request. A Transport may have smaller ones.
const (
	MaxHeader = 64 << 10 // bytes of a response's header
	MaxConn   = 4 << 20  // bytes read from a connection: a legal file of 500 KiB in chunks of one byte takes 3.1 MB

	dialTimeout   = 5 * time.Second // resolving a name and connecting
	tlsTimeout    = 5 * time.Second
	headerTimeout = 10 * time.Second
)

// A FinalError would recur; retrying cannot help.
type FinalError string

func (e FinalError) Error() string { return string(e) }

const (
	// ErrTooMuch is the error of a read beyond MaxConn.
	ErrTooMuch = FinalError("more than 4 MiB were sent")

	// ErrProxyAuth: RFC 9110 §15.5.8. A proxy that answers 407 has not asked the origin.
	ErrProxyAuth = FinalError("the proxy answered 407 Proxy Authentication Required: " +
		"give the URL that the transport's Proxy returns the right credentials")
)

// Request is one request that a transport is hardened for.
type Request struct {
	Context   context.Context // the connection ends with it; it has the deadline of the request
	Guard     *Guard          // of the origin
	Redirects int             // that led to the URL
	TLS       bool            // the URL's scheme is https
	Anonymous bool            // no client certificate is presented

	Proxied bool // set if the transport's Proxy names one
	Asks    bool // set if that proxy gets the request itself, and may answer in the site's place
}

// Transport returns a copy of base that opens one connection for r, reads at most MaxConn from it, and ends it
// with r, whatever the server does.
func (r *Request) Transport(base *http.Transport) *http.Transport {
	t := base.Clone()

	// HTTP/1.1 only: in HTTP/2 a server can make a client dial again for as long as it likes (go.dev/issue/52459),
	// and send frames without end that hold no body. Protocols counts before all other fields. But a transport that
	// has spoken HTTP/2 still offers it in TLS: NextProtos must go.
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.HTTP2 = nil
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil
		if r.Anonymous { // nor a session in which one was presented
			t.TLSClientConfig.Certificates, t.TLSClientConfig.GetClientCertificate = nil, nil
			t.TLSClientConfig.ClientSessionCache = nil
		}
	}

	// A site is needed once a day. Each idle connection would cost three goroutines and a descriptor, and on a reused one
	// net/http would resend requests by itself.
	t.DisableKeepAlives = true
	t.WriteBufferSize = 1 << 10 // for one request, of some 200 bytes
	t.MaxResponseHeaderBytes = min(cmp.Or(t.MaxResponseHeaderBytes, MaxHeader), MaxHeader)
	t.TLSHandshakeTimeout = min(cmp.Or(t.TLSHandshakeTimeout, tlsTimeout), tlsTimeout)
	t.ResponseHeaderTimeout = min(cmp.Or(t.ResponseHeaderTimeout, headerTimeout), headerTimeout)

	r.watchProxy(t)
	r.guardDials(t)
	return t
}

// watchProxy notes whether the request goes through a proxy, and whether that refuses a tunnel.
func (r *Request) watchProxy(t *http.Transport) {
	if proxy := t.Proxy; proxy != nil {
		t.Proxy = func(req *http.Request) (*url.URL, error) {
			u, err := proxy(req)
			if u != nil {
				r.Proxied = true
				r.TLS = r.TLS || u.Scheme == "https"
				r.Asks = req.URL.Scheme == "http" && strings.HasPrefix(u.Scheme, "http")
			}
			return u, err
		}
	}
	connected := t.OnProxyConnectResponse
	t.OnProxyConnectResponse = func(ctx context.Context, proxy *url.URL, req *http.Request, res *http.Response) error {
		if res.StatusCode == http.StatusProxyAuthRequired {
			return ErrProxyAuth
		}
		if connected != nil {
			return connected(ctx, proxy, req, res)
		}
		return nil
	}
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// guardDials makes the connections of t end with r, and checks where they lead.
func (r *Request) guardDials(t *http.Transport) {
	//lint:ignore SA1019 a transport may still have Dial and DialTLS
	dial, secure := orOld(t.DialContext, t.Dial), orOld(t.DialTLSContext, t.DialTLS)
	if dial == nil {
		d := &net.Dialer{KeepAlive: -1, Control: func(_, address string, _ syscall.RawConn) error {
			addr, _ := netip.ParseAddrPort(address)
			return r.check(addr.Addr())
		}}
		dial = d.DialContext
	}
	t.DialContext = r.dialer(dial, false)
	if secure != nil {
		t.DialTLSContext = r.dialer(secure, true)
	}
}

func orOld(dial dialFunc, old func(network, addr string) (net.Conn, error)) dialFunc {
	if dial == nil && old != nil {
		return func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	return dial
}

// dialer makes dial, and the connection that it returns, end with r: net/http goes on dialing after the request has
// ended. decoded says that the connection has TLS of its own.
func (r *Request) dialer(dial dialFunc, decoded bool) dialFunc {
	return func(_ context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := WithTimeout(r.Context, dialTimeout, "connection")
		defer cancel()
		dialled, err := dial(ctx, network, addr)
		if err != nil {
			return nil, Cause(ctx, err)
		}
		at, _ := netip.ParseAddrPort(fmt.Sprint(dialled.RemoteAddr())) // none, as of a pipe, is the zero AddrPort
		site := at.Addr()
		_, port, _ := net.SplitHostPort(addr)
		isTunnel := port != strconv.Itoa(int(at.Port())) // at is where it begins (SOCKS, ssh), and its end is unknown
		if isTunnel {
			site = netip.Addr{}
		}
		if err := r.check(at.Addr()); err != nil && (!isTunnel || r.check(site) != nil) {
			dialled.Close()
			return nil, err
		}
		if r.Redirects == 0 && !r.Proxied {
			r.Guard.reached(site)
		}
		stop := context.AfterFunc(r.Context, func() { dialled.Close() })
		return &conn{dialled, LimitedReader{R: dialled, Left: MaxConn, Err: ErrTooMuch}, r.TLS && !decoded, stop}, nil
	}
}

// check returns an error if the guard refuses addr. A proxy's address says nothing about the site's.
func (r *Request) check(addr netip.Addr) error {
	if r.Proxied {
		return nil
	}
	// If the origin's address is still unknown, the origin was reached through a proxy. It counts as public then: no
	// redirect reaches a private host past the proxy.
	return r.Guard.judge(addr, r.Redirects, global)
}

// conn counts what is read, below TLS if TLS is ours.
type conn struct {
	net.Conn
	in   LimitedReader
	tls  bool
	stop func() bool
}

var errNoCloseNotify = fmt.Errorf("%w without TLS's close_notify", io.EOF)

// Read returns an error for an end that crypto/tls forgives: one without close_notify, which anyone on the path can
// cause. A body that ends with the connection is then incomplete (RFC 9112 §8, §9.8).
func (c *conn) Read(p []byte) (n int, err error) {
	n, err = c.in.Read(p)
	if err == io.EOF && c.tls {
		err = errNoCloseNotify
		if n > 0 {
			err = nil // what came first is read first
		}
	}
	return n, err
}

func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// WithTimeout gives ctx an end, and a cause that names what was missing then.
func WithTimeout(ctx context.Context, d time.Duration, missing string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, lateError{missing, d})
}

// lateError is the error for what did not come in time. Its text is built only when needed.
type lateError struct {
	missing string
	within  time.Duration
}

func (l lateError) Timeout() bool   { return true }
func (l lateError) Temporary() bool { return true } // so it is a net.Error
func (l lateError) Error() string   { return fmt.Sprintf("no %s within %v", l.missing, l.within) }

// Cause returns why ctx ended, if it did, and otherwise err: the end of ctx explains what happened to the connection.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// LimitedReader reads Left bytes from R and then fails with Err. An io.LimitedReader would pretend to be at its end.
type LimitedReader struct {
	R    io.Reader
	Left int64
	Err  error
}

func (l *LimitedReader) Read(p []byte) (int, error) {
	if l.Left <= 0 {
		return 0, l.Err
	}
	n, err := l.R.Read(p[:min(int64(len(p)), l.Left)])
	l.Left -= int64(n)
	return n, err
}
