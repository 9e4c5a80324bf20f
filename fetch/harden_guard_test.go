package fetch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/internal/harden"
)

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
		"169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
		"::1", "::", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "2001::1", "2001:2::1", "2001:db8::1", "3fff::1", "5f00::1",
		"64:ff9b::a00:1", "64:ff9b::c0a8:101", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::", "64:ff9b:1::1", "64:ff9b:1::808:808", "2002:808:808::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::808:808",
	},
}

// leads checks what comes of a redirect from an origin at one address to a target, by its name and as it is written.
func leads(t *testing.T, origin, target, want string) {
	t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(target), 80).String()
	for _, location := range []string{"http://b.test/r", (&url.URL{Scheme: "http", Host: at, Path: "/r"}).String()} {
		w := world{"a.test:80": {origin, reply(302, "", "Location: "+location)}, "b.test:80": {target, reply(200, file)}}
		w[at] = w["b.test:80"]
		f := fetch.Fetcher{Transport: w.transport(), Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		if err != nil || verdict(r) != want {
			t.Errorf("%s to %s (%s): got %s, want %s (%v, %v)", origin, location, target, verdict(r), want, err, r.Err)
		}
	}
}

func TestARedirectDoesNotReachAMorePrivateNetwork(t *testing.T) {
	for from, origins := range ranks {
		for to, targets := range ranks {
			want := "rules"
			if to > from {
				want = "disallow"
			}
			for _, target := range targets {
				leads(t, origins[0], target, want)
			}
		}
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
			leads(t, origin, target, want)
		}
	}
}

// A dialer that does not tell addresses (of unix sockets, tunnels, pipes) opens no more.
func TestAnOriginWithoutAnAddressIsJudgedByItsName(t *testing.T) {
	for _, c := range []struct{ origin, told, location, want string }{
		{"http://a.test", "", "http://169.254.169.254/latest/meta-data", "disallow"},
		{"http://a.test", "", "http://127.0.0.1/r", "disallow"},
		{"http://a.test", "", "http://localhost/r", "disallow"},
		{"http://a.test", "", "http://b.test/r", "rules"},
		{"http://a.test", "", "http://8.8.8.8/r", "rules"},
		{"http://8.8.8.8", "", "http://10.0.0.1/r", "disallow"},
		{"http://localhost", "", "http://127.0.0.1/r", "rules"},
		{"http://a.test", "8.8.8.8", "http://b.test/r", "disallow"}, // such a socket is where a public site would like to get to
		{"http://a.test", "10.0.0.1", "http://b.test/r", "disallow"},
	} {
		u, err := url.Parse(c.location)
		if err != nil {
			t.Fatal(err)
		}
		w := world{
			originOf(t, c.origin).RobotsURL().Hostname() + ":80": {c.told, reply(302, "", "Location: "+c.location)},
			u.Hostname() + ":80": {"", reply(200, file)},
		}
		f := fetch.Fetcher{Transport: w.transport(), Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, c.origin), nil)
		if err != nil || verdict(r) != c.want {
			t.Errorf("%s (%s) to %s: got %s, want %s (%v, %v)", c.origin, c.told, c.location, verdict(r), c.want, err, r.Err)
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
		{"http://10.0.0.1", "http://[::1]/r", "disallow"},
		{"http://127.0.0.1", "http://[::1]/r", "rules"},
		{"http://[::1]:8080", "http://127.0.0.1/r", "rules"},
		{"http://localhost", "http://127.0.0.1/r", "rules"},
		{"http://127.0.0.1", "http://localhost/r", "rules"},
		{"http://a.test", "http://localhost/r", "disallow"}, // RFC 6761 §6.3
		{"http://a.test", "http://LOCALHOST./r", "disallow"},
		{"http://a.test", "http://localhost.test/r", "rules"},
		{"http://[64:ff9b::7f00:1]", "http://127.0.0.1/r", "disallow"},
		{"http://[64:ff9b:1::1]", "http://10.0.0.1/r", "disallow"},
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
		"a.test:80":      {"127.0.0.1", reply(302, "", "Location: http://inside.test/r")},
		"inside.test:80": {"127.0.0.1", reply(200, file)},
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
	r := fetched(t, &f, "http://a.test", nil, "disallow")
	if len(r.Redirects) != 1 || !strings.Contains(fmt.Sprint(r.Err), "more private network") {
		t.Errorf("got redirects %q, Err %v, want one, to a more private network", r.Redirects, r.Err)
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
	f := fetch.Fetcher{Transport: &http.Transport{Proxy: http.ProxyURL(at)}, Retries: -1}
	for _, c := range []struct{ origin, want string }{
		{"http://a.test", "rules"},
		{"http://locked.test", ""}, // 407 is the proxy's word: the site was not asked
		{"https://locked.test", ""},
	} {
		r, err := f.Fetch(t.Context(), originOf(t, c.origin), nil)
		if c.want == "rules" {
			check(t, r, err, c.want)
			continue
		}
		failure, _ := errors.AsType[*fetch.Failure](err)
		if r != nil || failure == nil || failure.Cause != "proxy_configuration_error" || !strings.Contains(failure.Text, "407") {
			t.Errorf("%s: got %v, %v, want an error that names the 407", c.origin, r, err)
		}
	}
	if len(asked) != 4 {
		t.Errorf("the proxy was asked %q, want 4 times", asked)
	}
}

// A direct connection that a redirect leads to is judged even if the origin was behind a
// proxy: what needs none is often the inner network.
func TestARedirectPastTheProxyIsJudged(t *testing.T) {
	w := world{
		"proxy.test:80":  {"10.0.0.1", reply(302, "", "Location: http://inside.test/r")},
		"inside.test:80": {"10.0.0.2", reply(200, file)},
	}
	base := w.transport()
	base.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == "inside.test" {
			return nil, nil
		}
		return &url.URL{Scheme: "http", Host: "proxy.test"}, nil
	}
	f := fetch.Fetcher{Transport: base}
	r := fetched(t, &f, "http://a.test", nil, "disallow")
	if len(r.Redirects) != 1 || !strings.Contains(fmt.Sprint(r.Err), "10.0.0.2") {
		t.Errorf("got redirects %q, Err %v, want one, and 10.0.0.2 named", r.Redirects, r.Err)
	}
}

// An origin is as private as its own address, wherever its redirects led meanwhile.
func TestAPrivateOriginMayRedirectOutAndBack(t *testing.T) {
	w := world{
		"in.test:80":  {"10.0.0.1", reply(302, "", "Location: http://out.test/")},
		"out.test:80": {"93.184.215.14", reply(302, "", "Location: http://in.test:81/back")},
		"in.test:81":  {"10.0.0.1", reply(200, file)},
	}
	fetched(t, &fetch.Fetcher{Transport: w.transport(), Retries: -1}, "http://in.test", nil, "rules")
}

// A dialer that is a tunnel (SOCKS, ssh) tells the address where the tunnel begins: that is not the origin's, and opens
// nothing.
func TestWhereATunnelBeginsIsNotTheOrigin(t *testing.T) {
	for location, want := range map[string]string{
		"http://169.254.169.254/r": "disallow", "http://127.0.0.1/r": "disallow", "http://localhost/r": "disallow", "http://b.test/r": "rules",
	} {
		base := world{
			"a.test:80": {"127.0.0.1", reply(302, "", "Location: "+location)}, "b.test:80": {"127.0.0.1", reply(200, file)},
			"169.254.169.254:80": {"127.0.0.1", reply(200, file)}, "127.0.0.1:80": {"127.0.0.1", reply(200, file)}, "localhost:80": {"127.0.0.1", reply(200, file)},
		}.transport()
		dial := base.DialContext
		base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return peer{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:1080"))}, err
		}
		fetched(t, &fetch.Fetcher{Transport: base, Retries: -1}, "http://a.test", nil, want)
	}
}

// A SOCKS proxy sees bytes: a 407 that comes through it is the site's own.
func TestA407ThroughSOCKSIsTheSites(t *testing.T) {
	socks := func(server net.Conn) {
		defer server.Close()
		b := make([]byte, 64)
		io.ReadFull(server, b[:3]) // no authentication
		server.Write([]byte{5, 0})
		io.ReadFull(server, b[:5])
		io.ReadFull(server, b[:b[4]+2]) // a name and a port
		server.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
			io.WriteString(server, reply(407, ""))
		}
	}
	base := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "socks5", Host: "127.0.0.1:1080"}),
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go socks(server)
			return client, nil
		},
	}
	fetched(t, &fetch.Fetcher{Transport: base, Retries: -1}, "http://a.test", nil, "allow")
}

// The same URL at another server is no loop.
func TestARedirectToTheNamesOwnServerIsNoLoop(t *testing.T) {
	w := world{
		"192.0.2.1:8080": {"192.0.2.1", reply(301, "", "Location: http://a.test:8080/robots.txt")},
		"a.test:8080":    {"93.184.215.14", reply(200, file)},
	}
	o, err := unmarshal("http://a.test:8080 via 192.0.2.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	f := fetch.Fetcher{Transport: w.transport(), Retries: -1}
	r, err := f.Fetch(t.Context(), o, nil)
	check(t, r, err, "rules")
}

// Each spelling of an address in ranks is public or not, and what is not is not connected to.
func TestPublicOnlyConnectsToPublicAddresses(t *testing.T) {
	base := fetch.PublicOnly(&http.Transport{Proxy: func(*http.Request) (*url.URL, error) { panic("a proxy is used") }})
	for rank, addrs := range ranks {
		for _, text := range addrs {
			addr := netip.MustParseAddr(text)
			if got := harden.Public(addr); got != (rank == 0) {
				t.Errorf("%s: got public %v, want %v", text, got, rank == 0)
			}
			if rank == 0 {
				continue
			}
			host := strings.ReplaceAll(net.JoinHostPort(text, "9"), "%", "%25")
			req, err := http.NewRequest(http.MethodGet, "http://"+host+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := base.RoundTrip(req); !errors.Is(err, fetch.ErrNotPublic) && !errors.Is(err, syscall.EAFNOSUPPORT) && addr.Zone() == "" {
				t.Errorf("%s: got %v, want ErrNotPublic", text, err)
			}
		}
	}
	if harden.Public(netip.Addr{}) {
		t.Error("the zero Addr: got public, want not")
	}
}

// Nothing is connected to, whatever dialers and proxies the transport had; robots.txt gets an error and no Result. The
// site is not blamed for it.
func TestPublicOnlyRefusesTheOriginItself(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f := fetch.Fetcher{Transport: fetch.PublicOnly(http.DefaultTransport.(*http.Transport))}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		r, err := f.Fetch(t.Context(), originOf(t, "http://"+host+":"+port), nil)
		if r != nil || !errors.Is(err, fetch.ErrNotPublic) {
			t.Errorf("%s: got %v, %v, want ErrNotPublic", host, r, err)
		}
	}
	l.(*net.TCPListener).SetDeadline(time.Now().Add(100 * time.Millisecond))
	if c, err := l.Accept(); err == nil {
		t.Errorf("got a connection from %v, want none", c.RemoteAddr())
	}
}

// A site that redirects to an address that is not public has answered so: it is unreachable.
func TestPublicOnlyBehindARedirectIsTheSitesFault(t *testing.T) {
	base := piped(func() []byte { return []byte(reply(302, "", "Location: http://b.test/r")) })
	site := base.DialContext
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "a.test:80" {
			return site(ctx, network, addr)
		}
		return fetch.PublicOnly(new(http.Transport)).DialContext(ctx, network, "127.0.0.1:9")
	}
	r := fetched(t, &fetch.Fetcher{Transport: base}, "http://a.test", nil, "disallow")
	if len(r.Redirects) != 1 || cause(r) != "destination_ip_prohibited" || !errors.Is(r.Err, fetch.ErrNotPublic) {
		t.Errorf("got %v after %d redirects, cause %q, want one, destination_ip_prohibited and ErrNotPublic", r, len(r.Redirects), cause(r))
	}
}
