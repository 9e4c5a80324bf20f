package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// raw sends bytes to the proxy, and returns the status codes of its answers: as many as are expected,
// and what comes soon after them.
func (v *relay) raw(text string, expected int) (codes string) {
	c := v.send(text)
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		if expected--; expected < 0 {
			c.SetDeadline(time.Now().Add(20 * time.Millisecond))
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return strings.TrimSpace(codes)
		}
		io.Copy(io.Discard, res.Body)
		codes += fmt.Sprint(res.StatusCode, " ")
	}
}

// Whatever the bytes, the site gets no request that was not decided on, and none that we and it
// could cut in two ways.
func TestProxySmugglesNothing(t *testing.T) {
	var mu sync.Mutex
	var got []string
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return // a body that broke off is none
		}
		mu.Lock()
		got = append(got, fmt.Sprintf("%s %s %s %d %q %d", r.Method, r.Host, r.RequestURI, r.ContentLength,
			r.TransferEncoding, n))
		mu.Unlock()
		if len(r.TransferEncoding) > 0 && r.Header.Get("Content-Length") != "" {
			t.Errorf("both framings came: %v", r.Header)
		}
	}))
	site.Config.DisableGeneralOptionsHandler = true
	site.Start()
	defer site.Close()
	v := startProxy(t, "--private", "--connect-to=::"+site.Listener.Addr().String())
	const host, chunked = "Host: s.example\r\n", "Transfer-Encoding: chunked\r\n"
	const post, origin = "POST http://s.example/a HTTP/1.1\r\n" + host, "GET /private HTTP/1.1\r\n" + host + "\r\n"
	const inside = "GET http://s.example/private HTTP/1.1\r\n" + host + "\r\n"
	for _, c := range []struct{ name, text, codes, site string }{
		{"two framings, the body ends at once", post + "Content-Length: 80\r\n" + chunked + "\r\n0\r\n\r\n" + inside, "200",
			`POST s.example /a -1 ["chunked"] 0`},
		{"two framings, the length is short", post + "Content-Length: 4\r\n" + chunked + "\r\n48\r\n" + strings.Repeat("x",
			0x48) + "\r\n0\r\n\r\n", "200", `POST s.example /a -1 ["chunked"] 72`},
		{"two lengths", post + "Content-Length: 0\r\nContent-Length: 50\r\n\r\n" + origin, "400", ""},
		{"an unknown framing", post + "Transfer-Encoding: xchunked\r\n\r\n" + origin, "501", ""},
		{"chunked in two fields", post + chunked + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" + origin, "501", ""},
		{"a blank before the colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + origin, "400", ""},
		{"a folded field", post + "X-A: b\r\n " + chunked + "\r\n", "200", `POST s.example /a 0 [] 0`},
		{"a field with a line feed alone", post + "X-A: b\nContent-Length: 0\r\n\r\n", "200", `POST s.example /a 0 [] 0`},
		{"a chunk of a size beyond numbers", post + chunked + "\r\nfffffffffffffffff\r\nx" + origin, "400", ""},
		{"a chunk with an extension that breaks off", post + chunked + "\r\n1;a\nb\r\nx\r\n0\r\n\r\n" + origin, "400", ""},
		{"two framings of what is forbidden",
			strings.Replace(post, "/a", "/private", 1) + "Content-Length: 5\r\n" + chunked + "\r\n0\r\n\r\n" + inside, "403", ""},
		{"another Host", "GET http://s.example/a HTTP/1.1\r\nHost: other.example\r\n\r\n", "200", "GET s.example /a 0 [] 0"},
		{"two Hosts", "GET http://s.example/a HTTP/1.1\r\nHost: s.example\r\nHost: other.example\r\n\r\n", "400", ""},
		{"no Host", "GET http://s.example/a HTTP/1.1\r\n\r\n", "400", ""},
		{"a target in two parts", "GET http://s.example/a HTTP/1.1 /private HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"a target without an authority", "GET http:/private HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"an opaque target", "GET http:s.example/private HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"a backslash", "GET http://s.example\\@other.example/ HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"a user", "GET http://other.example@s.example/a HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"another scheme", "GET ftp://s.example/a HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"the form of a site", "GET /a HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"the asterisk", "OPTIONS * HTTP/1.1\r\nHost: s.example\r\n\r\n", "200", ""},
		{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400", ""},
		{"a version of tomorrow", "GET http://s.example/a HTTP/3.0\r\nHost: s.example\r\n\r\n", "505", ""},
		{"dot segments", "GET http://s.example/a/..%2fprivate HTTP/1.1\r\nHost: s.example\r\n\r\n", "400", ""},
		{"an Upgrade with a line feed",
			"GET http://s.example/a HTTP/1.1\r\nHost: s.example\r\nConnection: Upgrade\r\nUpgrade: a\x01b\r\n\r\n", "400", ""},
	} {
		if codes := v.raw(c.text, len(strings.Fields(c.codes))); codes != c.codes {
			t.Errorf("%s: answers %q, want %q", c.name, codes, c.codes)
		}
		mu.Lock()
		if site := strings.Join(got, "; "); site != c.site {
			t.Errorf("%s: the site got %q, want %q", c.name, site, c.site)
		}
		got = nil
		mu.Unlock()
	}
}

// What is not allowed in a trailer (RFC 9110 §6.5.1) does not pass, either way: another program may take it for a field.
func TestProxyPassesNoFramingInTrailers(t *testing.T) {
	trailer := make(chan http.Header, 1)
	site := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			return
		}
		io.Copy(io.Discard, r.Body)
		trailer <- r.Trailer
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nConnection: x\r\nHost: x\r\n\r\n")
	})
	v := startProxy(t, "--private", site)
	c := v.send("POST http://s.example/a HTTP/1.1\r\nHost: s.example\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" +
		"Trailer: X-Sum\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nHost: other.example\r\nAuthorization: x\r\n\r\n")
	defer c.Close()
	answer, err := io.ReadAll(c)
	if _, end, _ := strings.Cut(string(answer), "\r\n0\r\n"); err != nil || end != "X-Sum: 1\r\n\r\n" {
		t.Errorf("the client got the trailer %q, %v, want X-Sum alone", end, err)
	}
	if got := <-trailer; len(got) != 1 || got.Get("X-Sum") != "1" {
		t.Errorf("the site got the trailer %q, want X-Sum alone", got)
	}
}

func TestProxyTunnelsToWebOriginsOnly(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer inner.Close()
	flags, _ := testCA(t)
	_, port, _ := net.SplitHostPort(inner.Listener.Addr().String())
	for _, args := range [][]string{flags, nil} {
		v := startProxy(t, append(args, "--timeout=2s")...)
		for target, want := range map[string]int{
			"s.example:22": 400, "s.example:25": 400, "s.example:6667": 400, "s.example:0": 400, "s.example": 400,
			"s.example:443/x":      400,
			"http://s.example:443": 400, "/s.example:443": 400, "u@s.example:443": 400, "s.example:443%0d%0aX:1": 400,
			"s.example:443\tX":  400,
			"127.0.0.1:" + port: 403, "[::1]:" + port: 403, "[::ffff:127.0.0.1]:" + port: 403, "10.0.0.1:443": 403,
			"169.254.169.254:80": 403,
		} {
			if _, status, body := v.connectTo(target, ""); status != want {
				t.Errorf("%q: CONNECT %q: %d %s, want %d", args, target, status, body, want)
			}
		}
		// A name tells where it leads only when it is looked up: then nothing is connected to.
		c, status, body := v.connectTo("localhost:"+port, "")
		switch {
		case len(args) == 2 && status == 200:
			io.WriteString(c, "GET /robots.txt HTTP/1.1\r\nHost: localhost:"+port+"\r\nConnection: close\r\n\r\n")
			data, _ := io.ReadAll(c)
			if !strings.HasPrefix(string(data), "HTTP/1.1 403 ") {
				t.Errorf("%q: localhost: got %s, want 403", args, data)
			}
		case status != 403:
			t.Errorf("%q: localhost: got %d %s, want 403", args, status, body)
		}
	}
}

// Whatever a site or client writes, Proxy-Status is one field, and well-formed (RFC 9651), and the answer is short.
func TestProxyStatusIsWellFormed(t *testing.T) {
	texts := []string{`/"`, `/\`, `/\"; error=x`, "/é", "/\x00\x1b[31m", "/a\tb", "/" + strings.Repeat("*", 400<<10),
		`/",robotsgate2;a=b`}
	for _, text := range texts {
		v := startProxy(t, "--private", "--agent-from-client", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "User-agent: *\nDisallow: /\nDisallow: %s*\n", text)
		}))
		for _, agent := range []string{"x", `"\",a=b`, "é;x"} {
			res, body := v.do("GET", "http://s.example/x", "User-Agent: "+agent)
			list, err := httpsfv.UnmarshalList(res.Header["Proxy-Status"])
			if err != nil || len(list) != 1 || res.StatusCode != 403 || len(body) > 4<<10 {
				t.Errorf("%.99q for %q: %s %q: %v, %d bytes", text, agent, res.Status, res.Header["Proxy-Status"], err, len(body))
			}
		}
	}
}

// Clients that stall lose their connections, and the rest goes on.
func TestProxyDoesNotWaitForSlowClients(t *testing.T) {
	l := proxy.UsualLimits()
	l.Ask, l.Idle, l.Patience = time.Second, time.Second, time.Second
	flags, _ := testCA(t)
	sites := bothSites(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
			return
		}
		io.Copy(io.Discard, r.Body)
		for range 2000 { // more than sockets hold
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	})
	v := startProxyWith(t, l, append(append(flags, sites...), "--private")...)
	const post = "POST http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 9\r\n\r\nabc"
	for name, open := range map[string]func() net.Conn{
		"a header without an end":          func() net.Conn { return v.send("GET http://a.example.com/ HTTP/1.1\r\n") },
		"nothing at all":                   func() net.Conn { return v.send("") },
		"half a body":                      func() net.Conn { return v.send(post) },
		"half a body of what is refused":   func() net.Conn { return v.send(strings.Replace(post, "/ ", "/private ", 1)) },
		"half a body of what is no target": func() net.Conn { return v.send(strings.Replace(post, "http:", "ftp:", 1)) },
		"an answer that is not taken": func() net.Conn {
			return v.send("GET http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\n\r\n")
		},
		"a tunnel without a byte": func() net.Conn { c, _, _ := v.connectTo("a.example.com:443", ""); return c },
		"half a handshake": func() net.Conn {
			c, _, _ := v.connectTo("a.example.com:443", "")
			io.WriteString(c, "\x16\x03\x01")
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open()
			defer c.Close()
			// Nothing is read until the proxy must have given up.
			begin := time.Now()
			for time.Since(begin) < 2500*time.Millisecond {
				if res, _ := v.do("GET", "http://a.example.com/robots.txt"); res.StatusCode != 200 {
					t.Errorf("others get %s, want 200", res.Status)
				}
				time.Sleep(100 * time.Millisecond)
			}
			c.SetDeadline(time.Now().Add(10 * time.Second))
			n, err := io.Copy(io.Discard, c)
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() || n > 60<<20 {
				t.Errorf("the connection is still there: %d bytes, %v", n, err)
			}
		})
	}
}

// send opens a connection to the proxy and sends text.
func (v *relay) send(text string) net.Conn { return dial(v.t, v.url.Host, text) }

// When a client goes away, the site is let go of: before the answer, in the middle of it, and in
// the middle of an upload.
func TestProxyLetsGoOfTheSite(t *testing.T) {
	tier.Gate(t)
	began, ended := make(chan string, 9), make(chan string, 9)
	v := startProxy(t, "--private", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			return
		case "/middle":
			w.Write(make([]byte, 1<<10))
			http.NewResponseController(w).Flush()
		case "/upload":
			r.Body.Read(make([]byte, 3))
		}
		began <- r.URL.Path
		if r.URL.Path == "/upload" {
			io.Copy(io.Discard, r.Body)
		} else {
			<-r.Context().Done()
		}
		ended <- r.URL.Path
	}))
	for path, body := range map[string]string{"/before": "", "/middle": "", "/upload": "Content-Length: 100\r\n\r\nabc"} {
		method := "GET"
		if body == "" {
			body = "\r\n"
		} else {
			method = "POST"
		}
		c := v.send(method + " http://s.example" + path + " HTTP/1.1\r\nHost: s.example\r\n" + body)
		for _, step := range []chan string{began, ended} {
			select {
			case <-step:
			case <-time.After(time.Minute):
				t.Fatalf("%s: the site waits", path)
			}
			c.Close()
		}
	}
}

// A drain waits for what is under way in tunnels of both kinds, and cuts off what stays.
func TestProxyDrains(t *testing.T) {
	var under atomic.Int64
	release := make(chan struct{})
	flags, pool := testCA(t)
	sites := bothSites(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			under.Add(1)
			<-release
			io.WriteString(w, "done")
		}
	})
	for _, cut := range []bool{false, true} {
		drain := "--drain=9s"
		if cut {
			drain = "--drain=100ms"
		}
		v := startProxy(t, append(append(flags, sites...), "--private", drain)...)
		answers := make(chan error, 4)
		ask := func(c *http.Transport, url string) {
			res, err := c.RoundTrip(httptest.NewRequest("GET", url, nil))
			if err == nil {
				_, err = io.ReadAll(res.Body)
			}
			answers <- err
			c.CloseIdleConnections()
		}
		for _, h2 := range []bool{false, true} {
			c := v.client(pool)
			c.ForceAttemptHTTP2 = h2
			go ask(c, "https://a.example.com/slow")
		}
		go ask(v.client(nil), "http://a.example.com/slow")
		for under.Load() < 3 {
			time.Sleep(time.Millisecond)
		}
		v.stop()
		if !cut {
			time.AfterFunc(200*time.Millisecond, func() { close(release) })
		}
		for range 3 {
			if err := <-answers; (err != nil) != cut {
				t.Errorf("cut %v: got %v, want an error only then", cut, err)
			}
		}
		select {
		case status := <-v.end:
			v.end <- status
			if status != shell.ExitOK {
				t.Errorf("cut %v: exit status %d, want %d", cut, status, shell.ExitOK)
			}
		case <-time.After(time.Minute):
			t.Errorf("cut %v: it does not end", cut)
		}
		under.Store(0)
		if !cut {
			release = make(chan struct{})
		}
	}
	close(release)
}

// More requests than there are places for are told so.
func TestProxyIsBounded(t *testing.T) {
	release := make(chan struct{})
	var under atomic.Int64
	l := proxy.UsualLimits()
	l.Underway = 2
	v := startProxyWith(t, l, "--private", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			under.Add(1)
			<-release
		}
	}))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { v.do("GET", "http://s.example/slow") })
	}
	for under.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if res, body := v.do("GET", "http://s.example/"); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("got %s %s, want 503 and a Retry-After", res.Status, body)
	}
	close(release)
	both.Wait()
	if res, body := v.do("GET", "http://s.example/"); res.StatusCode != 200 {
		t.Errorf("got %s %s, want 200", res.Status, body)
	}
}
