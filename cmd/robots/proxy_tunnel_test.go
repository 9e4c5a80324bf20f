package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// trust makes this process trust a certificate.
func trust(t *testing.T, c *x509.Certificate) {
	pool := x509.NewCertPool()
	pool.AddCert(c)
	base := http.DefaultTransport.(*http.Transport)
	before := base.TLSClientConfig
	base.TLSClientConfig = &tls.Config{RootCAs: pool}
	t.Cleanup(func() { base.TLSClientConfig = before })
}

// tlsSites serves h over https for all names below example.com, which httptest has a certificate
// for, and returns the flag that leads there.
func tlsSites(t *testing.T, h http.HandlerFunc) string {
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	trust(t, server.Certificate())
	return "--connect-to=::" + server.Listener.Addr().String()
}

// testCA makes a CA with "robots proxy ca", and returns the flags for it and what its clients trust.
func testCA(t *testing.T, args ...string) (flags []string, pool *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	args = append([]string{"proxy", "ca", cert, key}, args...)
	if status, said := fails(t, args...); status != shell.ExitOK {
		t.Fatalf("%q: status %d: %s, want %d", args, status, said, shell.ExitOK)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(read(t, cert))
	return []string{"--ca=" + cert, "--ca-key=" + key}, pool
}

func tunnelSite(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		proxySite(w, r)
		return
	}
	fmt.Fprintf(w, "%s %s over %s via %q", r.Method, r.Host, r.Proto, r.Header["Via"])
}

func TestProxyLooksIntoTLS(t *testing.T) {
	flags, pool := testCA(t)
	v := startProxy(t, append(flags, "--private", tlsSites(t, tunnelSite))...)
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		c := v.client(pool)
		c.ForceAttemptHTTP2 = proto == "HTTP/2.0"
		for path, want := range map[string]string{
			"/a": `200 OK: GET example.com over HTTP/2.0 via ["` + strings.TrimSuffix(proto[5:], ".0") + ` robotsgate"]`,
			"/private": `403 Forbidden: {"type":"https://github.com/robotsgate/robotsgate/tree/main/cmd/robots#problem-rule",` +
				`"title":"Forbidden","status":403,"detail":"robots.txt, line 2: Disallow: /private"}` + "\n",
		} {
			res, body := talk(t, c, "GET", "https://example.com"+path, "")
			if got := res.Status + ": " + body; got != want || res.Proto != proto {
				t.Errorf("%s %s: got %s %s\nwant %s", proto, path, res.Proto, got, want)
			}
		}
	}
}

// An origin that cannot show who it is gets nothing, and its answer is not taken.
func TestProxyAcceptsNoBadCertificate(t *testing.T) {
	flags, pool := testCA(t)
	reached := false
	to := tlsSites(t, func(w http.ResponseWriter, r *http.Request) { reached = true })
	v := startProxy(t, append(flags, "--private", to)...)
	c := v.client(pool)
	for _, path := range []string{"/", "/robots.txt"} {
		res, _ := talk(t, c, "GET", "https://other.example"+path, "")
		if res.StatusCode != 502 || !strings.Contains(res.Header.Get("Proxy-Status"), "error=tls_certificate_error") {
			t.Errorf("%s: got %s %v, want 502, tls_certificate_error", path, res.Status, res.Header)
		}
	}
	if reached {
		t.Error("it was asked")
	}
}

// connectTo asks for a tunnel, in words of its own choice, and returns the status and the body.
func (v *relay) connectTo(target, fields string) (c net.Conn, status int, body string) {
	v.t.Helper()
	c = v.send(fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, strings.TrimSpace(target), fields))
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "CONNECT"})
	if err != nil {
		return c, 0, err.Error()
	}
	if res.StatusCode == 200 {
		return c, 200, ""
	}
	data, _ := io.ReadAll(io.LimitReader(res.Body, res.ContentLength))
	return c, res.StatusCode, string(data)
}

// Without a CA nothing in a tunnel would be seen. The refusal says what to do.
func TestProxyOpensNoTunnelWithoutACA(t *testing.T) {
	site := new(origin)
	v := startProxy(t, "--private", tlsSites(t, site.ServeHTTP))
	for _, target := range []string{"open.example.com:443", "open.example.com:8443", "127.0.0.1:443"} {
		_, status, body := v.connectTo(target, "")
		if status != 403 || !strings.Contains(body, "no CA") || !strings.Contains(body, "robots proxy ca") {
			t.Errorf("%s: got %d %s, want 403 and what to do", target, status, body)
		}
	}
	if log := site.log(); log != nil {
		t.Errorf("the site was asked for %q", log)
	}
}

// A tunnel without TLS, as browsers open for ws://, is looked into without a CA.
func TestProxyLooksIntoTunnelsWithoutTLS(t *testing.T) {
	v := startProxy(t, "--private", siteServer(t, proxySite))
	for request, want := range map[string]string{
		"GET /a HTTP/1.1\r\nHost: s.example\r\n":                       "HTTP/1.1 200 OK",
		"GET /private HTTP/1.1\r\nHost: S.example:80\r\n":              "HTTP/1.1 403 Forbidden",
		"GET http://s.example/private HTTP/1.1\r\nHost: s.example\r\n": "HTTP/1.1 403 Forbidden",
		"GET http://s.example/a HTTP/1.1\r\nHost: t.example\r\n":       "HTTP/1.1 200 OK",
		"OPTIONS * HTTP/1.1\r\nHost: s.example\r\n":                    "HTTP/1.1 200 OK",
		"GET * HTTP/1.1\r\nHost: s.example\r\n":                        "HTTP/1.1 400 Bad Request",
		"GET /a HTTP/1.1\r\nHost: t.example\r\n":                       "HTTP/1.1 421 Misdirected Request",
		"GET /a HTTP/1.1\r\nHost: s.example:81\r\n":                    "HTTP/1.1 421 Misdirected Request",
		"GET https://s.example/a HTTP/1.1\r\nHost: s.example\r\n":      "HTTP/1.1 421 Misdirected Request",
		"GET http://u@s.example/a HTTP/1.1\r\nHost: s.example\r\n":     "HTTP/1.1 421 Misdirected Request",
		"CONNECT s.example:80 HTTP/1.1\r\nHost: s.example:80\r\n":      "HTTP/1.1 421 Misdirected Request",
		"\x16\x03\x01\x00\x01\x01":                                     "",
	} {
		c, status, body := v.connectTo("s.example:80", "")
		if status != 200 {
			t.Fatalf("got %d %s, want 200", status, body)
		}
		io.WriteString(c, request+"Connection: close\r\n\r\n")
		data, _ := io.ReadAll(c)
		if line, _, _ := strings.Cut(string(data), "\r\n"); line != want {
			t.Errorf("%q: %q, want %s", request, data, want)
		}
	}
}

func TestProxyCAWithConstraints(t *testing.T) {
	flags, pool := testCA(t, "--only=example.com")
	v := startProxy(t, append(flags, "--private", tlsSites(t, tunnelSite))...)
	c := v.client(pool)
	if res, body := talk(t, c, "GET", "https://www.example.com/private", ""); res.StatusCode != 403 {
		t.Fatalf("got %s %s, want 403", res.Status, body)
	}
	// A host that it may not speak for is one without a CA.
	for target, status := range map[string]int{"open.example:443": 403, "127.0.0.1:443": 403, "[::1]:443": 403} {
		if _, got, body := v.connectTo(target, ""); got != status {
			t.Errorf("%s: %d %s, want %d", target, got, body, status)
		}
	}
}

func TestProxyCAOverwritesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, said := fails(t, "proxy", "ca", "ca.pem", "ca.key"); status != shell.ExitOK {
		t.Fatalf("status %d, %s, want %d", status, said, shell.ExitOK)
	}
	if info, err := os.Stat("ca.key"); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v, want mode 600", info, err)
	}
	before, _ := os.ReadFile("ca.pem")
	for args, want := range map[string]int{
		"ca.pem new.key": shell.ExitUnknown, "new.pem ca.key": shell.ExitUnknown, "ca.pem": shell.ExitUsage, "a b c": shell.ExitUsage,
		"a b --only=example.com.":  shell.ExitUsage,
		"a b --only=*.example.com": shell.ExitUsage, "none/a b": shell.ExitUnknown, "a b --only=é.example": shell.ExitUsage,
		"a b --only=a..example": shell.ExitUsage, "a b --only=a,.example.com,": shell.ExitUsage,
	} {
		if status, said := fails(t, strings.Fields("proxy ca "+args)...); status != want {
			t.Errorf("%s: status %d: %s, want %v", args, status, said, want)
		}
	}
	if after, _ := os.ReadFile("ca.pem"); string(after) != string(before) {
		t.Error("the certificate was overwritten")
	}
	if left, _ := filepath.Glob("*"); len(left) != 2 {
		t.Errorf("got %q, want two files", left)
	}
	for _, flags := range [][]string{{"--ca=ca.pem"}, {"--ca=ca.pem", "--ca-key=ca.pem"}} {
		if status, said := fails(t, append([]string{"proxy", "--cache=none"}, flags...)...); status != shell.ExitUsage {
			t.Errorf("%q: status %d: %s, want %d", flags, status, said, shell.ExitUsage)
		}
	}
}

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
