package integration_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// at is a connection that says it is to another address than it is.
type at struct {
	net.Conn
	addr net.Addr
}

func (c at) RemoteAddr() net.Addr { return c.addr }

// A dialer that sends some names through a unix socket is where a public site would like to
// get to.
func TestARedirectDoesNotReachAnUnknownAddress(t *testing.T) {
	inside := new(seen)
	socket, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler(inside, text("")))
	s.Listener.Close()
	s.Listener = socket
	s.Start()
	defer s.Close()

	public := &net.TCPAddr{IP: net.IPv4(8, 8, 8, 8), Port: 80}
	for _, row := range []struct {
		name   string
		origin net.Addr // as the dialer tells it
		want   verdict
	}{
		{"from a public address", public, disallowAll},
		{"from a private address", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}, disallowAll},
		{"from an unknown one", &net.UnixAddr{Name: "proxy", Net: "unix"}, allowAll},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := len(inside.of("/robots.txt"))
			outside, _ := serve(t, redirectTo("http://inside.example/robots.txt"))
			base := &http.Transport{DisableKeepAlives: true}
			base.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) {
				if addr == "inside.example:80" {
					return new(net.Dialer).DialContext(ctx, "unix", socket.Addr().String())
				}
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(outside, "http://"))
				if err != nil {
					return nil, err
				}
				return at{conn, row.origin}, nil
			}
			check(t, gate(base), "http://outside.example", row.want)
			if reached := len(inside.of("/robots.txt")) > before; reached != (row.want == allowAll) {
				t.Errorf("the inner server was asked: %t", reached)
			}
		})
	}
}
