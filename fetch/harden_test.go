package fetch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// world is a transport to servers in memory, by address as it is dialled. What the client
// is told of the peer is the address given.
type world map[string]struct{ addr, message string }

func (w world) transport() *http.Transport {
	return &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		s, ok := w[addr]
		if !ok {
			return nil, errors.New("no server is at " + addr)
		}
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				io.WriteString(server, s.message)
			}
		}()
		if s.addr == "" {
			return client, nil
		}
		return peer{client, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(s.addr), 80))}, nil
	}}
}

type peer struct {
	net.Conn
	addr net.Addr
}

func (p peer) RemoteAddr() net.Addr { return p.addr }

// A copy of a transport that has spoken HTTP/2 would still offer it, and then wait for an answer that it cannot read. That
// of PublicOnly speaks it.
func TestATransportThatHasSpokenHTTP2IsReadOverHTTP1(t *testing.T) {
	var protos []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protos = append(protos, r.Proto)
		io.WriteString(w, file)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	base := s.Client().Transport.(*http.Transport)
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	f := fetch.Fetcher{Transport: base}
	fetched(t, &f, s.URL, nil, "rules")
	copied := fetch.PublicOnly(base)
	copied.DialContext = new(net.Dialer).DialContext // to this machine
	if res, err = (&http.Client{Transport: copied}).Get(s.URL); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if want := []string{"HTTP/2.0", "HTTP/1.1", "HTTP/2.0"}; !slices.Equal(protos, want) || base.DisableKeepAlives {
		t.Errorf("spoke %q, want %q", protos, want)
	}
}

//lint:file-ignore SA1019 the dialers that net/http no longer recommends must work, too

func TestTheCallersDialersAreKept(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, file) }))
	defer s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	to := func(network, _ string) (net.Conn, error) { return net.Dial(network, s.Listener.Addr().String()) }
	secure := func(protos ...string) func(string, string) (net.Conn, error) {
		return func(network, _ string) (net.Conn, error) {
			return tls.Dial(network, s.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: protos})
		}
	}
	config := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	s.TLS.NextProtos = []string{"http/1.1", "h2"}
	for _, c := range []struct {
		name, want string
		base       *http.Transport
	}{
		{"DialContext", "rules", &http.Transport{TLSClientConfig: config, DialContext: func(_ context.Context, n, a string) (net.Conn, error) { return to(n, a) }}},
		{"Dial", "rules", &http.Transport{TLSClientConfig: config, Dial: to}},
		{"DialTLSContext", "rules", &http.Transport{DialTLSContext: func(_ context.Context, n, a string) (net.Conn, error) { return secure()(n, a) }}},
		{"DialTLS", "rules", &http.Transport{DialTLS: secure("http/1.1")}},
		{"Proxy that fails", "disallow", &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("no") }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fetch.Fetcher{Transport: c.base, Retries: -1}
			r := fetched(t, &f, "https://a.test", nil, c.want)
			if c.want == "disallow" && !strings.Contains(fmt.Sprint(r.Err), "no") {
				t.Errorf("got Err %v, want one that says no", r.Err)
			}
		})
	}
}

// silent is a transport to a server that reads and says nothing but message, and notes when the client has gone.
func silent(message string, gone *time.Time) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			go io.WriteString(server, message)
			io.Copy(io.Discard, server)
			*gone = time.Now()
		}()
		return client, nil
	}}
}

func TestEachPhaseHasItsTimeAndTheSmallerOneHolds(t *testing.T) {
	for _, c := range []struct {
		name, origin        string
		base, attempt, want time.Duration // base: of header and TLS, in the caller's transport
	}{
		{"header", "http://a.test", 0, 0, 10 * time.Second},
		{"header, smaller", "http://a.test", time.Second, 0, time.Second},
		{"header, larger", "http://a.test", time.Hour, 0, 10 * time.Second},
		{"TLS", "https://a.test", 0, 0, 5 * time.Second},
		{"TLS, smaller", "https://a.test", time.Second, 0, time.Second},
		{"attempt", "http://a.test", 0, 3 * time.Second, 3 * time.Second},
		{"attempt, in TLS", "https://a.test", 0, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gone time.Time
				base := silent("", &gone)
				base.ResponseHeaderTimeout, base.TLSHandshakeTimeout = c.base, c.base
				f := fetch.Fetcher{Transport: base, Timeout: 2 * c.attempt, Retries: -1}
				start := time.Now()
				r := fetched(t, &f, c.origin, nil, "disallow")
				synctest.Wait()
				if said := strings.Contains(r.String(), "no complete answer to one request within 3s"); said != (c.attempt > 0) || cause(r) != "connection_timeout" {
					t.Errorf("got Err %v, cause %q, want connection_timeout, and the 3s named: %v", r.Err, cause(r), c.attempt > 0)
				}
				if took, left := time.Since(start), gone.Sub(start); took != c.want || left != c.want {
					t.Errorf("took %v and hung up after %v, want %v", took, left, c.want)
				}
			})
		})
	}
}

func TestAHeaderHas64KiB(t *testing.T) {
	for _, c := range []struct {
		size int
		base int64
		want string
	}{
		{60 << 10, 0, "rules"},
		{64 << 10, 0, "disallow"},
		{1 << 20, 10 << 20, "disallow"},
		{10 << 10, 8 << 10, "disallow"},
	} {
		message := "HTTP/1.1 200 OK\r\nContent-Length: 33\r\nX: " + strings.Repeat("x", c.size) + "\r\n\r\n" + file
		base := piped(func() []byte { return []byte(message) })
		base.MaxResponseHeaderBytes = c.base
		f := fetch.Fetcher{Transport: base, Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		if err != nil || verdict(r) != c.want {
			t.Errorf("header of %d bytes, base allows %d: got %s, want %s (%v, %v)", c.size, c.base, verdict(r), c.want, err, r.Err)
		}
	}
}

// A trace for interim responses would lift net/http's limit on them.
func TestNothingOfTheCallersContextReachesTheTransport(t *testing.T) {
	type key struct{}
	f := fetch.Fetcher{Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		if r.Context().Value(key{}) != nil || httptrace.ContextClientTrace(r.Context()) != nil {
			t.Error("the transport sees the caller's values")
		}
		return response(200, file), nil
	})}
	ctx := httptrace.WithClientTrace(context.WithValue(t.Context(), key{}, 1), &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error { return nil },
	})
	r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil)
	check(t, r, err, "rules")
}

func TestWhatAForeignTransportHandsOnIsBounded(t *testing.T) {
	failing := errors.New("no luck")
	broken := func(b io.ReadCloser) *http.Response {
		res := response(200, "")
		res.Body, res.ContentLength = b, -1
		return res
	}
	for _, c := range []struct {
		name, want string
		rt         roundtrip.Func
	}{
		{"error in the body", "disallow", func(*http.Request) (*http.Response, error) {
			return broken(io.NopCloser(io.MultiReader(strings.NewReader(file), readFunc(func([]byte) (int, error) { return 0, failing })))), nil
		}},
		{"body without end", "allow", func(*http.Request) (*http.Response, error) {
			return broken(io.NopCloser(readFunc(func(p []byte) (int, error) { return copy(p, "# and on and on\n"), nil }))), nil
		}},
		{"header without end", "disallow", func(*http.Request) (*http.Response, error) {
			return response(200, file, "X", strings.Repeat("x", 64<<10)), nil
		}},
		{"error of many bytes", "disallow", func(*http.Request) (*http.Response, error) {
			return nil, errors.New(strings.Repeat("\x00\xff\u2028é", 10_000))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fetch.Fetcher{Transport: c.rt, Retries: -1}
			fetched(t, &f, "http://a.test", nil, c.want)
		})
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestTheBodyIsClosed(t *testing.T) {
	for _, status := range []int{200, 204, 302, 304, 404, 503, 999} {
		var open atomic.Int32
		f := fetch.Fetcher{Retries: 1, Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
			open.Add(1)
			res := response(status, file, "Location", "/other")
			res.Body = closer{res.Body, func() { open.Add(-1) }}
			return res, nil
		})}
		if _, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); err != nil || open.Load() != 0 {
			t.Errorf("%d: %d bodies are open (%v), want none", status, open.Load(), err)
		}
	}
}

type closer struct {
	io.Reader
	close func()
}

func (c closer) Close() error {
	c.close()
	return nil
}

// RFC 9112 §8, §9.8: without close_notify, a body that ends with its connection may have
// been cut by anything on the path. Where the message says its length, it does not matter.
func TestATLSConnectionThatIsCutGivesNoPermission(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	toEnd := "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + file
	tunnel := func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: "proxy.test"}, nil }
	for _, c := range []struct {
		name, message string
		notify        bool
		version       uint16
		proxy         func(*http.Request) (*url.URL, error)
		want          string
	}{
		{"cut, TLS 1.3", toEnd, false, tls.VersionTLS13, nil, "disallow"},
		{"cut, in a tunnel", toEnd, false, tls.VersionTLS13, tunnel, "disallow"},
		{"closed, TLS 1.3", toEnd, true, tls.VersionTLS13, nil, "rules"},
		{"closed, in a tunnel", toEnd, true, tls.VersionTLS13, tunnel, "rules"},
		{"cut after a body with its length", reply(200, file), false, tls.VersionTLS13, nil, "rules"},
		{"cut after the last chunk", head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + chunks(file), false, tls.VersionTLS13, nil, "rules"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := &tls.Config{Certificates: s.TLS.Certificates, MaxVersion: c.version}
			base := &http.Transport{Proxy: c.proxy, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}
			base.DialContext = func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go func() {
					defer server.Close()
					if c.proxy != nil {
						http.ReadRequest(bufio.NewReader(server))
						io.WriteString(server, "HTTP/1.1 200 OK\r\n\r\n")
					}
					secure := tls.Server(server, config)
					http.ReadRequest(bufio.NewReader(secure))
					io.WriteString(secure, c.message)
					if c.notify {
						secure.Close()
					}
				}()
				return client, nil
			}
			f := fetch.Fetcher{Transport: base, Retries: -1}
			r := fetched(t, &f, "https://a.test", nil, c.want)
			if c.want == "disallow" && !strings.Contains(fmt.Sprint(r.Err), "close_notify") {
				t.Errorf("got %v, want close_notify named", r.Err)
			}
		})
	}
}
