package proxy

// Tunnels that are not looked into. Server.Blind decides whether there may be one, and until when; here it is
// opened, held to its host, copied both ways, and closed when the rules change against it.

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// blind opens a tunnel that is not looked into. It returns when that has ended, and takes a place for so
// long. Once the client has been told that the tunnel is there, a refusal can only close it, and is counted
// and logged.
func (s *Server) blind(w http.ResponseWriter, r *http.Request, to Target) {
	if !s.underway.Take() {
		s.answer(w, r, busy())
		return
	}
	defer s.underway.Free()
	var site net.Conn
	until, err := s.Blind(r.Context(), to)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), s.Limits.Patience)
		defer cancel()
		site, err = s.Dial(ctx, "tcp", to.String())
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer site.Close()
	c, err := s.established(w)
	if err != nil {
		return
	}
	defer c.Close()
	// Close ends it so: the server does not know a connection that was hijacked.
	defer context.AfterFunc(s.ctx, func() { c.Close(); site.Close() })()
	s.Count(Tunneled)
	if !until.IsZero() {
		err = s.begin(site, c, to)
	}
	if err == nil {
		err = s.carry(r.Context(), site, c, to, until)
	}
	if err != nil {
		why := s.Explain(err)
		s.Count(why.kind())
		s.Log.Debug("closed", "tunnel", to, "because", why.Detail)
	}
}

// carry copies both ways until both have ended. If the tunnel may not be there any longer, carry ends it and
// returns why. Both goroutines have ended when it returns.
func (s *Server) carry(ctx context.Context, site, c net.Conn, to Target, until time.Time) error {
	ctx, ended := context.WithCancel(ctx)
	var used atomic.Int64 // when something was carried, either way, in nanoseconds
	used.Store(time.Now().UnixNano())
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { s.copy(site, c, &used) })
	both.Go(func() { s.copy(c, site, &used) })
	go func() { both.Wait(); ended() }()
	err := s.watch(ctx, to, until)
	if err != nil {
		c.Close()
		site.Close()
	}
	return err
}

// watch asks Blind again each time that its answer ends, but not more than once a second, until ctx does. The
// error is why the tunnel may not be there any longer. An error because ctx has ended is none.
func (s *Server) watch(ctx context.Context, to Target, until time.Time) error {
	for !until.IsZero() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(time.Until(until), time.Second)):
		}
		var err error
		if until, err = s.Blind(ctx, to); err != nil && ctx.Err() == nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// begin passes on what a tunnel begins with, if that is a ClientHello for its host. Otherwise a tunnel to a
// site that forbids nothing would lead to any other on the same address, and to protocols in which robots.txt
// has no say.
func (s *Server) begin(site, c net.Conn, to Target) error {
	c.SetReadDeadline(time.Now().Add(s.Limits.Ask))
	name, hello, err := readHello(c)
	if err != nil {
		return otherwise("no handshake of TLS came in the tunnel to %s: %v", to, err)
	}
	if !to.isNamed(name) {
		const unrecognized = "\x15\x03\x03\x00\x02\x02\x70" // RFC 8446 §6: an alert that is fatal
		c.SetWriteDeadline(time.Now().Add(s.Limits.Ask))
		io.WriteString(c, unrecognized)
		return otherwise("the tunnel to %s is for %.256q: the name in the ClientHello has to be that of CONNECT", to, name)
	}
	site.SetWriteDeadline(time.Now().Add(s.Limits.Patience))
	_, err = site.Write(hello)
	return err
}

// otherwise is the error of a tunnel that carries something else than it was opened for. It counts as
// "tunnel".
func otherwise(format string, args ...any) error {
	return web.NewProblem(http.StatusForbidden, "tunnel", format, args...)
}

// isNamed reports whether t is the host that a ClientHello names (RFC 6066 §3), which an IP address need not be.
// With Encrypted Client Hello that is the outer name, and the inner one is not seen.
func (t Target) isNamed(name string) bool {
	if addr, err := netip.ParseAddr(t.Host); err == nil {
		named, err := netip.ParseAddr(name)
		return name == "" || err == nil && named == addr
	}
	return strings.EqualFold(name, strings.TrimSuffix(t.Host, "."))
}

// errHello ends a handshake whose ClientHello was read: crypto/tls has no other way to read one.
var errHello = errors.New("the ClientHello was read")

// readHello reads a ClientHello, as large and in as many records as crypto/tls takes, and returns the name in it
// and all that was read. Nothing is answered.
func readHello(c net.Conn) (name string, read []byte, err error) {
	r := &recorder{Conn: c}
	err = tls.Server(r, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, errHello
	}}).Handshake()
	if !errors.Is(err, errHello) {
		return "", nil, err
	}
	return name, r.read.Bytes(), nil
}

// recorder keeps what it reads, to replay it to the site, and writes nothing: the client must not notice the
// proxy.
type recorder struct {
	net.Conn
	read bytes.Buffer
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.read.Write(p[:n])
	return n, err
}

func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// copy copies one way. It ends if nothing was carried, either way, for the time of Limits.Tunnel: one side may be silent
// for as long as the other speaks. What ends one way with an error ends both; an end of what is sent ends that way alone.
func (s *Server) copy(to, from net.Conn, used *atomic.Int64) {
	idle := s.Limits.Tunnel
	buf := make([]byte, 32<<10)
	for {
		// Bytes the other way move the deadline too: then a time-out here is none, and the loop goes on.
		from.SetReadDeadline(time.Unix(0, used.Load()).Add(idle))
		n, err := from.Read(buf)
		if n > 0 {
			used.Store(time.Now().UnixNano())
			to.SetWriteDeadline(time.Now().Add(idle))
			if _, err := to.Write(buf[:n]); err != nil {
				from.Close()
				to.Close()
				return
			}
		}
		timeout, _ := errors.AsType[net.Error](err)
		switch {
		case err == nil, timeout != nil && timeout.Timeout() && time.Since(time.Unix(0, used.Load())) < idle:
		case err == io.EOF && closeWrite(to) == nil: // the other half goes on
			return
		default:
			from.Close()
			to.Close()
			return
		}
	}
}

// closeWrite tells the other end that no more comes, if c can.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
