package fetch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
)

// ftp reads robots.txt over FTP (RFC 959, RFC 2428) through a hardened transport. It is an
// http.RoundTripper, so all that holds for HTTP holds for it. It answers 200 with the file,
// or 404: RETR was refused for good. Whatever else happens is an error.
type ftp struct{ *http.Transport }

// A site may greet with many lines, and again after the login. All that it says on one
// control connection has to fit.
const (
	maxReplyBytes = 64 << 10
	maxReplyLines = 1000
)

// Every command is a constant: no text of a server or of a URL can become one. The file is
// named relative to where the login leads (RFC 1738 §3.2.2).
const (
	cmdUser     = "USER anonymous"
	cmdPass     = "PASS anonymous@example.com" // RFC 1635: by custom a mail address, and some servers insist on its form
	cmdType     = "TYPE I"
	cmdExtended = "EPSV"
	cmdPassive  = "PASV"
	cmdRetrieve = "RETR robots.txt"
	cmdQuit     = "QUIT"
)

func (t ftp) RoundTrip(req *http.Request) (res *http.Response, err error) {
	if t.Proxy != nil {
		if proxy, err := t.Proxy(req); err != nil {
			return nil, err
		} else if proxy != nil {
			return nil, harden.Final("the transport names a proxy for ftp, but FTP is spoken directly only")
		}
	}
	addr := net.JoinHostPort(req.URL.Hostname(), cmp.Or(req.URL.Port(), ownPorts[schemeFTP]))
	control, err := harden.Dial(req.Context(), t.Transport, addr)
	if err != nil {
		return nil, err
	}
	said := &replyLimit{harden.LimitedReader{
		R: control, Left: maxReplyBytes, Err: harden.Final("more than 64 KiB of FTP replies were sent"),
	}, maxReplyLines}
	s := &session{
		ctx: req.Context(), transport: t.Transport, control: control,
		replies: textproto.NewReader(bufio.NewReader(said)), ended: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.logIn(); err != nil {
		return nil, err
	}
	if err := s.connectData(); err != nil {
		return nil, err
	}
	switch r := s.do(cmdRetrieve); {
	case r.code == 125 || r.code == 150:
		s.control.SetDeadline(time.Time{}) // that of the data counts
		go s.awaitEnd()
		return &http.Response{StatusCode: http.StatusOK, Body: s, ContentLength: -1, Request: req}, nil
	case r.isAbsence():
		s.Close()
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: req}, nil
	default:
		return nil, r.unexpected()
	}
}

// session is a control connection and the data connection for one file. As a body it is
// that file.
type session struct {
	ctx       context.Context
	transport *http.Transport
	control   net.Conn
	replies   *textproto.Reader
	data      net.Conn // nil before connectData

	ended chan struct{} // closed when the reply to the end of the file has come, or cannot
	fault error         // why the file is not whole, by that reply
}

// logIn goes from the greeting to the type of the file (RFC 959 §5.4).
func (s *session) logIn() error {
	r := s.reply("the connection")
	if r.code == 120 { // ready in some minutes, and greets again then
		r = s.reply("the connection")
	}
	if !r.done() {
		return r.unexpected()
	}
	if r = s.do(cmdUser); r.code == 331 {
		r = s.do(cmdPass)
	}
	if r.done() {
		r = s.do(cmdType)
	}
	if !r.done() {
		return r.unexpected()
	}
	return nil
}

// connectData opens the data connection, to the port that the server names and to no other
// address than the control connection's: what PASV says there could be any machine that we
// reach and the server does not (CVE-2020-8284). Active mode would let it connect to us.
func (s *session) connectData() error {
	peer, err := netip.ParseAddrPort(s.control.RemoteAddr().String())
	if err != nil {
		return harden.Final("the transport's dialer does not tell the address that it connected to: " +
			"the data connection has to go there")
	}
	port, err := s.passive()
	if err != nil {
		return err
	}
	if port < 1024 { // of a service, not of one transfer
		return harden.Final(fmt.Sprintf("FTP data port %d refused: it is below 1024", port))
	}
	s.data, err = harden.Dial(s.ctx, s.transport, netip.AddrPortFrom(peer.Addr(), port).String())
	return err
}

// passive returns the port that the server listens on. It asks with EPSV, whose reply has
// nothing else, and with PASV if the server does not know that.
func (s *session) passive() (port uint16, err error) {
	r := s.do(cmdExtended)
	read, code := extendedPort, 229
	if r.code/100 == 5 {
		r = s.do(cmdPassive)
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

// passivePort reads "h1,h2,h3,h4,p1,p2" from the first digit on: parentheses are customary
// only (RFC 1123 §4.1.2.6).
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

// done reports whether the command was carried out: only the first digit decides
// (RFC 1123 §4.1.2.11).
func (r reply) done() bool { return r.code/100 == 2 }

// isAbsence reports whether a refused RETR says that there is no file for us, as 404 and 403
// do: 550, and what else of 5yz is about the command or the file and not about the login.
func (r reply) isAbsence() bool {
	return r.code >= 500 && r.code <= 504 || r.code >= 550 && r.code <= 553
}

// unexpected returns r as an error. A 4yz may pass. A 5yz would recur, and sites count logins
// that they refused (RFC 959 §4.2.1).
func (r reply) unexpected() error {
	if r.err != nil {
		return r.err
	}
	text := fmt.Sprintf("FTP reply %d to %s: %q", r.code, r.to, cut(r.text))
	if r.code/100 == 4 {
		return errors.New(text)
	}
	return harden.Final(text)
}

func (s *session) do(command string) reply {
	s.limitTime()
	if _, err := io.WriteString(s.control, command+"\r\n"); err != nil {
		return reply{err: fmt.Errorf("FTP %s was not sent: %w", command, harden.Cause(s.ctx, err))}
	}
	return s.reply(command)
}

func (s *session) reply(to string) reply {
	s.limitTime()
	return s.receive(to)
}

func (s *session) receive(to string) reply {
	// ReadResponse would take "SSH-2.0" for the first of many lines, and wait for the others.
	if b, err := s.replies.R.Peek(3); err == nil && strings.Trim(string(b), digits) != "" {
		return reply{err: fmt.Errorf("no FTP reply to %s, but %q", to, b)}
	}
	code, text, err := s.replies.ReadResponse(0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return reply{err: fmt.Errorf("no FTP reply to %s: %w", to, harden.Cause(s.ctx, err))}
	}
	return reply{to, code, text, nil}
}

// limitTime bounds the wait for a reply, as that for the header of a response is bounded.
func (s *session) limitTime() {
	s.control.SetDeadline(time.Now().Add(s.transport.ResponseHeaderTimeout))
}

// restOfData is how long the file may go on to come after a reply that says that it will not: what was sent before
// may be under way.
const restOfData = time.Second

// awaitEnd looks at the control connection while the file comes: a server that could not make the data connection
// says so there, and nothing more (RFC 959 §5.4).
func (s *session) awaitEnd() {
	if r := s.receive("the end of " + cmdRetrieve); r.code != 226 && r.code != 250 {
		s.fault = r.unexpected()
	}
	close(s.ended)
	if s.fault != nil {
		s.data.SetReadDeadline(time.Now().Add(restOfData))
	}
}

// Read reads the file. Its end is that of the data connection, which says nothing about why
// it ended: the reply that follows does (RFC 959 §3.4.1, §5.4).
func (s *session) Read(p []byte) (int, error) {
	n, err := s.data.Read(p)
	switch {
	case err == nil || n > 0: // an end comes again
		return n, nil
	case err == io.EOF:
		s.limitTime()
		<-s.ended
	default:
		err = harden.Cause(s.ctx, err)
	}
	select {
	case <-s.ended:
		err = cmp.Or(s.fault, err)
	default:
	}
	return 0, err
}

// Close ends the session, which may be in the middle of the file. It does not wait for the
// reply to QUIT.
func (s *session) Close() error {
	if s.data != nil {
		s.data.Close()
	}
	s.limitTime()
	io.WriteString(s.control, cmdQuit+"\r\n")
	return s.control.Close()
}

// replyLimit bounds all replies of one connection together.
type replyLimit struct {
	harden.LimitedReader
	lines int
}

func (l *replyLimit) Read(p []byte) (int, error) {
	if l.lines < 0 {
		return 0, harden.Final(fmt.Sprintf("more than %d lines of FTP replies were sent", maxReplyLines))
	}
	n, err := l.LimitedReader.Read(p)
	l.lines -= bytes.Count(p[:n], []byte("\n"))
	return n, err
}
