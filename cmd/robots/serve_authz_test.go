package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func authzSite(w http.ResponseWriter, r *http.Request) {
	switch name, _, _ := strings.Cut(r.Host, ":"); name {
	case "down.example":
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "User-agent: *\nDisallow: /private\nDisallow: //\nUser-agent: guest\nAllow: /\n")
	}
}

// The shapes are those that nginx (as the documentation configures it), Caddy, Traefik and
// Envoy document.
func TestAuthzUnderstandsGateways(t *testing.T) {
	to := siteServer(t, authzSite)
	v := startServe(t, serve.UsualLimits(), "--private", "--trusted=127.0.0.0/8", to)
	const fwd = "X-Forwarded-Proto: http|X-Forwarded-Host: s.example|X-Forwarded-Method: GET|X-Forwarded-Uri: "
	for _, c := range []struct {
		method, path, fields string // separated by |
		status               int
		says                 string
	}{
		{"GET", "/authz", "X-Original-URL: http://s.example/a?b=c", 200, ""},
		{"GET", "/authz", "X-Original-URL: http://s.example/private", 403, "line 2: Disallow: /private"},
		{"GET", "/authz", "X-Original-URL: http://s.example/private|User-Agent: Guest/1.0 (+http://g.example)", 200, ""},
		{"GET", "/authz", "X-Original-URL: http://down.example/", 403, "unreachable"},
		{"GET", "/authz", fwd + "/a", 200, ""},
		{"GET", "/authz", fwd + "/private?x", 403, "Disallow"},
		{"POST", "/authz", fwd + "/private", 403, "Disallow"},
		{"GET", "/authz", "Host: s.example|" + fwd + "/a|Origin: http://evil.example|Sec-Fetch-Site: cross-site", 200, ""},
		{"GET", "/authz", "X-Forwarded-Proto: ws|X-Forwarded-Host: s.example|X-Forwarded-Uri: /a", 200, ""},
		{"POST", "/authz/a?b", "Host: s.example|X-Forwarded-Proto: http", 200, ""},
		{"PUT", "/authz/private/../a", "Host: s.example|X-Forwarded-Proto: http", 403, "dot segment"},
		{"GET", "/authz//a", "Host: s.example|X-Forwarded-Proto: http", 403, "Disallow: //"},
		{"GET", "/authz/", "Host: s.example|X-Forwarded-Proto: http|Sec-Fetch-Site: cross-site", 200, ""},

		// No absolute target, or more than one.
		{"GET", "/authz", "X: y", 400, "neither"},
		{"GET", "/authz", "X-Original-URL: /a", 400, "no absolute"},
		{"GET", "/authz", "X-Original-URL: s.example/a", 400, "no absolute"},
		{"GET", "/authz", "X-Original-URL: ftp://s.example/a", 400, "no absolute"},
		{"GET", "/authz", "X-Original-URL: http:///a", 400, "no absolute"},
		{"GET", "/authz", "X-Original-URL: http://s.example/a#/../private", 400, "fragment"},
		{"GET", "/authz", fwd + "/a#/../private", 400, "fragment"},
		{"GET", "/authz/a#/../private", "Host: s.example|X-Forwarded-Proto: http", 400, "fragment"},
		{"GET", "/authz", "X-Original-URL: http://s.example/a|X-Original-URL: http://s.example/private", 400, "twice"},
		{"GET", "/authz", "X-Original-URL: http://s.example/private|User-Agent: guest|User-Agent: other", 400, "User-Agent occurs twice"},
		{"GET", "/authz", "X-Original-URL: http://s.example/a|" + fwd + "/private", 400, "which of them"},
		{"GET", "/authz", "X-Original-URL: http://s.example/private|" + fwd + "/private", 403, "Disallow"},
		{"GET", "/authz/private", "Host: s.example|X-Forwarded-Proto: http|X-Original-URL: http://s.example/a",
			400, "which"},
		{"GET", "/authz", "X-Forwarded-Host: s.example|X-Forwarded-Uri: /a", 400, "X-Forwarded-Proto"},
		{"GET", "/authz", "X-Forwarded-Proto: http|X-Forwarded-Uri: /a", 400, "host"},
		{"GET", "/authz", "X-Forwarded-Proto: http|X-Forwarded-Host: s.example", 400, "path"},
		{"GET", "/authz", "X-Forwarded-Proto: http|X-Forwarded-Host: a.example, s.example|X-Forwarded-Uri: /", 400, "host"},
		{"GET", "/authz", "X-Forwarded-Proto: http|X-Forwarded-Host: a@s.example|X-Forwarded-Uri: /", 400, "host"},
		{"GET", "/authz", "X-Forwarded-Proto: http|X-Forwarded-Host: s.example|X-Forwarded-Uri: a", 400, "path"},
		{"GET", "/authz/a", "Host: s.example", 400, "X-Forwarded-Proto"},
		{"GET", "/authzx", "Host: localhost", 404, "not found"},
	} {
		text := c.method + " " + c.path + " HTTP/1.1|" + c.fields // as it is: net/http would send no request with a fault
		if !strings.HasPrefix(c.fields, "Host: ") {
			text += "|Host: localhost"
		}
		res, err := http.ReadResponse(bufio.NewReader(v.dial(strings.ReplaceAll(text+"||", "|", "\r\n"))), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		got := string(body)
		if res.StatusCode != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s %s, %s: got %s %s, want %d, %q", c.method, c.path, c.fields, res.Status, got, c.status, c.says)
		}
		status := res.Header.Get("Proxy-Status")
		refused := strings.HasPrefix(status, "robotsgate;error=http_request_denied;details=")
		if refused != (c.status == 403) {
			t.Errorf("%s: Proxy-Status is %q, want one: %v", c.fields, status, c.status == 403)
		}
		if retry := res.Header.Get("Retry-After"); (retry != "") != (c.says == "unreachable") {
			t.Errorf("%s: Retry-After is %q, want one: %v", c.fields, retry, c.says == "unreachable")
		}
	}
}

// What a client says that is no gateway is not believed, and is never a permission.
func TestAuthzBelievesNoStranger(t *testing.T) {
	v := startServe(t, serve.UsualLimits(), "--private", "--trusted=192.0.2.0/24", siteServer(t, authzSite))
	for _, fields := range []string{
		"X-Original-URL: http://s.example/a",
		"X-Forwarded-Proto: http|X-Forwarded-Host: s.example|X-Forwarded-Uri: /a",
		"X-Original-URL: http://s.example/a|X-Forwarded-For: 192.0.2.1|X-Real-IP: 192.0.2.1|Forwarded: for=192.0.2.1",
	} {
		if res, got := v.do("GET", "/authz", "", strings.Split(fields, "|")...); res.StatusCode != 400 {
			t.Errorf("%s: %s %s, want 400", fields, res.Status, got)
		}
	}
	if res, _ := v.do("GET", "/authz/a", "", "Host: s.example", "X-Forwarded-Proto: http"); res.StatusCode != 421 {
		t.Errorf("another Host: %s, want 421", res.Status)
	}
}

const nginxConfig = `daemon off; master_process off; pid DIR/pid; error_log DIR/error.log;
events {}
http {
  access_log off;
  client_body_temp_path DIR/1; proxy_temp_path DIR/2;
  fastcgi_temp_path DIR/3; uwsgi_temp_path DIR/4; scgi_temp_path DIR/5;
  server {
    listen LISTEN;
    location / {
      auth_request /.robotsgate;
      auth_request_set $why $upstream_http_proxy_status;
      add_header Proxy-Status $why always;
      proxy_pass http://ORIGIN;
      proxy_set_header Host $http_host;
    }
    location = /.robotsgate {
      internal;
      proxy_pass http://SERVE/authz;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
      proxy_set_header X-Forwarded-Host "";
      proxy_set_header X-Forwarded-Uri "";
    }
  }
}
`

const caddyConfig = `{
	admin off
	auto_https off
}
http://LISTEN, http://s.example:PORT, http://down.example:PORT {
	forward_auth SERVE {
		uri /authz
		header_up Host {upstream_hostport}
	}
	reverse_proxy ORIGIN
}
`

func TestAuthzUnderRealGateways(t *testing.T) {
	for _, g := range []struct {
		name, config string
		args         []string // before the file
	}{
		{"nginx", nginxConfig, []string{"-p", "DIR", "-c"}},
		{"caddy", caddyConfig, []string{"run", "--adapter", "caddyfile", "--config"}},
	} {
		t.Run(g.name, func(t *testing.T) {
			tier.Gate(t)
			binary, err := exec.LookPath(g.name)
			if err != nil {
				t.Skipf("%v: apt-get install %s", err, g.name)
			}
			var passed atomic.Int64
			origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { passed.Add(1) }))
			defer origin.Close()
			v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, authzSite))
			at := gateway(t, binary, g.args, g.config, origin.Listener.Addr().String(), v.addr)
			_, port, _ := net.SplitHostPort(at)
			s := &serving{t: t, url: "http://" + at}
			for _, c := range []struct {
				fields, path string
				pass         bool
			}{
				{"X: y", "/a?b=c", true},
				{"X: y", "/robots", true},
				{"X: y", "/private", false},
				{"X: y", "/private?a=%2F", false},
				{"User-Agent: guest/2", "/private", true},
				{"X-Original-URL: http://s.example/a", "/private", false},
				{"X-Forwarded-Host: s.example|X-Forwarded-Uri: /a|X-Forwarded-Proto: http", "/private", false},
				{"X-Original-URI: /a|X-Forwarded-Method: OPTIONS|X-Forwarded-For: 127.0.0.1", "/private", false},
				{"X-Forwarded-Host: s.example|X-Forwarded-Uri: /private", "/a", true},
				{"Sec-Fetch-Site: cross-site|Origin: http://evil.example", "/a", true},
				{"Host: down.example:" + port, "/a", false},
			} {
				before := passed.Load()
				fields := append([]string{"Host: s.example:" + port}, strings.Split(c.fields, "|")...)
				res, got := s.do("GET", c.path, "", fields...)
				if did := passed.Load() > before; did != c.pass || (res.StatusCode == 200) != c.pass {
					t.Errorf("%s, %s: passed %v, want %v, status %d: %s\n%s", c.path, c.fields, did, c.pass, res.StatusCode, got, v.log)
				}
				if why := res.Header.Get("Proxy-Status"); res.StatusCode == 403 && why == "" || c.pass && why != "" {
					t.Errorf("%s, %s: Proxy-Status is %q, want one with a 403: %d", c.path, c.fields, why, res.StatusCode)
				}
				if g.name == "caddy" && !c.pass && c.fields == "X: y" && !strings.Contains(got, "Disallow: /private") {
					t.Errorf("the client is told %q", got)
				}
			}
		})
	}
}

// gateway runs a server with a configuration, and returns its address once it listens.
func gateway(t *testing.T, binary string, args []string, config, origin, authz string) string {
	t.Helper()
	dir, port := t.TempDir(), proc.FreePort(t)
	at := "127.0.0.1:" + port
	fill := strings.NewReplacer("DIR", dir, "LISTEN", at, "ORIGIN", origin, "SERVE", authz, "PORT", port)
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(fill.Replace(config)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	for _, a := range args {
		cmd.Args = append(cmd.Args, fill.Replace(a))
	}
	cmd.Args = append(cmd.Args, file)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	proc.Serve(t, cmd, at)
	return at
}
