// Package harden bounds what a server can make an http.Transport do: how often it dials,
// how much it reads, how long it takes, and where redirects lead. It knows nothing of
// robots.txt.
//
// Each request through a hardened Transport needs a Leash in its context, from the Guard of
// the origin that it is for.
package harden

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Limits of one request. A Transport may have smaller ones.
const (
	MaxHeader = 64 << 10 // bytes of a response's header
	MaxConn   = 4 << 20  // bytes read from a connection: a legal file of 500 KiB in chunks of one byte takes 3.1 MB

	dialTimeout   = 5 * time.Second // resolving a name and connecting
	tlsTimeout    = 5 * time.Second
	headerTimeout = 10 * time.Second
	maxAddresses  = 8 // addresses of one name that are tried, of IPv4 and of IPv6
)

// A Final error would recur; retrying cannot help.
type Final string

func (e Final) Error() string { return string(e) }

// Prohibited is a Final error because of Guard.PublicOnly.
type Prohibited struct{ Final }

func (e Prohibited) Unwrap() error { return e.Final }

const (
	// ErrTooMuch is the error of a read beyond MaxConn.
	ErrTooMuch = Final("more than 4 MiB were sent")

	// ErrProxyAuth: RFC 9110 §15.5.8. Only a proxy answers 407, and it has not asked the origin.
	ErrProxyAuth = Final("the proxy answered 407 Proxy Authentication Required: " +
		"give the URL that the transport's Proxy returns the right credentials")
)

// Transport returns a copy of base that opens one connection per request, reads at most
// MaxConn from it, and ends it with the request's context, whatever the server does.
func Transport(base *http.Transport) *http.Transport {
	t := base.Clone()

	// HTTP/1.1 only: in HTTP/2 a server can make a client dial again for as long as it
	// likes (go.dev/issue/52459), and send frames without end that hold no body. Protocols
	// counts before all other fields. But a transport that has spoken HTTP/2 still offers it in
	// TLS: NextProtos must go.
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.HTTP2 = nil
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil
	}

	// Connections to a site are needed once a day. Each kept one would cost three goroutines
	// and a descriptor; on a reused one, net/http would resend requests by itself.
	t.DisableKeepAlives = true
	t.WriteBufferSize = 1 << 10 // for one request, of some 200 bytes
	t.MaxResponseHeaderBytes = smaller(t.MaxResponseHeaderBytes, MaxHeader)
	t.TLSHandshakeTimeout = smaller(t.TLSHandshakeTimeout, tlsTimeout)
	t.ResponseHeaderTimeout = smaller(t.ResponseHeaderTimeout, headerTimeout)

	guardProxy(t)
	t.DialContext = leashed(plainDialer(t))
	//lint:ignore SA1019 a transport may still have it
	if old := t.DialTLS; t.DialTLSContext == nil && old != nil {
		t.DialTLSContext = func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	if t.DialTLSContext != nil {
		t.DialTLSContext = overHTTP1(leashed(t.DialTLSContext))
	}
	return t
}

// Anonymous returns t, or a copy of it, without client certificates and without sessions to
// resume in which one was presented.
func Anonymous(t *http.Transport) *http.Transport {
	if t.TLSClientConfig == nil {
		return t
	}
	t = t.Clone()
	t.TLSClientConfig.Certificates = nil
	t.TLSClientConfig.GetClientCertificate = nil
	t.TLSClientConfig.ClientSessionCache = nil
	return t
}

// guardProxy notes which requests go through a proxy, and holds the panics of the caller's
// functions for proxies.
func guardProxy(t *http.Transport) {
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
	t.OnProxyConnectResponse = func(
		ctx context.Context, proxy *url.URL, req *http.Request, res *http.Response,
	) (err error) {
		defer caught(&err, "OnProxyConnectResponse")
		if connected != nil {
			err = connected(ctx, proxy, req, res)
		}
		if err == nil && res.StatusCode == http.StatusProxyAuthRequired {
			err = ErrProxyAuth
		}
		return err
	}
}

// caught makes an error of a panic in what the caller has set in the transport. net/http
// calls it on goroutines of its own, where a panic would end the process.
func caught(err *error, what string) {
	if p := recover(); p != nil {
		*err = Final(fmt.Sprintf("panic in the transport's %s: %v", what, p))
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
	//lint:ignore SA1019 a transport may still have it
	switch dial := t.Dial; {
	case t.DialContext != nil:
		return t.DialContext
	case dial != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return dial(network, addr) }
	}
	d := &net.Dialer{KeepAlive: -1, ControlContext: checkAddress}
	return d.DialContext
}

// overHTTP1 refuses the connections of a leashed TLS dialer that are for another protocol.
// It finishes the handshake to tell: net/http would for a *tls.Conn, but sees a leashedConn.
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
	ctx, cancel := WithTimeout(ctx, tlsTimeout, "TLS handshake")
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		return Cause(ctx, err)
	}
	if p := c.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
		return Final(fmt.Sprintf("the transport's DialTLSContext agreed on %q, "+
			"but requests are sent over HTTP/1.1 only: "+
			"set Fetcher.Transport to an http.Transport without DialTLSContext, or with one that offers http/1.1 alone", p))
	}
	return nil
}

// WithTimeout gives ctx an end, and a cause that names what was missing then. If d is
// negative, there is none.
func WithTimeout(ctx context.Context, d time.Duration, missing string) (context.Context, context.CancelFunc) {
	if d < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, late{missing, d})
}

// Budget is a time-out that can be stopped and go on.
type Budget struct {
	timer *time.Timer // nil: there is none
	end   time.Time
}

// WithBudget is WithTimeout, with a time-out that can be stopped.
func WithBudget(ctx context.Context, d time.Duration, missing string) (context.Context, *Budget, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &Budget{end: time.Now().Add(d)}
	if d >= 0 {
		b.timer = time.AfterFunc(d, func() { cancel(late{missing, d}) })
	}
	return ctx, b, func() {
		if b.timer != nil {
			b.timer.Stop()
		}
		cancel(nil)
	}
}

// Without runs f, whose time does not count, and returns how long it took.
func (b *Budget) Without(f func()) time.Duration {
	begin := time.Now()
	stopped := b.timer != nil && b.timer.Stop()
	f()
	took := time.Since(begin)
	if stopped {
		b.end = b.end.Add(took)
		b.timer.Reset(time.Until(b.end))
	}
	return took
}

// late is the error of what did not come in time. Most of the time it does come, so the text
// is written when it is asked for: to write it with each request took a tenth of a GET.
type late struct {
	missing string
	within  time.Duration
}

func (l late) Timeout() bool { return true }
func (l late) Error() string { return fmt.Sprintf("no %s within %v", l.missing, l.within) }

// Cause returns why ctx ended, if it did, and otherwise err: the end of ctx explains what
// became of the connection.
func Cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// LimitedReader reads Left bytes from R and then fails with Err. An io.LimitedReader would
// pretend that the end was reached.
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

var errNoCloseNotify = errors.New("the connection ended without TLS's close_notify")
