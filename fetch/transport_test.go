package fetch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/origins"
)

// world is a transport to servers in memory, by address as it is dialled. What the client
// is told of the peer is the address given.
type world map[string]struct{ addr, message string }

func (w world) transport() *http.Transport {
	return &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		s, ok := w[addr]
		if !ok {
			return nil, errors.New("nobody is at " + addr)
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

// ranks has addresses of each rank of privacy, one for each range that is treated apart.
var ranks = [][]string{
	{ // public
		"8.8.8.8", "1.1.1.1", "192.0.0.9", "192.31.196.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1",
		"2606:4700::1111", "2001:4860:4860::8888", "2001:3::1", "2001:20::1", "::ffff:8.8.8.8",
		"64:ff9b::808:808", // 8.8.8.8 on a network without IPv4
	},
	{ // private
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "fc00::1", "fd12::1", "::ffff:10.0.0.1",
	},
	{ // local or reserved
		"127.0.0.1", "127.255.255.254", "169.254.1.1", "0.0.0.0", "0.1.2.3", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1",
		"198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
		"::1", "::", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "2001::1", "2001:2::1", "2001:db8::1", "3fff::1", "5f00::1",
		"64:ff9b::a00:1", "64:ff9b::c0a8:101", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::", "64:ff9b:1::1", "64:ff9b:1::808:808", "2002:808:808::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::808:808",
	},
}

func TestARedirectDoesNotReachAMorePrivateNetwork(t *testing.T) {
	for from, origins := range ranks {
		for to, targets := range ranks {
			for _, target := range targets {
				literal := &url.URL{Scheme: "http", Host: target, Path: "/r"}
				if addr := netip.MustParseAddr(target); addr.Is6() {
					literal.Host = "[" + target + "]"
				}
				for _, location := range []string{"http://b.test/r", literal.String()} {
					w := world{
						"a.test:80": {origins[0], "HTTP/1.1 302 Found\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n"},
						"b.test:80": {target, "HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n" + file},
					}
					w[netip.AddrPortFrom(netip.MustParseAddr(target), 80).String()] = w["b.test:80"]
					f := fetch.Fetcher{Transport: w.transport(), Retries: -1}
					r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
					want := "rules"
					if to > from {
						want = "disallow"
					}
					if err != nil || verdict(r) != want {
						t.Errorf("%s to %s (%s): got %s, want %s (%v, %v)", origins[0], location, target, verdict(r), want, err, r.Err)
					}
				}
			}
		}
	}
}

func TestPublicOnlyRefusesTheOriginItself(t *testing.T) {
	for rank, addrs := range ranks {
		for _, addr := range append(addrs, "") { // "": no address that we are told
			if addr == "" && rank == 0 {
				continue
			}
			w := world{"a.test:80": {addr, origins.Reply(200, file)}}
			f := fetch.Fetcher{Transport: w.transport(), PublicOnly: true, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			want := "disallow"
			if rank == 0 {
				want = "rules"
			}
			if err != nil || verdict(r) != want {
				t.Errorf("%q: got %s, want %s (%v, %v)", addr, verdict(r), want, err, r.Err)
			}
		}
	}
	// A transport of one's own is asked for no literal address that is not public.
	rt, n := answers(response(200, file))
	f := fetch.Fetcher{Transport: rt, PublicOnly: true}
	r, err := f.Fetch(t.Context(), originOf(t, "http://10.0.0.1"), nil)
	check(t, r, err, "disallow")
	if *n != 0 {
		t.Errorf("got %d requests", *n)
	}
}

// A name that is public when it is asked first, and local when it is asked again.
func TestARebindingNameIsCaughtWhenItIsConnectedTo(t *testing.T) {
	public, local := world{"a.test:80": {"8.8.8.8", origins.Reply(302, "", "Location: /again")}}, world{"a.test:80": {"127.0.0.1", origins.Reply(200, file)}}
	base, n := public.transport(), 0
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if n++; n > 1 {
			return local.transport().DialContext(ctx, network, addr)
		}
		return public.transport().DialContext(ctx, network, addr)
	}
	f := fetch.Fetcher{Transport: base}
	r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
	check(t, r, err, "disallow")
	if n != 2 || !strings.Contains(r.Err.Error(), "127.0.0.1") {
		t.Errorf("%d dials, %v", n, r.Err)
	}
}

// An address that embeds another is the way to a site that may be anywhere. It must not
// count as one of this machine's, and what it opens is what any public site may.
func TestAnOriginBehindNAT64OpensNothingPrivate(t *testing.T) {
	for _, origin := range []string{"64:ff9b::808:808", "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::808:808", "2002:808:808::1", "2001::1"} {
		for target, want := range map[string]string{
			"127.0.0.1": "disallow", "169.254.169.254": "disallow", "10.0.0.1": "disallow", "::1": "disallow", "fd12::1": "disallow",
			"64:ff9b::7f00:1": "disallow", "64:ff9b::a00:2": "disallow", "64:ff9b:1::a00:1": "disallow", "2002:7f00:1::1": "disallow",
			"8.8.4.4": "rules", "64:ff9b::808:404": "rules", "2606:4700::1111": "rules",
			origin: "rules", // a relative redirect, or one to https
		} {
			literal := (&url.URL{Scheme: "http", Host: netip.AddrPortFrom(netip.MustParseAddr(target), 80).String(), Path: "/r"}).String()
			for _, location := range []string{"http://b.test/r", literal} {
				w := world{
					"a.test:80": {origin, origins.Reply(302, "", "Location: "+location)},
					"b.test:80": {target, origins.Reply(200, file)},
				}
				w[netip.AddrPortFrom(netip.MustParseAddr(target), 80).String()] = w["b.test:80"]
				f := fetch.Fetcher{Transport: w.transport(), Retries: -1}
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				if err != nil || verdict(r) != want {
					t.Errorf("%s to %s (%s): got %s, want %s (%v, %v)", origin, location, target, verdict(r), want, err, r.Err)
				}
			}
		}
	}
}

// A dialer that does not tell addresses (of unix sockets, tunnels, pipes) opens no more.
func TestAnOriginWithoutAnAddressIsJudgedByItsName(t *testing.T) {
	for _, c := range []struct{ origin, location, want string }{
		{"http://a.test", "http://169.254.169.254/latest/meta-data", "disallow"},
		{"http://a.test", "http://127.0.0.1/r", "disallow"},
		{"http://a.test", "http://localhost/r", "disallow"},
		{"http://a.test", "http://b.test/r", "rules"},
		{"http://a.test", "http://8.8.8.8/r", "rules"},
		{"http://8.8.8.8", "http://10.0.0.1/r", "disallow"},
		{"http://localhost", "http://127.0.0.1/r", "rules"},
	} {
		u, err := url.Parse(c.location)
		if err != nil {
			t.Fatal(err)
		}
		w := world{
			originOf(t, c.origin).RobotsURL().Hostname() + ":80": {"", origins.Reply(302, "", "Location: "+c.location)},
			u.Hostname() + ":80": {"", origins.Reply(200, file)},
		}
		f := fetch.Fetcher{Transport: w.transport(), Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, c.origin), nil)
		if err != nil || verdict(r) != c.want {
			t.Errorf("%s to %s: got %s, want %s (%v, %v)", c.origin, c.location, verdict(r), c.want, err, r.Err)
		}
	}
}

// The proxy is often nearer to the machines of a private network than we are.
func TestNoProxyIsAskedForAMorePrivateLiteral(t *testing.T) {
	for location, want := range map[string]string{
		"http://169.254.169.254/latest/meta-data": "disallow",
		"http://127.0.0.1:2375/r":                 "disallow",
		"http://[::1]/r":                          "disallow",
		"http://localhost/r":                      "disallow",
		"http://8.8.8.8/r":                        "rules",
	} {
		var asked []string
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.String())
			if r.URL.Path == "/robots.txt" {
				http.Redirect(w, r, location, http.StatusFound)
				return
			}
			io.WriteString(w, file)
		}))
		at, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		f := fetch.Fetcher{Transport: &http.Transport{Proxy: http.ProxyURL(at)}, Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		proxy.Close()
		check(t, r, err, want)
		if want == "disallow" && len(asked) != 1 {
			t.Errorf("the proxy was asked %q", asked)
		}
	}
}

// Where a foreign transport connects, only literal addresses can be judged; the origin's
// own name counts as one in a private network, unless it names this machine.
func TestLiteralAddressesAreJudgedForAnyTransport(t *testing.T) {
	for _, c := range []struct{ origin, location, want string }{
		{"http://a.test", "http://8.8.8.8/r", "rules"},
		{"http://a.test", "http://10.0.0.1/r", "rules"},
		{"http://a.test", "http://127.0.0.1/r", "disallow"},
		{"http://8.8.8.8", "http://8.8.4.4/r", "rules"},
		{"http://8.8.8.8", "http://10.0.0.1/r", "disallow"},
		{"http://10.0.0.1", "http://10.0.0.2/r", "rules"},
		{"http://10.0.0.1", "http://[::1]/r", "disallow"},
		{"http://127.0.0.1", "http://[::1]/r", "rules"},
		{"http://[::1]:8080", "http://127.0.0.1/r", "rules"},
		{"http://localhost", "http://127.0.0.1/r", "rules"},
		{"http://localhost", "http://a.localhost/r", "rules"},
		{"http://127.0.0.1", "http://localhost/r", "rules"},
		{"http://a.test", "http://localhost/r", "disallow"}, // RFC 6761 §6.3
		{"http://a.test", "http://LOCALHOST./r", "disallow"},
		{"http://8.8.8.8", "http://x.localhost:8080/r", "disallow"},
		{"http://10.0.0.1", "http://localhost/r", "disallow"},
		{"http://a.test", "http://localhost.test/r", "rules"},
		{"http://[64:ff9b::7f00:1]", "http://127.0.0.1/r", "disallow"},
		{"http://[64:ff9b:1::1]", "http://10.0.0.1/r", "disallow"},
		{"http://[64:ff9b:1::1]", "/r", "rules"},
		{"http://[64:ff9b::808:808]", "http://8.8.8.8/r", "rules"},
		{"http://a.localhost:8080", "http://127.0.0.1/r", "rules"},
		{"http://localhost.test", "http://127.0.0.1/r", "disallow"},
	} {
		rt, _ := answers(response(302, "", "Location", c.location), response(200, file))
		f := fetch.Fetcher{Transport: rt}
		r, err := f.Fetch(t.Context(), originOf(t, c.origin), nil)
		if err != nil || verdict(r) != c.want {
			t.Errorf("%s to %s: got %s, want %s (%v, %v)", c.origin, c.location, verdict(r), c.want, err, r.Err)
		}
	}
}

// An origin is as public as the most public address that it was reached at.
func TestAnOriginCannotMoveInwardsBetweenRetries(t *testing.T) {
	w := world{
		"a.test:80":      {"127.0.0.1", origins.Reply(302, "", "Location: http://inside.test/r")},
		"inside.test:80": {"127.0.0.1", origins.Reply(200, file)},
	}
	base, n := w.transport(), 0
	inner := base.DialContext
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if n++; n == 1 {
			client, server := net.Pipe()
			server.Close()
			return peer{client, net.TCPAddrFromAddrPort(netip.MustParseAddrPort("8.8.8.8:80"))}, nil
		}
		return inner(ctx, network, addr)
	}
	f := fetch.Fetcher{Transport: base, Retries: 1}
	r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
	check(t, r, err, "disallow")
	if len(r.Redirects) != 1 || !strings.Contains(r.Err.Error(), "more private network") {
		t.Errorf("%q, %v", r.Redirects, r.Err)
	}
}

// Where DialContext is nil, an address is refused before it is connected to.
func TestNothingIsConnectedToThatIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f := fetch.Fetcher{Transport: &http.Transport{}, PublicOnly: true, Retries: -1}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		r, err := f.Fetch(t.Context(), originOf(t, "http://"+host+":"+port), nil)
		check(t, r, err, "disallow")
		if !strings.Contains(r.Err.Error(), "refused") {
			t.Error(r.Err)
		}
	}
	l.(*net.TCPListener).SetDeadline(time.Now().Add(100 * time.Millisecond))
	if c, err := l.Accept(); err == nil {
		t.Errorf("connected from %v", c.RemoteAddr())
	}
}

// The guard cannot see behind a proxy, and must not judge by the proxy's own address.
func TestAProxyIsUsedAndNotTakenForTheSite(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		switch {
		case r.Method == http.MethodConnect, strings.HasPrefix(r.URL.Host, "locked"):
			w.WriteHeader(http.StatusProxyAuthRequired)
		case r.URL.Path == "/robots.txt":
			http.Redirect(w, r, "http://inside.test/r", http.StatusFound)
		default:
			io.WriteString(w, file)
		}
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := fetch.Fetcher{Transport: &http.Transport{Proxy: http.ProxyURL(at)}, Retries: -1, PublicOnly: true}
	for _, c := range []struct{ origin, want string }{
		{"http://a.test", "rules"},
		{"http://locked.test", "allow"},     // 407 is a 4xx like any other
		{"https://locked.test", "disallow"}, // but there is no answer of the site in a refused CONNECT
	} {
		r, err := f.Fetch(t.Context(), originOf(t, c.origin), nil)
		check(t, r, err, c.want)
	}
	if len(asked) != 4 {
		t.Errorf("the proxy was asked %q", asked)
	}
}

// A direct connection that a redirect leads to is judged even if the origin was behind a
// proxy: what needs none is often the inner network.
func TestARedirectPastTheProxyIsJudged(t *testing.T) {
	w := world{
		"proxy.test:80":  {"10.0.0.1", origins.Reply(302, "", "Location: http://inside.test/r")},
		"inside.test:80": {"10.0.0.2", origins.Reply(200, file)},
	}
	base := w.transport()
	base.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == "inside.test" {
			return nil, nil
		}
		return &url.URL{Scheme: "http", Host: "proxy.test"}, nil
	}
	f := fetch.Fetcher{Transport: base}
	r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
	check(t, r, err, "disallow")
	if len(r.Redirects) != 1 || !strings.Contains(r.Err.Error(), "10.0.0.2") {
		t.Errorf("%q, %v", r.Redirects, r.Err)
	}
}

// A copy of a transport that has spoken HTTP/2 would still offer it, and then wait for an
// answer that it cannot read.
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
	before := base.Clone()
	f := fetch.Fetcher{Transport: base}
	r, err := f.Fetch(t.Context(), originOf(t, s.URL), nil)
	check(t, r, err, "rules")
	if len(protos) != 2 || protos[0] != "HTTP/2.0" || protos[1] != "HTTP/1.1" {
		t.Errorf("spoke %q", protos)
	}
	if base.DisableKeepAlives || base.DisableCompression != before.DisableCompression || len(base.TLSClientConfig.NextProtos) != len(before.TLSClientConfig.NextProtos) {
		t.Error("the caller's transport was changed")
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
		{"DialTLS with HTTP/2", "disallow", &http.Transport{DialTLS: secure("h2")}},
		{"Dial that fails", "disallow", &http.Transport{Dial: func(string, string) (net.Conn, error) { return nil, errors.New("no") }}},
		{"Dial that panics", "disallow", &http.Transport{Dial: func(string, string) (net.Conn, error) { panic("no") }}},
		{"Dial of nothing", "disallow", &http.Transport{Dial: func(string, string) (net.Conn, error) { return nil, nil }}},
		{"Proxy that panics", "disallow", &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { panic("no") }}},
		{"Proxy that fails", "disallow", &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("no") }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fetch.Fetcher{Transport: c.base, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "https://a.test"), nil)
			check(t, r, err, c.want)
			if c.want == "disallow" && !strings.Contains(r.Err.Error(), "no") && !strings.Contains(r.Err.Error(), "HTTP/1.1 only") {
				t.Error(r.Err)
			}
		})
	}
}

// net/http lets a dial go on that nobody waits for any more. It must end with the Fetch,
// or, where a dialer is deaf, its connection must be closed.
func TestADialEndsWithTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended, closed atomic.Int32
		f := fetch.Fetcher{Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			defer ended.Add(1)
			if strings.HasPrefix(addr, "deaf") {
				time.Sleep(time.Minute)
				client, _ := net.Pipe()
				return closing{client, &closed}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}}
		for _, name := range []string{"http://quick.test", "http://deaf.test"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			if _, err := f.Fetch(ctx, originOf(t, name), nil); err != context.DeadlineExceeded || time.Since(start) != time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
			cancel()
		}
		synctest.Wait()
		if ended.Load() != 1 {
			t.Errorf("%d dials ended, want the first", ended.Load())
		}
		time.Sleep(2 * time.Minute)
		if ended.Load() != 2 || closed.Load() == 0 {
			t.Errorf("%d dials ended, %d connections closed", ended.Load(), closed.Load())
		}
	})
}

// silent is a transport to a server that reads and says nothing but message, and notes
// when the client has gone.
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
		{"TLS, larger", "https://a.test", time.Hour, 0, 5 * time.Second},
		{"attempt", "http://a.test", 0, 3 * time.Second, 3 * time.Second},
		{"attempt, in TLS", "https://a.test", 0, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gone time.Time
				base := silent("", &gone)
				base.ResponseHeaderTimeout, base.TLSHandshakeTimeout = c.base, c.base
				f := fetch.Fetcher{Transport: base, AttemptTimeout: c.attempt, Retries: -1}
				start := time.Now()
				r, err := f.Fetch(t.Context(), originOf(t, c.origin), nil)
				check(t, r, err, "disallow")
				synctest.Wait()
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
			t.Errorf("header of %d octets, base allows %d: got %s, want %s (%v, %v)", c.size, c.base, verdict(r), c.want, err, r.Err)
		}
	}
}

type closing struct {
	net.Conn
	n *atomic.Int32
}

func (c closing) Close() error {
	c.n.Add(1)
	return c.Conn.Close()
}

// A trace for interim responses would lift net/http's limit on them.
func TestNothingOfTheCallersContextReachesTheTransport(t *testing.T) {
	type key struct{}
	f := fetch.Fetcher{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		if r.Context().Value(key{}) != nil || httptrace.ContextClientTrace(r.Context()) != nil {
			t.Error("the transport sees the caller's values")
		}
		return response(200, file), nil
	})}
	ctx := httptrace.WithClientTrace(context.WithValue(t.Context(), key{}, 1), &httptrace.ClientTrace{})
	r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil)
	check(t, r, err, "rules")
}

func TestAForeignTransportMayDoAnything(t *testing.T) {
	failing := errors.New("no luck")
	broken := func(b io.ReadCloser) *http.Response {
		res := response(200, "")
		res.Body, res.ContentLength = b, -1
		return res
	}
	for _, c := range []struct {
		name, want string
		rt         roundTripFunc
	}{
		{"nothing", "disallow", func(*http.Request) (*http.Response, error) { return nil, nil }},
		{"panic", "disallow", func(*http.Request) (*http.Response, error) { panic("\x1b[31mred") }},
		{"response and error", "disallow", func(*http.Request) (*http.Response, error) { return response(200, file), failing }},
		{"no body", "allow", func(*http.Request) (*http.Response, error) { return broken(nil), nil }},
		{"panic in the body", "disallow", func(*http.Request) (*http.Response, error) {
			return broken(io.NopCloser(readFunc(func([]byte) (int, error) { panic("no") }))), nil
		}},
		{"error in the body", "disallow", func(*http.Request) (*http.Response, error) {
			return broken(io.NopCloser(io.MultiReader(strings.NewReader(file), readFunc(func([]byte) (int, error) { return 0, failing })))), nil
		}},
		{"body without end", "allow", func(*http.Request) (*http.Response, error) {
			return broken(io.NopCloser(readFunc(func(p []byte) (int, error) { return copy(p, "# and on and on\n"), nil }))), nil
		}},
		{"header without end", "disallow", func(*http.Request) (*http.Response, error) {
			return response(200, file, "X", strings.Repeat("x", 64<<10)), nil
		}},
		{"error of many octets", "disallow", func(*http.Request) (*http.Response, error) {
			return nil, errors.New(strings.Repeat("\x00\xff\u2028é", 10_000))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fetch.Fetcher{Transport: c.rt, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			check(t, r, err, c.want)
		})
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestTheBodyIsClosed(t *testing.T) {
	for _, status := range []int{200, 204, 302, 304, 404, 503, 999} {
		var open atomic.Int32
		f := fetch.Fetcher{Retries: 1, Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
			open.Add(1)
			res := response(status, file, "Location", "/other")
			res.Body = closer{res.Body, func() { open.Add(-1) }}
			return res, nil
		})}
		if _, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); err != nil || open.Load() != 0 {
			t.Errorf("%d: %d bodies are open (%v)", status, open.Load(), err)
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

// A name with many addresses does not make us call on all of them.
func TestOnlyEightAddressesOfANameAreTried(t *testing.T) {
	var addrs []netip.Addr
	for i := range 200 {
		addrs = append(addrs, netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}))
	}
	former := net.DefaultResolver
	net.DefaultResolver = origins.Resolver(0, addrs...)
	defer func() { net.DefaultResolver = former }()
	for answering, want := range map[int]string{0: "rules", 7: "rules", 8: "disallow", 199: "disallow"} {
		l, err := net.Listen("tcp", netip.AddrPortFrom(addrs[answering], 0).String())
		if err != nil {
			t.Skipf("this system has one loopback address only: %v", err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, file) }))
		s.Listener.Close()
		s.Listener = l
		s.Start()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		f := fetch.Fetcher{Transport: &http.Transport{}, Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, "http://many.test:"+port), nil)
		if err != nil || verdict(r) != want {
			t.Errorf("address %d answers: got %s, want %s (%v, %v)", answering, verdict(r), want, err, r.Err)
		}
		s.Close()
	}
}

// Where IPv6 does not work, the addresses of it must not use up the tries of the others.
func TestAddressesOfEachFamilyAreCountedApart(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, file) }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String()) // of 127.0.0.1 alone
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	for range 8 {
		addrs = append(addrs, netip.IPv6Loopback())
	}
	former := net.DefaultResolver
	net.DefaultResolver = origins.Resolver(0, addrs...)
	defer func() { net.DefaultResolver = former }()
	f := fetch.Fetcher{Transport: &http.Transport{}, Retries: -1}
	r, err := f.Fetch(t.Context(), originOf(t, "http://many.test:"+port), nil)
	check(t, r, err, "rules")
}

// RFC 9112 §8, §9.8: without close_notify, a body that ends with its connection may have
// been cut by anybody on the path. Where the message says its length, it does not matter.
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
		{"cut, TLS 1.2", toEnd, false, tls.VersionTLS12, nil, "disallow"},
		{"cut, TLS 1.3", toEnd, false, tls.VersionTLS13, nil, "disallow"},
		{"cut, in a tunnel", toEnd, false, tls.VersionTLS13, tunnel, "disallow"},
		{"closed, TLS 1.2", toEnd, true, tls.VersionTLS12, nil, "rules"},
		{"closed, TLS 1.3", toEnd, true, tls.VersionTLS13, nil, "rules"},
		{"closed, in a tunnel", toEnd, true, tls.VersionTLS13, tunnel, "rules"},
		{"cut after a body with its length", origins.Reply(200, file), false, tls.VersionTLS13, nil, "rules"},
		{"cut after the last chunk", origins.Head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + chunks(file), false, tls.VersionTLS13, nil, "rules"},
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
			r, err := f.Fetch(t.Context(), originOf(t, "https://a.test"), nil)
			check(t, r, err, c.want)
			if c.want == "disallow" && !strings.Contains(r.Err.Error(), "close_notify") {
				t.Error(r.Err)
			}
		})
	}
}
