package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// origin is a site that keeps what it was asked for, robots.txt aside.
type origin struct {
	robots map[string]string // by host, without its port; others forbid nothing

	mu    sync.Mutex // guards asked
	asked []string
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	if r.URL.Path == "/robots.txt" {
		io.WriteString(w, o.robots[host])
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, r.Method+" "+host+r.URL.Path)
	fmt.Fprintf(w, "page for %s", r.UserAgent())
}

// log returns what was asked for since the last time.
func (o *origin) log() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.asked = nil }()
	return o.asked
}

// Clients that name themselves only inside the tunnel, as requests, httpx, urllib and undici do, get nothing there that
// a group of theirs forbids.
func TestProxyTunnelsAreForNoCrawlerUnseen(t *testing.T) {
	site := &origin{robots: map[string]string{
		"a.example.com": "User-agent: BadBot\nDisallow: /\n\nUser-agent: *\nDisallow:\n",
	}}
	to := tlsSites(t, site.ServeHTTP)
	roots := http.DefaultTransport.(*http.Transport).TLSClientConfig.RootCAs
	v := startProxy(t, "--agent-from-client", "--private", to)
	for _, fields := range []string{"", "User-Agent: GoodBot\r\n", "User-Agent: BadBot/1.0\r\n", "User-Agent: \r\n"} {
		c, status, body := v.connectTo("a.example.com:443", fields)
		if status == 200 {
			inner := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "a.example.com"})
			io.WriteString(inner, "GET /page HTTP/1.1\r\nHost: a.example.com\r\nUser-Agent: BadBot/1.0\r\nConnection: close\r\n\r\n")
			io.ReadAll(inner)
		}
		if status != 403 || !strings.Contains(body, "by Disallow: /, forbids BadBot something") {
			t.Errorf("%q: %d %s", fields, status, body)
		}
	}
	v.program(t, "python3", "-c", `import ssl, urllib.request
try: urllib.request.urlopen(urllib.request.Request("https://a.example.com/page", headers={"User-Agent": "BadBot/1.0"}),
  context=ssl._create_unverified_context()).read()
except OSError as e: print(e)`)
	v.program(t, "curl", "-sS", "-k", "-A", "BadBot/1.0", "--proxy-header", "User-Agent: x", "https://a.example.com/page")
	if log := site.log(); log != nil {
		t.Errorf("the site was asked for %q", log)
	}
}

// piecemeal writes a byte at a time.
type piecemeal struct{ net.Conn }

func (p piecemeal) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := p.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// splitRecord writes the first record in records of a hundred bytes.
type splitRecord struct {
	net.Conn
	done bool
}

func (r *splitRecord) Write(b []byte) (int, error) {
	if r.done {
		return r.Conn.Write(b)
	}
	r.done = true
	var out []byte
	for part := range slices.Chunk(b[5:], 100) {
		out = append(append(out, b[0], b[1], b[2], 0, byte(len(part))), part...)
	}
	_, err := r.Conn.Write(out)
	return len(b), err
}

// encrypted begins a handshake with Encrypted Client Hello, for a name within another (RFC 9849 §4).
func encrypted(outer, inner string) func(net.Conn) net.Conn {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	contents := append([]byte{1, 0, 0x20, 0, 32}, key.PublicKey().Bytes()...) // X25519
	contents = append(contents, 0, 4, 0, 1, 0, 1, 0, byte(len(outer)))        // HKDF-SHA256, AES-128-GCM
	contents = append(append(contents, outer...), 0, 0)
	list := append([]byte{0, byte(len(contents) + 4), 0xfe, 0x0d, 0, byte(len(contents))}, contents...)
	return func(c net.Conn) net.Conn {
		return tls.Client(c, &tls.Config{ServerName: inner, EncryptedClientHelloConfigList: list, InsecureSkipVerify: true})
	}
}

// A tunnel leads to its host alone: the name in the ClientHello is that of CONNECT, and nothing else is spoken.
func TestProxyTunnelsCarryTLSForTheirHost(t *testing.T) {
	site := &origin{robots: map[string]string{"rules.example.com": "User-agent: *\nDisallow: /private\n"}}
	to := tlsSites(t, site.ServeHTTP)
	roots := http.DefaultTransport.(*http.Transport).TLSClientConfig.RootCAs
	v := startProxy(t, "--private", to)
	as := func(name string) func(net.Conn) net.Conn {
		return func(c net.Conn) net.Conn {
			return tls.Client(c, &tls.Config{RootCAs: roots, ServerName: name, InsecureSkipVerify: true})
		}
	}
	plain := func(c net.Conn) net.Conn { return c }
	for _, c := range []struct {
		target string
		with   func(net.Conn) net.Conn
		host   string // of the request inside
		passes bool
	}{
		{"open.example.com:443", as("open.example.com"), "open.example.com", true},
		{"open.example.com:443", as("OPEN.example.com"), "open.example.com", true},
		{"OPEN.example.com.:443", as("open.example.com"), "open.example.com", true},
		{"open.example.com:8443", as("open.example.com"), "open.example.com", true},
		{"open.example.com:443", func(c net.Conn) net.Conn { return as("open.example.com")(piecemeal{c}) }, "open.example.com", true},
		{"open.example.com:443", func(c net.Conn) net.Conn { return as("open.example.com")(&splitRecord{Conn: c}) }, "open.example.com",
			true},
		{"open.example.com:443", as("rules.example.com"), "rules.example.com", false},
		{"open.example.com:443", func(c net.Conn) net.Conn { return as("rules.example.com")(piecemeal{c}) }, "rules.example.com",
			false},
		{"open.example.com:443", func(c net.Conn) net.Conn { return as("rules.example.com")(&splitRecord{Conn: c}) },
			"rules.example.com", false},
		{"open.example.com:443", as("example.com"), "rules.example.com", false},
		{"open.example.com:443", as(""), "rules.example.com", false}, // which host that is, only the server knows
		{"open.example.com:443", encrypted("front.example.com", "open.example.com"), "open.example.com", false},
		{"open.example.com:443", encrypted("front.example.com", "rules.example.com"), "rules.example.com", false},
		{"open.example.com:443", plain, "open.example.com", false},
		{"open.example.com:8080", plain, "rules.example.com", false},
		{"127.0.0.1:443", as(""), "127.0.0.1", true},
		{"127.0.0.1:443", as("rules.example.com"), "rules.example.com", false},
		{"[::1]:443", as(""), "[::1]", true},
	} {
		conn, status, body := v.connectTo(c.target, "")
		if status != 200 {
			t.Errorf("%s: %d %s", c.target, status, body)
			continue
		}
		inner := c.with(conn)
		io.WriteString(inner, "GET /private/x HTTP/1.1\r\nHost: "+c.host+"\r\nConnection: close\r\n\r\n")
		answer, err := io.ReadAll(inner)
		log := site.log()
		if (len(log) == 1) != c.passes || (err == nil && len(answer) > 0) != c.passes {
			t.Errorf("%s for %s: the site was asked for %q; %q %v", c.target, c.host, log, answer, err)
		}
		if _, is := inner.(*tls.Conn); is && !c.passes && !strings.Contains(fmt.Sprint(err), "unrecognized name") {
			t.Errorf("%s for %s: %v", c.target, c.host, err)
		}
	}
	loose := startProxy(t, "--private", "--blind=allow", to)
	conn, _, _ := loose.connectTo("open.example.com:443", "")
	io.WriteString(as("rules.example.com")(conn), "GET /private/x HTTP/1.1\r\nHost: rules.example.com\r\nConnection: close\r\n\r\n")
	io.ReadAll(conn)
	if log := site.log(); len(log) != 1 {
		t.Errorf("with --blind=allow the site was asked for %q", log)
	}
}

// The rules' lifetime is what a tunnel may be there for without another look.
func TestProxyLooksAtATunnelAgainWhenTheRulesEnd(t *testing.T) {
	p := newProxy(&shell.App{Streams: shell.Streams{Err: io.Discard}})
	p.private, p.CacheAt, p.Timeout = true, "none", time.Minute
	to := tlsSites(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Cache-Control", "max-age=1800") })
	p.ConnectTo = []string{strings.TrimPrefix(to, "--connect-to=")}
	target := proxy.Target{Host: "a.example.com", Port: 443}
	look := func(blind string) (time.Time, error) {
		g, err := p.openGate(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Shutdown(t.Context())
		var s proxy.Server
		s.Obey(g, proxy.Obeying{Private: true, Blind: blind}, netip.AddrPort{})
		return s.Blind(t.Context(), target)
	}
	until, err := look(proxy.BlindOrigin)
	if left := time.Until(until); err != nil || left < 20*time.Minute || left > 30*time.Minute {
		t.Errorf("until %v from now, %v", left, err)
	}
	if until, err := look(proxy.BlindAllow); err != nil || !until.IsZero() {
		t.Errorf("%v, %v", until, err)
	}
}
