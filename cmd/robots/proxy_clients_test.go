package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// program runs a program that uses the proxy, and returns all that it says. The test is skipped if
// it is not there.
func (v *relay) program(t *testing.T, name string, args ...string) string {
	t.Helper()
	tier.Gate(t)
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "http_proxy=" + v.url.String(),
		"https_proxy=" + v.url.String()}
	proc.Own(t, cmd) // a browser is many processes
	said, err := cmd.CombinedOutput()
	if len(said) == 0 && err != nil {
		t.Errorf("%s %q: %v", name, args, err)
	}
	return string(said)
}

// bothSites are the sites of h over http and over https, for all names below example.com.
func bothSites(t *testing.T, h http.HandlerFunc) []string {
	plain := httptest.NewServer(h)
	t.Cleanup(plain.Close)
	to := tlsSites(t, h)
	return []string{strings.Replace(to, "::", ":443:", 1), "--connect-to=:80:" + plain.Listener.Addr().String()}
}

func clientSite(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/robots.txt":
		io.WriteString(w, "User-agent: *\nDisallow: /private\n")
	case r.Header.Get("Upgrade") != "":
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			log.Print(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(c, "upgraded: %s", line)
	default:
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %s of %d bytes over %s, %v", r.Method, r.URL, n, r.Proto, err)
	}
}

func TestCurlUsesTheProxy(t *testing.T) {
	flags, _ := testCA(t)
	ca := strings.TrimPrefix(flags[0], "--ca=")
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	sites := bothSites(t, clientSite)
	seen := startProxy(t, slices.Concat(flags, sites, []string{"--private"})...)
	blind := startProxy(t, append(sites, "--private")...)
	const told = " -w |%{http_code}|%{http_version}"
	for _, c := range []struct {
		v          *relay
		args, want string
	}{
		{seen, "http://a.example.com/a" + told, "GET /a of 0 bytes over HTTP/1.1, <nil>|200|1.1"},
		{seen, "http://a.example.com/private" + told, "line 2: Disallow: /private\"}\n|403|1.1"},
		{seen, "-I http://a.example.com/private" + told, "|403|1.1"},
		{seen, "--http1.1 https://a.example.com/a" + told, "GET /a of 0 bytes over HTTP/2.0, <nil>|200|1.1"},
		{seen, "--http2 https://a.example.com/a" + told, "GET /a of 0 bytes over HTTP/2.0, <nil>|200|2"},
		{seen, "--http2 https://a.example.com/private" + told, "line 2: Disallow: /private\"}\n|403|2"},
		{seen, "-H Expect:100-continue -T LARGE http://a.example.com/a" + told,
			"PUT /a of 3145728 bytes over HTTP/1.1, <nil>|200|1.1"},
		{seen, "-H Expect:100-continue -T LARGE http://a.example.com/private" + told,
			"line 2: Disallow: /private\"}\n|403|1.1"},
		{seen, "-H Transfer-Encoding:chunked -H Expect:100-continue --http1.1 -T LARGE https://a.example.com/a" + told,
			"PUT /a of 3145728 bytes over HTTP/2.0, <nil>|200|1.1"},
		{seen, "--http2 -T LARGE https://a.example.com/a" + told, "PUT /a of 3145728 bytes over HTTP/2.0, <nil>|200|2"},
		{seen, "--http2 -T LARGE https://b.example.com/private" + told, "line 2: Disallow: /private\"}\n|403|2"},
		{seen, "-p http://a.example.com/private" + told, "|403|1.1"},
		{blind, "https://a.example.com/a" + told, "|000|"},
	} {
		args := []string{"-sS", "-m", "20", "--cacert", ca}
		for _, word := range strings.Fields(c.args) {
			args = append(args, strings.Replace(word, "LARGE", large, 1))
		}
		if got := c.v.program(t, "curl", args...); !strings.Contains(got, c.want) {
			t.Errorf("curl %s: %q, want %q", c.args, got, c.want)
		}
	}
	said := blind.program(t, "curl", "-sv", "https://a.example.com/a")
	if !strings.Contains(said, "this proxy has no CA") {
		t.Errorf("a refused tunnel is not explained: %s", said)
	}
}

func TestNodeUsesTheProxy(t *testing.T) {
	flags, _ := testCA(t)
	sites := bothSites(t, clientSite)
	v := startProxy(t, slices.Concat(flags, sites, []string{"--private"})...)
	const denied = `403 robotsgate;error=http_request_denied;details="robots.txt, line 2: Disallow: /private"` + "\n"
	got := v.program(t, "node", "testdata/proxy/client.js", v.url.String(), strings.TrimPrefix(flags[0], "--ca="),
		"http://a.example.com/a", "http://a.example.com/private", "https://a.example.com/a", "https://a.example.com/private")
	want := "200 GET /a of 0 bytes over HTTP/1.1, <nil>\n" + denied +
		"200 GET /a of 0 bytes over HTTP/2.0, <nil>\n" + denied
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// browserPage has a script, a style and an image that are allowed, and others that are not.
const browserPage = `<!DOCTYPE html><title>start</title><link rel=stylesheet href=/a.css><body>
<script src=/a.js></script><script src=/private/a.js onerror="said('script refused')"></script>
<script>
function said(text) { const p = document.createElement('p'); p.textContent = text; document.body.append(p) }
</script>
<img src=/private/a.png onerror="said('image refused')"><img src=/a.svg onload="said('image loaded')">
<script>
fetch('/private/data').then(async r => said('fetch ' + r.status + ' ' + r.headers.get('proxy-status')));
fetch('/data').then(async r => said('fetch ' + r.status + ' ' + await r.text()));
</script>`

func browserSite(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/robots.txt":
		io.WriteString(w, "User-agent: *\nDisallow: /private/\n")
	case "/":
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, browserPage)
	case "/a.js", "/private/a.js":
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprintf(w, "document.title += ' and %s'", r.URL.Path)
	case "/a.svg":
		w.Header().Set("Content-Type", "image/svg+xml")
		io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`)
	default:
		fmt.Fprintf(w, "%s over %s", r.URL.Path, r.Proto)
	}
}

func TestChromiumUsesTheProxy(t *testing.T) {
	tier.Nightly(t)
	flags, _ := testCA(t)
	v := startProxy(t, slices.Concat(flags, bothSites(t, browserSite), []string{"--private"})...)
	for _, scheme := range []string{"http", "https"} {
		dom := v.program(t, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
			"--proxy-server="+v.url.String(), "--ignore-certificate-errors-spki-list="+pin(t, strings.TrimPrefix(flags[0],
				"--ca=")),
			"--virtual-time-budget=10000", "--dump-dom", scheme+"://a.example.com/")
		for _, want := range []string{"<title>start and /a.js</title>", "script refused", "image refused", "image loaded",
			`fetch 403 robotsgate;error=http_request_denied;details="robots.txt, line 2: Disallow: /private/"`,
			"fetch 200 /data over HTTP/"} {
			if !strings.Contains(dom, want) {
				t.Errorf("%s: no %q in\n%s", scheme, want, dom)
			}
		}
	}
}

// pin is the name of a key by which Chromium can be told to trust it.
func pin(t *testing.T, name string) string {
	block, _ := pem.Decode(read(t, name))
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}
