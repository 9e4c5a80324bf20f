package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// questionsAbout are requests that make a service ask a site: one for each parameter.
func questionsAbout(site string) map[string]*http.Request {
	ask := func(method, path, body, field, value string) *http.Request {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set(field, value)
		r.RemoteAddr = "127.0.0.1:1"
		return r
	}
	u, media := url.QueryEscape(site), "Content-Type"
	parts, _ := url.Parse(site)
	caddy := ask("GET", "/authz", "", "X-Forwarded-Host", parts.Host)
	caddy.Header.Set("X-Forwarded-Proto", "http")
	caddy.Header.Set("X-Forwarded-Uri", "/")
	envoy := ask("GET", "/authz/", "", "X-Forwarded-Proto", "http")
	envoy.Host = parts.Host
	return map[string]*http.Request{
		"decide":        ask("GET", "/v1/decide?url="+u, "", "X", "y"),
		"decide as=all": ask("GET", "/v1/decide?as=all&url="+u, "", "X", "y"),
		"robots":        ask("GET", "/v1/robots?origin="+u, "", "X", "y"),
		"a line":        ask("POST", "/v1/decide", site+"\n", media, "text/plain"),
		"an object":     ask("POST", "/v1/decide", `{"url":"`+site+`"}`, media, mediaNDJSON),
		"turns":         ask("POST", "/v1/turns", `{"url":"`+site+`"}`, media, mediaJSON),
		"X-Original":    ask("GET", "/authz", "", "X-Original-URL", site),
		"X-Forwarded":   caddy,
		"Envoy":         envoy,
	}
}

// flaggedService is what "robots serve" makes of its flags, without a socket. change may be nil.
func flaggedService(t *testing.T, change func(*site.Gate), args ...string) http.Handler {
	return flagged(t, change, args...).Handler(t.Context())
}

func flagged(t *testing.T, change func(*site.Gate), args ...string) *serve.Service {
	s := newServer(&shell.App{Streams: shell.Streams{Err: t.Output()}})
	cmd := s.command()
	if err := cmd.ParseFlags(append([]string{"--cache=none", "--trusted=127.0.0.0/8"}, args...)); err != nil {
		t.Fatal(err)
	}
	v, err := s.service(true)
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.openGate(v.Log)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(g)
	}
	v.Guard.Loopback = true
	v.Open(g)
	t.Cleanup(func() { g.End(context.Background(), s.App) })
	return v
}

// Whatever names the site, and however the address is written, a private network is not asked.
func TestServeAsksPublicNetworksOnly(t *testing.T) {
	var asked atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inner.Close()
	for _, args := range [][]string{nil, {"--private"}} {
		flaggedService(t, func(g *site.Gate) {
			if proxied := g.Base.(*http.Transport).Proxy != nil; proxied != (args != nil) { // it would resolve names out of our sight
				t.Errorf("%q: uses the proxies of the environment: %v, want %v", args, proxied, args != nil)
			}
		}, args...)
	}
	_, port, _ := net.SplitHostPort(inner.Listener.Addr().String())
	resolve(t, map[string][]string{
		"loopback.example": {"127.0.0.1"}, "six.example": {"::1"}, "metadata.example": {"169.254.169.254"},
		"mapped.example": {"::ffff:127.0.0.1"}, "nat64.example": {"64:ff9b::7f00:1"},
		"both.example":    {"10.0.0.1", "127.0.0.1"},
		"rebinds.example": {"192.0.2.1", "then", "127.0.0.1"}, "zero.example": {"0.0.0.0"}, "6to4.example": {"2002:7f00:1::"},
	})
	for _, host := range []string{
		"127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]",
		"[64:ff9b::7f00:1]", "10.0.0.1", "169.254.169.254", "[fe80::1]", "[fd00::1]", "192.168.0.1", "100.64.0.1",
		"loopback.example", "six.example", "metadata.example", "mapped.example", "nat64.example", "both.example",
		"rebinds.example", "rebinds.example", "zero.example", "6to4.example",
	} {
		for name := range questionsAbout("http://x/") { // a new service for each: it has nothing in its cache
			r := questionsAbout("http://" + host + ":" + port + "/")[name]
			w := httptest.NewRecorder()
			flaggedService(t, nil, "--timeout=2s").ServeHTTP(w, r)
			answer := w.Body.String()
			if !strings.Contains(answer, "unreachable") && !strings.Contains(answer, "not an IPv4 address") ||
				name == "decide" && strings.Contains(answer, "is not public") && !strings.Contains(answer, "robots serve --private") {
				t.Errorf("%s, %s: %d %s", host, name, w.Code, answer)
			}
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("a private network was asked %d times, want none", n)
	}
	w := httptest.NewRecorder() // the test would see it
	flaggedService(t, nil, "--private").ServeHTTP(w, questionsAbout("http://loopback.example:" + port + "/")["decide"])
	if asked.Load() == 0 {
		t.Errorf("with --private it is not asked: %s", w.Body)
	}
}

// A site has no visit for a URL that nothing would send. If it is known, the answer is the same.
func TestServeVisitsNoSiteForATypingError(t *testing.T) {
	tier.Gate(t)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	to := "--connect-to=::" + server.Listener.Addr().String()
	for _, name := range []string{"decide", "decide as=all", "robots", "turns", "X-Original"} {
		h := flaggedService(t, nil, "--private", to)
		said := func(path string) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, questionsAbout("http://a.example/" + path)[name])
			return w.Code
		}
		long := strings.Repeat("x", 17<<10)
		if unknown := said(long); unknown != 422 || asked.Load() > 0 {
			t.Errorf("%s: %d, want 422; the site was asked %d times", name, unknown, asked.Load())
		}
		if said(""); said(long) != 422 || asked.Swap(0) != 1 {
			t.Errorf("%s: a site that is known does not have the answer 422", name)
		}
	}
}

// names is the server of names that resolve has started; nil: that of the machine.
var names atomic.Pointer[net.UDPAddr]

func dialNames(ctx context.Context, network, address string) (net.Conn, error) {
	if at := names.Load(); at != nil {
		network, address = at.Network(), at.String()
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// resolve makes names of this process's resolver. Addresses behind "then" are those of later questions.
func resolve(t *testing.T, sites map[string][]string) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	names.Store(c.LocalAddr().(*net.UDPAddr))
	t.Cleanup(func() { names.Store(nil); c.Close() })
	go func() {
		buffer, asked := make([]byte, 1<<10), map[string]bool{}
		for {
			n, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(buffer[:n]); err != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			name := strings.TrimSuffix(q.Name.String(), ".")
			m.Response, m.Additionals = true, nil
			now, then, changes := cutAt(sites[name], "then")
			if changes && asked[name] {
				now = then
			}
			asked[name] = asked[name] || q.Type == dnsmessage.TypeA
			m.Answers = records(q, now)
			if packed, err := m.Pack(); err == nil {
				c.WriteTo(packed, from)
			}
		}
	}()
}

func cutAt(all []string, at string) (before, after []string, found bool) {
	for i, s := range all {
		if s == at {
			return all[:i], all[i+1:], true
		}
	}
	return all, nil, false
}

// records are the addresses of the type that is asked for, for no time at all.
func records(q dnsmessage.Question, addresses []string) (rr []dnsmessage.Resource) {
	h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	for _, text := range addresses {
		switch a := netip.MustParseAddr(text); {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			rr = append(rr, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			rr = append(rr, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return rr
}
