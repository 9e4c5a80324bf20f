package fetch_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// wicked is a connection of which one method is the caller's own.
type wicked struct {
	net.Conn
	read, write func([]byte) (int, error)
	closes      func() error
	addr        func() net.Addr
	deadline    func() error
}

func (w wicked) Read(p []byte) (int, error) {
	if w.read != nil {
		return w.read(p)
	}
	return w.Conn.Read(p)
}

func (w wicked) Write(p []byte) (int, error) {
	if w.write != nil {
		return w.write(p)
	}
	return w.Conn.Write(p)
}

func (w wicked) Close() error {
	defer w.Conn.Close()
	if w.closes != nil {
		return w.closes()
	}
	return nil
}

func (w wicked) RemoteAddr() net.Addr {
	if w.addr != nil {
		return w.addr()
	}
	return w.Conn.RemoteAddr()
}

func (w wicked) LocalAddr() net.Addr                { return w.RemoteAddr() }
func (w wicked) SetReadDeadline(t time.Time) error  { return w.SetDeadline(t) }
func (w wicked) SetWriteDeadline(t time.Time) error { return w.SetDeadline(t) }

func (w wicked) SetDeadline(t time.Time) error {
	if w.deadline != nil {
		return w.deadline()
	}
	return w.Conn.SetDeadline(t)
}

type wickedAddr struct{}

func (wickedAddr) Network() string { return "wicked" }
func (wickedAddr) String() string  { panic("no") }

// net/http uses a connection on goroutines of its own, where a panic would end the process.
func TestAPanicOfADialersConnectionIsHeld(t *testing.T) {
	no := func([]byte) (int, error) { panic("no") }
	count := func(n int) func([]byte) (int, error) { return func(p []byte) (int, error) { return n, nil } }
	for _, c := range []struct {
		name string
		conn wicked
		want string
	}{
		{"Read", wicked{read: no}, "disallow"},
		{"Read of too much", wicked{read: count(1 << 20)}, "disallow"},
		{"Read of less than nothing", wicked{read: count(-1)}, "disallow"},
		{"Write", wicked{write: no}, "disallow"},
		{"Close", wicked{closes: func() error { panic("no") }}, "rules"},
		{"addresses", wicked{addr: func() net.Addr { panic("no") }}, "rules"},
		{"no addresses", wicked{addr: func() net.Addr { return nil }}, "rules"},
		{"text of the address", wicked{addr: func() net.Addr { return wickedAddr{} }}, "rules"},
		{"deadlines", wicked{deadline: func() error { panic("no") }}, "rules"},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, file) }))
				if s.Start(); secure {
					s.Close()
					s = httptest.NewTLSServer(s.Config.Handler)
				}
				defer s.Close()
				base := s.Client().Transport.(*http.Transport)
				base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn := c.conn
					var err error
					conn.Conn, err = new(net.Dialer).DialContext(ctx, network, addr)
					return conn, err
				}
				f := fetch.Fetcher{Transport: base, Retries: -1, Timeout: 10 * time.Second}
				fetched(t, &f, s.URL, nil, c.want)
			})
		}
	}
}

func TestAPanicOfAProxysFunctionIsHeld(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, base := range map[string]*http.Transport{
		"GetProxyConnectHeader": {GetProxyConnectHeader: func(context.Context, *url.URL, string) (http.Header, error) { panic("no") }},
		"OnProxyConnectResponse": {OnProxyConnectResponse: func(context.Context, *url.URL, *http.Request, *http.Response) error {
			panic("no")
		}},
	} {
		base.Proxy = http.ProxyURL(at)
		f := fetch.Fetcher{Transport: base, Retries: -1}
		r := fetched(t, &f, "https://a.test", nil, "disallow")
		if !strings.Contains(fmt.Sprint(r.Err), name+": no") {
			t.Errorf("%s that panics: got Err %v, want it named", name, r.Err)
		}
	}
}

// net/http asks the connection to a SOCKS proxy for the text of its address.
func TestASOCKSProxyBehindADialerWithoutAddressesIsHeld(t *testing.T) {
	base := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "socks5", Host: "proxy.test"})}
	base.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		server.Close()
		return wicked{Conn: client, addr: func() net.Addr { return nil }}, nil
	}
	f := fetch.Fetcher{Transport: base, Retries: -1}
	fetched(t, &f, "http://a.test", nil, "disallow")
}

// A TLS dialer that agrees on HTTP/2 works for pages, with net/http's own. Here the error
// says what to set, whether the handshake was left to net/http or not.
func TestATLSDialerThatAgreesOnHTTP2IsToldTheRemedy(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, file) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig
	for _, c := range []struct {
		name, want string
		protos     []string
		lazy       bool
	}{
		{"h2", "disallow", []string{"h2", "http/1.1"}, false},
		{"h2, handshake left", "disallow", []string{"h2", "http/1.1"}, true},
		{"http/1.1", "rules", []string{"http/1.1"}, false},
		{"http/1.1, handshake left", "rules", []string{"http/1.1"}, true},
		{"nothing, handshake left", "rules", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				config := config.Clone()
				config.ServerName, config.NextProtos = "example.com", c.protos
				secure := tls.Client(conn, config)
				if c.lazy {
					return secure, nil
				}
				return secure, secure.HandshakeContext(ctx)
			}}
			defer base.CloseIdleConnections()
			if page, err := (&http.Client{Transport: base}).Get(s.URL); err != nil {
				t.Errorf("pages do not work: %v", err)
			} else {
				page.Body.Close()
			}
			f := fetch.Fetcher{Transport: base, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, s.URL), nil)
			check(t, r, err, c.want)
			if c.want == "disallow" && !(strings.Contains(fmt.Sprint(r.Err), "Fetcher.Transport") && strings.Contains(fmt.Sprint(r.Err), `"h2"`)) {
				t.Errorf("got Err %v, want one with Fetcher.Transport and h2", r.Err)
			}
			// What the error says to set.
			fetched(t, &fetch.Fetcher{Transport: &http.Transport{TLSClientConfig: config}}, s.URL, nil, "rules")
		})
	}
}
