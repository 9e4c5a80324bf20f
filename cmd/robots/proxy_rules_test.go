package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// rulesSite answers as the path says, and notes what it got.
type rulesSite struct {
	mu  sync.Mutex
	got string
}

func (s *rulesSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		io.WriteString(w, "User-agent: *\nDisallow: /private\n")
		return
	}
	s.mu.Lock()
	s.got = fmt.Sprintf("%s %s upgrade %q expect %q", r.Method, r.RequestURI, r.Header["Upgrade"], r.Header["Expect"])
	s.mu.Unlock()
	switch to, ok := strings.CutPrefix(r.URL.Path, "/switch/"); {
	case ok:
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", to)
	case r.URL.Path == "/hints":
		w.WriteHeader(http.StatusEarlyHints)
	case r.URL.Path == "/slow":
		time.Sleep(200 * time.Millisecond)
	}
	io.Copy(io.Discard, r.Body)
}

func (s *rulesSite) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = ""
	return got
}

// What the RFCs ask of a proxy, and net/http leaves to its user.
func TestProxyKeepsTheRulesOfHTTP(t *testing.T) {
	site := new(rulesSite)
	v := startProxy(t, "--private", siteServer(t, site.ServeHTTP))
	const get = "GET http://s.example%s HTTP/1.%s\r\nHost: s.example\r\n%s\r\n"
	upgrade := func(to string) string { return "Connection: Upgrade\r\nUpgrade: " + to + "\r\n" }
	for _, c := range []struct{ name, path, minor, fields, answer, site string }{
		{"1xx is not of HTTP/1.0", "/hints", "0", "", "200", `upgrade [] expect []`},
		{"nor is Upgrade", "/a", "0", upgrade("foo"), "200", `upgrade [] expect []`},
		{"nor is Expect", "/a", "0", "Expect: 100-continue\r\nContent-Length: 0\r\n", "200", `upgrade [] expect []`},
		{"1xx is of HTTP/1.1", "/hints", "1", "", "103 200", `upgrade [] expect []`},
		{"requests in HTTP/2 would not be seen", "/a", "1", "HTTP2-Settings: AAMAAABk\r\n" + upgrade("h2c"), "200",
			`upgrade [] expect []`},
		{"nor in capitals", "/a", "1", upgrade("H2C"), "200", `upgrade [] expect []`},
		{"nor in TLS", "/a", "1", upgrade("TLS/1.0, HTTP/1.1"), "200", `upgrade [] expect []`},
		{"nor if the site insists", "/switch/h2c", "1", upgrade("h2c"), "502", `upgrade [] expect []`},
		{"nor among others", "/a", "1", upgrade("websocket, h2c"), "200", `upgrade [] expect []`},
		{"nor in a field of its own", "/a", "1", upgrade("websocket") + "Upgrade: h2c\r\n", "200", `upgrade [] expect []`},
		{"WebSocket is offered", "/switch/websocket", "1", upgrade("WebSocket"), "101", `upgrade ["WebSocket"] expect []`},
		{"a switch to another", "/switch/bar", "1", upgrade("websocket"), "502", `upgrade ["websocket"] expect []`},
		{"a switch that was not asked for", "/switch/websocket", "1", "", "502", `upgrade [] expect []`},
		{"what must be escaped", "/a|é/{}[]?|", "1", "", "200", `GET /a%7C%C3%A9/%7B%7D%5B%5D?| upgrade`},
		{"what must be escaped, beside escapes", "/a|b%2Fc", "1", "", "400", ""},
		{"what must be escaped, and has a dot segment", "/a|%2F..%2Fprivate", "1", "", "400", ""},
	} {
		codes := v.raw(fmt.Sprintf(get, c.path, c.minor, c.fields), len(strings.Fields(c.answer)))
		if got := site.take(); codes != c.answer || !strings.Contains(got, c.site) || c.site == "" && got != "" {
			t.Errorf("%s: %s, want %s; the site got %s, want %s", c.name, codes, c.answer, got, c.site)
		}
	}
}

// Many clients send all of a body before they read that it was refused.
func TestProxyRefusesWhatIsStillSent(t *testing.T) {
	v := startProxy(t, "--private", siteServer(t, new(rulesSite).ServeHTTP))
	body := strings.Repeat("x", 32<<20) // more than sockets hold
	const get = "GET http://s.example/a HTTP/1.1\r\nHost: s.example\r\nConnection: close\r\n\r\n"
	for head, status := range map[string]string{
		"POST http://s.example/private": "403 Forbidden", "PUT ftp://s.example/": "400 Bad Request",
	} {
		for _, framed := range []string{
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
			fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		} {
			c := v.send("")
			_, err := io.WriteString(c, head+" HTTP/1.1\r\nHost: s.example\r\n"+framed)
			io.WriteString(c, get) // it may be answered, and ends the connection
			data, readErr := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(data), "HTTP/1.1 "+status+"\r\n") ||
				!strings.Contains(string(data), `"detail":"`) {
				t.Errorf("%s, %.20s: got %.300q, %v, %v, want a problem document", head, framed, data, err, readErr)
			}
			c.Close()
		}
	}
}

// A site that speaks HTTP/2 upgrades nothing there, but perhaps over HTTP/1.1.
func TestProxyUpgradesBesideHTTP2(t *testing.T) {
	flags, pool := testCA(t)
	v := startProxy(t, append(flags, "--private", tlsSites(t, clientSite))...)
	c := v.client(pool)
	for _, protocol := range []string{"", "websocket", "websocket"} {
		req := httptest.NewRequest("GET", "https://a.example.com/a", nil)
		if protocol != "" {
			req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}}
		}
		res := answerTo(t, c, req)
		if protocol == "" {
			if data, _ := io.ReadAll(res.Body); !strings.Contains(string(data), "over HTTP/2.0") {
				t.Errorf("got %s %s, want it over HTTP/2.0", res.Status, data)
			}
			continue
		}
		if res.StatusCode != http.StatusSwitchingProtocols {
			data, _ := io.ReadAll(res.Body)
			t.Fatalf("got %s %s, want 101", res.Status, data)
		}
		both := res.Body.(io.ReadWriteCloser)
		io.WriteString(both, "hello\n")
		if data, err := io.ReadAll(both); string(data) != "upgraded: hello\n" {
			t.Errorf("got %q, %v, want \"upgraded: hello\"", data, err)
		}
		both.Close()
	}
}

// What a site does instead of answering is told apart (RFC 9209 §2.3).
func TestProxyTellsWhatASiteDid(t *testing.T) {
	v := startProxy(t, "--private", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		switch r.URL.Path {
		case "/reset":
			c.(*net.TCPConn).SetLinger(0)
		case "/garbage":
			io.WriteString(c, "SSH-2.0-x\r\n")
		case "/half":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: ")
		case "/lengths":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
		case "/status":
			io.WriteString(c, "HTTP/1.1 099 None\r\nContent-Length: 2\r\n\r\nok")
		}
		c.Close()
	}))
	for path, want := range map[string]string{
		"/end": "connection_terminated", "/reset": "connection_terminated", "/garbage": "http_protocol_error",
		"/half": "connection_terminated", "/lengths": "http_protocol_error", "/status": "http_protocol_error",
	} {
		res, body := v.do("POST", "http://s.example"+path) // which net/http does not repeat
		if res.StatusCode != 502 || !strings.Contains(res.Header.Get("Proxy-Status"), "error="+want+";") {
			t.Errorf("%s: got %s %v %s, want 502 and %s", path, res.Status, res.Header, body, want)
		}
	}
}
