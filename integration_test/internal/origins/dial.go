package origins

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"
)

// Refused dials a port of this machine that nothing listens on (RFC 1078, long extinct).
func Refused(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
}

// Unanswered is a host that drops what it is sent: connecting never ends by itself.
func Unanswered(ctx context.Context) (net.Conn, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Deaf is a dialler that does not notice when the connection is not wanted any more, for
// as long as hold is open.
func Deaf(hold <-chan struct{}) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		<-hold
		return nil, errors.New("too late")
	}
}

// Resolved dials a name with a resolver that answers with code and addrs.
func Resolved(code dnsmessage.RCode, addrs ...netip.Addr) func(context.Context) (net.Conn, error) {
	d := net.Dialer{Resolver: Resolver(code, addrs...)}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp4", "name.test.:1") }
}

// Resolver gives every question for addresses the same answer: those of addrs that it is for.
func Resolver(code dnsmessage.RCode, addrs ...netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answer(server, code, addrs)
		return client, nil
	}}
}

// answer speaks DNS over TCP (RFC 1035 §4.2.2) for one question. Whatever goes wrong ends
// the connection, and the test by its expectation.
func answer(conn net.Conn, code dnsmessage.RCode, addrs []netip.Addr) {
	defer conn.Close()
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	var m dnsmessage.Message
	if _, err := io.ReadFull(conn, question); err != nil || m.Unpack(question) != nil || len(m.Questions) != 1 {
		return
	}
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RCode: code, RecursionAvailable: true}
	m.Additionals = nil
	for _, a := range addrs {
		q := m.Questions[0]
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	if packed, err := m.Pack(); err == nil {
		conn.Write(binary.BigEndian.AppendUint16(nil, uint16(len(packed))))
		conn.Write(packed)
	}
}
