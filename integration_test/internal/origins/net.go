// Package origins is a small internet in one process, for tests that need servers which
// misbehave.
//
// An origin is a name. Net.DialContext, put into an http.Transport, connects names to a
// few loopback listeners, so that ten thousand origins need no ten thousand sockets; no
// packet leaves the machine, and a name or address that is not part of the Net is one that
// does not exist. Behind the listeners is no HTTP server but one that writes the bytes it
// is told to, and stalls, resets or stops where it is told to: a Program. Faults is a
// table of such programs, with the verdict that each must lead to.
//
// Everything is counted where it can be trusted: bytes and dials at the client's side of
// the connection (the kernel hides megabytes from the server), requests at the server's.
package origins

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Origin is one site: a name, and what its server does on ports 80 and 443. The fields must
// not change once it is part of a Net.
type Origin struct {
	Name string

	// Accept has the programs that connections run before a request is read, or a TLS
	// handshake made: the nth connection the nth of them, later ones the last. A nil
	// Program, and no Accept, is a connection that is served.
	Accept []Program

	// Paths has the programs that answer requests for a path (without query), the nth
	// request the nth of them, later ones the last. Other paths get a page.
	Paths map[string][]Program

	// TLS makes port 443 what it says; the zero value is a good server.
	TLS TLSFault

	// Dial, if not nil, is what connecting comes to: for names that do not resolve and
	// hosts that do not answer.
	Dial func(ctx context.Context) (net.Conn, error)

	// Addr is the address that the client is told it is connected to. Zero is 8.8.8.8,
	// a public one.
	Addr netip.Addr

	conns atomic.Int32
	dials atomic.Int32
	bytes atomic.Int64

	mu       sync.Mutex
	requests map[string]int
	leaks    []string
}

// Counts is what an origin has seen so far.
type Counts struct {
	Dials    int            // connections asked for, at the client
	Bytes    int64          // read from connections, at the client
	Requests map[string]int // by path, at the server
	Leaks    []string       // header fields of requests for robots.txt that have no place there
}

// Counts may be called at any time.
func (o *Origin) Counts() Counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := Counts{int(o.dials.Load()), o.bytes.Load(), map[string]int{}, slices.Clone(o.leaks)}
	for path, n := range o.requests {
		c.Requests[path] = n
	}
	return c
}

// note counts a request and returns which of its path it is, from 0.
func (o *Origin) note(r *request) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.requests == nil {
		o.requests = map[string]int{}
	}
	if _, robots := o.Paths[r.path]; robots || r.path == "/robots.txt" {
		for _, field := range r.fields {
			name, _, _ := strings.Cut(field, ":")
			switch strings.ToLower(name) {
			case "authorization", "cookie", "proxy-authorization", "referer":
				o.leaks = append(o.leaks, name)
			}
		}
	}
	o.requests[r.path]++
	return o.requests[r.path] - 1
}

// Net connects names to origins. Start makes one.
type Net struct {
	listeners []net.Listener
	ca        *authority
	ends      sync.WaitGroup
	next      atomic.Uint32

	mu      sync.Mutex
	closed  bool
	origins map[string]*Origin
	open    map[net.Conn]struct{}
	meeting map[string]chan call // connections of which one side was heard of
	strays  []string
}

// call is what the server has to know of a connection.
type call struct {
	origin *Origin
	tls    bool
}

// Start returns a Net of so many listeners: one has room for some 20,000 connections in
// the minute after they end. Close ends it.
func Start(listeners int, origins ...*Origin) (*Net, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	n := &Net{ca: ca, origins: map[string]*Origin{}, open: map[net.Conn]struct{}{}, meeting: map[string]chan call{}}
	for range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			n.Close()
			return nil, err
		}
		n.listeners = append(n.listeners, l)
		n.ends.Add(1)
		go n.accept(l)
	}
	n.Add(origins...)
	return n, nil
}

// Add adds origins. One of a name that is taken replaces the former.
func (n *Net) Add(origins ...*Origin) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range origins {
		n.origins[o.Name] = o
	}
}

// Close breaks all connections, and returns when nothing of the Net is left.
func (n *Net) Close() {
	n.mu.Lock()
	n.closed = true
	for _, l := range n.listeners {
		l.Close()
	}
	for c := range n.open {
		c.Close()
	}
	n.mu.Unlock()
	n.ends.Wait()
}

// Transport returns a transport into the Net that trusts its certificates, with the
// time-outs that the expectations assume: 1 s to connect, 1 s for TLS, 2 s for a header.
func (n *Net) Transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			return n.DialContext(ctx, network, addr)
		},
		TLSClientConfig:       &tls.Config{RootCAs: n.ca.roots},
		TLSHandshakeTimeout:   2 * time.Second,
		ResponseHeaderTimeout: 3 * time.Second,
	}
}

// Strays returns the addresses that were dialled although the Net does not have them.
func (n *Net) Strays() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.strays)
}

// DialContext connects to the origin that addr names.
func (n *Net) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	o := n.origins[host]
	if o == nil || port != "80" && port != "443" {
		n.strays = append(n.strays, addr)
	}
	n.mu.Unlock()
	if o == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	o.dials.Add(1)
	if o.Dial != nil {
		return o.Dial(ctx)
	}
	return n.connect(ctx, o, port == "443")
}

func (n *Net) connect(ctx context.Context, o *Origin, tls bool) (net.Conn, error) {
	l := n.listeners[int(n.next.Add(1))%len(n.listeners)]
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	n.meet(conn.LocalAddr(), l.Addr()) <- call{o, tls}
	addr := o.Addr
	if !addr.IsValid() {
		addr = netip.AddrFrom4([4]byte{8, 8, 8, 8})
	}
	return &countedConn{Conn: conn, origin: o, remote: net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 80))}, nil
}

// meet returns the channel on which the two sides of a connection find each other: the
// dialler alone knows the name, before the first byte is sent.
func (n *Net) meet(client, server net.Addr) chan call {
	key := fmt.Sprint(client, ">", server)
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.meeting[key]
	if ok {
		delete(n.meeting, key)
		return c
	}
	c = make(chan call, 1)
	n.meeting[key] = c
	return c
}

// miss ends a meeting that the dialler did not come to.
func (n *Net) miss(conn net.Conn, meeting chan call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if key := fmt.Sprint(conn.RemoteAddr(), ">", conn.LocalAddr()); n.meeting[key] == meeting {
		delete(n.meeting, key)
	}
}

func (n *Net) accept(l net.Listener) {
	defer n.ends.Done()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !n.enter(conn) {
			conn.Close()
			return
		}
		go func() {
			defer n.ends.Done()
			defer n.leave(conn)
			meeting := n.meet(conn.RemoteAddr(), conn.LocalAddr())
			select {
			case c := <-meeting:
				n.serve(conn, c)
			case <-time.After(10 * time.Second):
				// Not one of ours, or the dialler was called off. The next connection from
				// its port must not be taken for it.
				n.miss(conn, meeting)
			}
		}()
	}
}

func (n *Net) enter(conn net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.open[conn] = struct{}{}
	n.ends.Add(1)
	return true
}

func (n *Net) leave(conn net.Conn) {
	conn.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, conn)
}

// countedConn is the client's side of a connection.
type countedConn struct {
	net.Conn
	origin *Origin
	remote net.Addr
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.origin.bytes.Add(int64(n))
	return n, err
}

func (c *countedConn) RemoteAddr() net.Addr { return c.remote }
