package proxy

// CONNECT, and what happens inside of tunnels. There is none that is not looked into.

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
)

// connect answers CONNECT. Inside the tunnel each request is decided on, if it can be seen: without TLS, or with a
// certificate that the client takes. Else there is no tunnel: robots.txt is about paths, which would not be seen.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	u := &url.URL{Scheme: "https", Host: r.RequestURI} // a host and a port, and nothing else (RFC 9110 §9.3.6)
	o, err := fetch.OriginOf(u)
	if err == nil && u.Port() == "" {
		err = errors.New("the port is missing")
	}
	if err == nil {
		err = checkPort(u.Port())
	}
	if err != nil {
		s.answer(w, r, bad("CONNECT %.256q: %v", r.RequestURI, err))
		return
	}
	host := o.RobotsURL().Hostname()
	// What a name resolves to, and the rarer networks, are checked when a request in the tunnel is sent.
	if addr, err := netip.ParseAddr(host); err == nil && s.Public {
		if addr = addr.Unmap(); !addr.IsGlobalUnicast() || addr.IsPrivate() {
			s.refuse(w, r, fetch.ErrNotPublic)
			return
		}
	}
	to, why := net.JoinHostPort(host, u.Port()), "this proxy has no CA"
	var leaf *tls.Certificate // to end the TLS of the tunnel with
	if s.Authority != nil {
		if leaf, err = s.Authority.Leaf(host); err != nil {
			why = err.Error()
		}
	}
	if leaf == nil && u.Port() != "80" { // HTTP without TLS is what that port is for
		s.refuse(w, r, web.NewProblem(http.StatusForbidden, "tunnel", "no tunnel to %s, in which no request would be seen: %s. "+
			"Make a CA with robots proxy ca, give it to the proxy (--ca), and have the client trust it", to, why))
		return
	}
	s.open(w, to, leaf)
}

// open begins a tunnel. It hands the connection over and returns: from then on it is like one that was accepted, and
// each request in it takes its own place.
func (s *Server) open(w http.ResponseWriter, to string, leaf *tls.Certificate) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	conn.SetDeadline(time.Now().Add(s.Limits.Ask))
	io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	// What the client begins with tells TLS from HTTP, on any port.
	first, err := rw.Reader.Peek(1)
	conn.SetDeadline(time.Time{})
	c := &end{Conn: conn, rest: rw.Reader, target: to, leaf: leaf}
	const handshake = 22 // RFC 8446 §5.1: a TLS record that begins one
	switch {
	case err == nil && first[0] != handshake:
		s.accept(c)
	case err == nil && leaf != nil:
		s.accept(tls.Server(c, endTLS))
	default: // TLS on the port of HTTP, without a certificate to end it
		c.Close()
	}
}

// endTLS ends the TLS of all tunnels. Which certificate is used depends on the tunnel, not on the name in the
// ClientHello: each request in it must be for that host anyway.
var endTLS = &tls.Config{
	NextProtos: []string{"h2", "http/1.1"},
	GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return hello.Conn.(*end).leaf, nil
	},
}

// end is the client's end of a tunnel. withTarget and endTLS find it in the connection that the server has.
type end struct {
	net.Conn
	rest   *bufio.Reader // the first bytes may have come with the request
	target string        // of the tunnel, a host and a port
	leaf   *tls.Certificate
}

func (c *end) Read(p []byte) (int, error) { return c.rest.Read(p) }

// targetKey is the context key of where a tunnel leads to. A request without one did not come out
// of a tunnel.
type targetKey struct{}

// withTarget adds the origin to the context of a connection that came out of a tunnel.
func withTarget(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if c, ok := c.(*end); ok {
		return context.WithValue(ctx, targetKey{}, c.target)
	}
	return ctx
}

// inside answers a request in a tunnel. All of them must be for the origin that it leads to, or they are
// answered with 421 (RFC 9110 §15.5.20): what is in a tunnel goes nowhere else.
func (s *Server) inside(w http.ResponseWriter, r *http.Request, to string) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u := *r.URL
	if u.Host == "" {
		u.Scheme, u.Host = scheme, r.Host
	}
	here, err := fetch.OriginOf(&url.URL{Scheme: scheme, Host: to})
	asked, other := fetch.OriginOf(&u)
	if err != nil || other != nil || here != asked || u.User != nil || r.Method == http.MethodConnect {
		p := web.NewProblem(http.StatusMisdirectedRequest, "target", "this tunnel leads to %s, not to %.256s",
			to, u.Scheme+"://"+u.Host)
		s.answer(w, r, Refusal{p, "http_request_error"})
		return
	}
	r = r.WithContext(r.Context())
	r.URL = &u
	s.pass(w, r)
}

// tunnel is a net.Listener of one connection, and closed behind that.
type tunnel chan net.Conn

// accept has the server answer c, which another listener has accepted, as if it had come to it.
func (s *Server) accept(c net.Conn) {
	l := make(tunnel, 1)
	l <- c
	close(l)
	s.server.Serve(l) // an error says that there are no more, or that the server ends
}

func (l tunnel) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close closes the connection if it was not accepted.
func (l tunnel) Close() error {
	for c := range l {
		c.Close()
	}
	return nil
}

func (l tunnel) Addr() net.Addr { return &net.TCPAddr{} }

// errPort: what listens there does not speak HTTP, but may take a request for its own protocol.
var errPort = errors.New("the port is not one of the web's")

// checkPort refuses the ports that browsers refuse (https://fetch.spec.whatwg.org/#port-blocking), and
// all others that only the system can listen on. An empty one is the usual one of the scheme.
func checkPort(port string) error {
	n, err := strconv.ParseUint(cmp.Or(port, "80"), 10, 16)
	if err == nil && (n < 1024 && n != 80 && n != 443 || slices.Contains(blocked[:], n)) {
		err = fmt.Errorf("port %d: %w", n, errPort)
	}
	return err
}

// blocked are the ports from 1024 that browsers refuse.
var blocked = [...]uint64{
	1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}
