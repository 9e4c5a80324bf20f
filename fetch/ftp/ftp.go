// Package ftp reads files over FTP (RFC 959, RFC 2428) for an http.Transport that it is registered with. Below the
// gate, such a transport has robots.txt read over FTP, too. Copies of an http.Transport forget what was registered, so
// with fetch.PublicOnly it is the copy that needs it, with the copy's dialer:
//
//	t := fetch.PublicOnly(http.DefaultTransport.(*http.Transport))
//	t.RegisterProtocol("ftp", &ftp.Transport{DialContext: t.DialContext})
package ftp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// Transport is an http.RoundTripper that answers a GET for an ftp URL with the file, after an anonymous login. The zero
// value is ready. It is safe for concurrent use.
//
// It answers 200 with the file, and 404 if RETR is refused with 500 to 502, 504 or 550 to 553. Anything else is an
// error, a refused login too: full servers refuse logins. An error with a reply wraps a *textproto.Error with its code.
// A body that ends without error is whole. The data connection is passive (EPSV, else PASV), goes to the address of the
// control connection, whatever the server names, and to no port below 1024. Proxies are not used.
type Transport struct {
	// DialContext makes both connections. If nil, a net.Dialer does.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// Timeout bounds each connection's making and each wait for a reply. If zero, 10 seconds. If negative, there is none.
	Timeout time.Duration
}

const (
	defaultTimeout = 10 * time.Second
	maxReplyBytes  = 64 << 10 // of all that a site says on one control connection: some greet with many lines
	maxReplyLines  = 1000
)

// RoundTrip sends one request, in its own session.
func (t *Transport) RoundTrip(req *http.Request) (res *http.Response, err error) {
	if req.Body != nil {
		req.Body.Close()
	}
	name, err := fileName(req)
	if err != nil {
		return nil, err
	}
	s := &session{ctx: req.Context(), dialer: t.DialContext, ended: make(chan struct{})}
	if s.timeout = cmp.Or(t.Timeout, defaultTimeout); s.timeout < 0 {
		s.timeout = math.MaxInt64
	}
	if s.dialer == nil {
		s.dialer = new(net.Dialer).DialContext
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	s.control, err = s.dial(net.JoinHostPort(req.URL.Hostname(), cmp.Or(req.URL.Port(), "21")))
	if err != nil {
		return nil, err
	}
	s.replies = textproto.NewReader(bufio.NewReader(&replyLimit{s.control, maxReplyBytes, maxReplyLines}))
	if err = s.logIn(); err == nil {
		err = s.connectData()
	}
	if err != nil {
		return nil, err
	}
	res = &http.Response{Status: "200 OK", StatusCode: 200, Header: http.Header{}, Body: s, ContentLength: -1, Request: req}
	switch r := s.do("RETR " + name); {
	case r.code == 125 || r.code == 150:
		s.control.SetDeadline(time.Time{}) // while the data flows, the context bounds the wait
		go s.awaitEnd()
	case r.code >= 500 && r.code <= 502 || r.code == 504 || r.code >= 550 && r.code <= 553: // about the file
		s.Close()
		res.StatusCode, res.Body, res.ContentLength = http.StatusNotFound, http.NoBody, 0
		res.Status = fmt.Sprintf("404 FTP %d %.256s", r.code, r.text)
	default:
		return nil, r.unexpected()
	}
	return res, nil
}

// fileName returns the name that RETR gets: relative to where the login leads, so /%2Fpub/a is /pub/a there (RFC 1738
// §3.2.2).
func fileName(req *http.Request) (string, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), ";type=")
	switch {
	case req.Method != "" && req.Method != http.MethodGet:
		return "", fmt.Errorf("ftp: method %.20q: files can be read only", req.Method)
	case req.URL.User != nil:
		return "", errors.New("ftp: the URL names a user: the login is anonymous")
	case name == "" || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "", fmt.Errorf("ftp: the path %.256q names no file", req.URL.Path)
	}
	return name, nil
}

// session is a control connection and the data connection for one file. As a body it is that file.
type session struct {
	ctx     context.Context
	dialer  func(ctx context.Context, network, addr string) (net.Conn, error)
	timeout time.Duration
	control net.Conn // nil before it is made, like data
	replies *textproto.Reader
	data    net.Conn
	stops   []func() bool // what would close them with the request

	ended  chan struct{} // closed when the reply after the file has come, or cannot
	endErr error         // why the file is not whole, by that reply
}

// dial makes a connection that ends with the request.
func (s *session) dial(addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	defer cancel()
	c, err := s.dialer(ctx, "tcp", addr)
	if err != nil {
		return nil, s.cause(err)
	}
	s.stops = append(s.stops, context.AfterFunc(s.ctx, func() { c.Close() }))
	return c, nil
}

// cause returns why the request ended, if it did, and otherwise err.
func (s *session) cause(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// logIn goes from the greeting to the type of the file (RFC 959 §5.4).
func (s *session) logIn() error {
	r := s.reply("the connection")
	if r.code == 120 { // not ready yet: it greets again when it is
		r = s.reply("the connection")
	}
	if !r.done() {
		return r.unexpected()
	}
	if r = s.do("USER anonymous"); r.code == 331 {
		r = s.do("PASS anonymous@example.com") // RFC 1635: by custom a mail address, and some insist on its form
	}
	if r.done() {
		r = s.do("TYPE I")
	}
	if !r.done() {
		return r.unexpected()
	}
	return nil
}

// connectData opens the data connection, to the port that the server names and to no other address than the control
// connection's: what PASV says there could be any machine that we reach and the server does not (CVE-2020-8284). Active
// mode would let it connect to us.
func (s *session) connectData() error {
	peer := netip.AddrPort{}
	if at := s.control.RemoteAddr(); at != nil {
		peer, _ = netip.ParseAddrPort(at.String())
	}
	if !peer.IsValid() {
		return errors.New("ftp: the dialer does not tell the address that it connected to: the data connection has to go there")
	}
	port, err := s.passive()
	if err != nil {
		return err
	}
	if port < 1024 { // of a service, not of one transfer
		return fmt.Errorf("ftp: data port %d refused: it is below 1024", port)
	}
	s.data, err = s.dial(netip.AddrPortFrom(peer.Addr(), port).String())
	return err
}

// passive returns the port that the server listens on. It asks with EPSV, whose reply has nothing else, and with PASV
// if the server does not know that.
func (s *session) passive() (port uint16, err error) {
	r := s.do("EPSV")
	read, code := extendedPort, 229
	if r.code/100 == 5 {
		r = s.do("PASV")
		read, code = passivePort, 227
	}
	port, ok := read(r.text)
	if r.code != code || !ok {
		return 0, r.unexpected()
	}
	return port, nil
}

// extendedPort reads "(|||port|)", with any delimiter (RFC 2428 §3).
func extendedPort(text string) (uint16, bool) {
	_, s, _ := strings.Cut(text, "(")
	if len(s) < 3 || s[0] != s[1] || s[0] != s[2] {
		return 0, false
	}
	number, _, closed := strings.Cut(s[3:], s[:1])
	port, err := strconv.ParseUint(number, 10, 16)
	return uint16(port), closed && err == nil
}

// passivePort reads "h1,h2,h3,h4,p1,p2" from the first digit on: parentheses are only customary (RFC 1123 §4.1.2.6).
func passivePort(text string) (uint16, bool) {
	numbers := strings.SplitN(text[max(0, strings.IndexAny(text, digits)):], ",", 6)
	if len(numbers) < 6 {
		return 0, false
	}
	last := numbers[5]
	numbers[5] = last[:len(last)-len(strings.TrimLeft(last, digits))]
	var port uint16
	for _, n := range numbers {
		b, err := strconv.ParseUint(n, 10, 8)
		if err != nil {
			return 0, false
		}
		port = port<<8 | uint16(b) // of the last two
	}
	return port, true
}

const digits = "0123456789"

// reply is what the server answered. If it answered nothing, its code is 0.
type reply struct {
	to   string
	code int
	text string
	err  error // why there is none
}

// done reports whether the command was carried out (RFC 1123 §4.1.2.11).
func (r reply) done() bool { return r.code/100 == 2 }

// unexpected returns r as an error.
func (r reply) unexpected() error {
	if r.err != nil {
		return r.err
	}
	return fmt.Errorf("ftp: reply to %s: %w", r.to, &textproto.Error{Code: r.code, Msg: r.text[:min(len(r.text), 256)]})
}

func (s *session) do(command string) reply {
	s.limitTime()
	verb, _, _ := strings.Cut(command, " ")
	if _, err := io.WriteString(s.control, command+"\r\n"); err != nil {
		return reply{err: fmt.Errorf("ftp: %s was not sent: %w", verb, s.cause(err))}
	}
	return s.reply(verb)
}

func (s *session) reply(to string) reply {
	s.limitTime()
	return s.receive(to)
}

func (s *session) receive(to string) reply {
	// ReadResponse would take "SSH-2.0" for the first of many lines, and wait for the others.
	if b, err := s.replies.R.Peek(3); err == nil && strings.Trim(string(b), digits) != "" {
		return reply{err: fmt.Errorf("ftp: no reply to %s, but %q", to, b)}
	}
	code, text, err := s.replies.ReadResponse(0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return reply{err: fmt.Errorf("ftp: no reply to %s: %w", to, s.cause(err))}
	}
	return reply{to, code, text, nil}
}

// limitTime bounds the wait for a reply, as that for the header of a response is bounded.
func (s *session) limitTime() { s.control.SetDeadline(time.Now().Add(s.timeout)) }

// awaitEnd looks at the control connection while the file comes: a server that could not make the data connection
// says so there, and nothing more (RFC 959 §5.4).
func (s *session) awaitEnd() {
	if r := s.receive("the end of RETR"); r.code != 226 && r.code != 250 {
		s.endErr = r.unexpected()
	}
	close(s.ended)
	if s.endErr != nil {
		s.data.SetReadDeadline(time.Now().Add(time.Second)) // what was sent before may be under way
	}
}

// Read reads the file. Its end is that of the data connection, which says nothing about why it ended: the reply that
// follows does (RFC 959 §3.4.1, §5.4).
func (s *session) Read(p []byte) (int, error) {
	n, err := s.data.Read(p)
	switch {
	case err == nil || n > 0: // an end comes again
		return n, nil
	case err == io.EOF:
		s.limitTime()
		<-s.ended
	default:
		err = s.cause(err)
	}
	select {
	case <-s.ended:
		err = cmp.Or(s.endErr, err)
	default:
	}
	return 0, err
}

// Close ends the session, which may be in the middle of the file. It does not wait for the reply to QUIT.
func (s *session) Close() error {
	for _, stop := range s.stops {
		stop()
	}
	if s.data != nil {
		s.data.Close()
	}
	if s.control == nil {
		return nil
	}
	s.limitTime()
	io.WriteString(s.control, "QUIT\r\n")
	return s.control.Close()
}

// replyLimit bounds all replies of one connection together.
type replyLimit struct {
	r            io.Reader
	bytes, lines int
}

func (l *replyLimit) Read(p []byte) (int, error) {
	if l.bytes <= 0 || l.lines < 0 {
		return 0, fmt.Errorf("more than %d KiB, or %d lines, of replies were sent", maxReplyBytes>>10, maxReplyLines)
	}
	n, err := l.r.Read(p[:min(len(p), l.bytes)])
	l.bytes -= n
	l.lines -= bytes.Count(p[:n], []byte("\n"))
	return n, err
}
