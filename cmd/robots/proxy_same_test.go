package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// exchange is a row of exchanges.
type exchange struct {
	name  string
	steps string
	hop   string // fields of one hop, which do not pass
}

// exchanges are made with and without the proxy, over http and https, and must be the same. The
// steps of each run one after the other:
//
//	C> what the client sends         S> what the site sends
//	C< what the client gets by then  S< what the site gets by then
//	S| the site closes the connection
//
// A line ends where there is a "|". {host} is the site, {url} what a request line names it by, {8k}
// and {1m} are that many bytes.
var exchanges = []exchange{
	once("a page", "GET /a?b=c|User-Agent: A/1",
		"200 OK|Content-Length: 5|Content-Type: text/plain|Date: Sun, 06 Nov 1994 08:49:37 GMT||hello", ""),
	once("a request without any field", "GET /", "200 OK|Content-Length: 2||ok", ""),
	once("a target that no parser would have written", "GET /%7euser//x/%2F;p=1?a=;b&&%zz=%&c+d",
		"200 OK|Content-Length: 2||ok", ""),
	once("a lone question mark", "GET /a?", "200 OK|Content-Length: 2||ok", ""),
	once("a host in capitals", "GET /|X-Case: MiXed", "200 OK|Content-Length: 2|X-Case: MiXed||ok", ""),
	once("a page without a type", "GET /", "200 OK|Content-Length: 15||<html>hi</html>", ""),
	{"a body without a length", `
C> GET {url}/ HTTP/1.1|Host: {host}||
S> HTTP/1.1 200 OK||until the end
S|`, ""},
	{"a body without a length, from an old server", `
C> GET {url}/ HTTP/1.1|Host: {host}||
S> HTTP/1.0 200 OK|Server: old||until the end
S|`, ""},
	once("chunks", "GET /", "200 OK|Transfer-Encoding: chunked||3;x=y|abc|2|de|0||", ""),
	{"chunks in turns", `
C> GET {url}/ HTTP/1.1|Host: {host}||
S> HTTP/1.1 200 OK|Transfer-Encoding: chunked||5|first|
C< first
S> 6|second|
C< second
S> 0||`, ""},
	once("trailers", "GET /|TE: trailers|Connection: TE",
		"200 OK|Transfer-Encoding: chunked|Trailer: X-Sum, X-More||3|abc|0|X-Sum: 1|X-More: 2||", ""),
	once("trailers that were not announced", "GET /|TE: trailers|Connection: TE",
		"200 OK|Transfer-Encoding: chunked||3|abc|0|X-Sum: 1||", ""),
	{"trailers of a request", `
C> POST {url}/ HTTP/1.1|Host: {host}|Transfer-Encoding: chunked|Trailer: X-Sum||3|abc|0|X-Sum: 1||
S< X-Sum: 1
S> HTTP/1.1 200 OK|Content-Length: 2||ok`, ""},
	{"early hints", `
C> GET {url}/ HTTP/1.1|Host: {host}||
S> HTTP/1.1 103 Early Hints|Link: </a.css>; rel=preload||
C< rel=preload
S> HTTP/1.1 200 OK|Content-Length: 2||ok`, ""},
	{"Expect, and the site wants it", `
C> POST {url}/ HTTP/1.1|Host: {host}|Content-Length: 3|Expect: 100-continue||
S< 100-continue
S> HTTP/1.1 100 Continue||
C< 100 Continue
C> abc
S< abc
S> HTTP/1.1 200 OK|Content-Length: 2||ok`, ""},
	{"Expect, and the site refuses", `
C> POST {url}/ HTTP/1.1|Host: {host}|Content-Length: 3|Expect: 100-continue||
S< 100-continue
S> HTTP/1.1 417 Expectation Failed|Content-Length: 2||no
S|`, ""},
	once("HEAD with a length", "HEAD /", `200 OK|Content-Length: 12345|ETag: "x"||`, ""),
	once("HEAD without a length", "HEAD /", `200 OK|Transfer-Encoding: chunked|ETag: "x"||`, ""),
	once("a range", `GET /|Range: bytes=2-3|If-Range: "x"`,
		`206 Partial Content|Content-Range: bytes 2-3/10|Content-Length: 2|ETag: "x"||cd`, ""),
	once("two ranges", "GET /|Range: bytes=0-0,2-2",
		`206 Partial Content|Content-Type: multipart/byteranges; boundary=B|Content-Length: 8||--B\n\na--`, ""),
	once("a range that cannot be", "GET /|Range: bytes=20-",
		"416 Range Not Satisfiable|Content-Range: bytes */10|Content-Length: 0||", ""),
	once("gzip that was asked for", "GET /|Accept-Encoding: gzip, br;q=0.5",
		`200 OK|Content-Encoding: gzip|Content-Length: 6||\x1f\x8b\x08\x00zz`, ""),
	once("gzip that was not asked for", "GET /",
		`200 OK|Content-Encoding: gzip|Content-Length: 6|Vary: Accept-Encoding||\x1f\x8b\x08\x00zz`, ""),
	once("a coding of tomorrow", "GET /|Accept-Encoding: zz",
		`200 OK|Content-Encoding: zz|Transfer-Encoding: chunked||4|\x00\xff\x1f\x8b|0||`, ""),
	once("cookies", `GET /|Cookie: a=b; c="d e"; f|Cookie: second=1`,
		`200 OK|Set-Cookie: a=; Max-Age=0|Set-Cookie: b="x,y"; Secure; HttpOnly|Content-Length: 2||ok`, ""),
	once("a redirect", "GET /", "302 Found|Location: //other.example/x?y#z|Set-Cookie: a=b|Content-Length: 0||", ""),
	{"a redirect that keeps the method", `
C> POST {url}/ HTTP/1.1|Host: {host}|Content-Length: 3||abc
S< abc
S> HTTP/1.1 307 Temporary Redirect|Location: /again|Content-Length: 0||`, ""},
	once("large fields", "GET /{8k}|Cookie: a={8k}|X-A: {8k}|X-B: {8k}",
		"200 OK|Content-Length: 2|X-A: {8k}|Set-Cookie: a={8k}|X-B: {8k}||ok", ""),
	once("a field twice", "GET /|X-A: 1|X-B: 2|X-A: 3|Accept: a/b|Accept: c/d",
		"200 OK|X-A: 1|X-B: 2|X-A: 3|Content-Length: 2||ok", ""),
	once("an empty field, and bytes beyond ASCII", `GET /|X-A:|X-B: é\xff`,
		`200 OK|X-A:|X-B: é\xff|Content-Length: 2||ok`, ""),
	once("fields about the way here", "GET /|Forwarded: for=1|X-Forwarded-For: 1.2.3.4|X-Forwarded-Proto: x|X-Forwarded-Host: h",
		"200 OK|X-Forwarded-For: y|Content-Length: 2||ok", ""),
	once("fields of one hop", "GET /|Connection: X-Hop, keep-alive|X-Hop: 1|Keep-Alive: 5|Proxy-Connection: x",
		"200 OK|Connection: X-Back, keep-alive|X-Back: 1|Keep-Alive: 5|Content-Length: 2||ok", "X-Hop, X-Back, Keep-Alive, Proxy-Connection"),
	once("credentials of the proxy", "GET /|Proxy-Authorization: Basic eA==|Authorization: Basic eQ==",
		"200 OK|Proxy-Authenticate: Basic|Content-Length: 2||ok", "Proxy-Authorization, Proxy-Authenticate"),
	once("a conditional request", `GET /|If-None-Match: "x"|If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT`,
		`304 Not Modified|ETag: "x"|Cache-Control: max-age=5||`, ""),
	once("304 with a length", `GET /|If-None-Match: "x"`,
		`304 Not Modified|ETag: "x"|Content-Length: 100||`, "Content-Length"), // net/http; RFC 9110 §8.6
	once("no content", "DELETE /", "204 No Content|X-A: b||", ""),
	once("an empty page", "GET /", "200 OK|Content-Length: 0|Content-Type: text/html||", ""),
	once("an error of the site", "GET /", "503 Service Unavailable|Retry-After: 120|Content-Length: 4||down", ""),
	once("a status of tomorrow", "GET /", "599 Odd|Content-Length: 3||odd", ""),
	{"a body of GET", `
C> GET {url}/ HTTP/1.1|Host: {host}|Content-Length: 3||abc
S< abc
S> HTTP/1.1 200 OK|Content-Length: 2||ok`, ""},
	{"a method of tomorrow", `
C> FROB {url}/ HTTP/1.1|Host: {host}|Content-Length: 3||abc
S< abc
S> HTTP/1.1 200 OK|Content-Length: 2||ok`, ""},
	once("OPTIONS of a page", "OPTIONS /a|Origin: http://o.example|Access-Control-Request-Method: PUT",
		"204 No Content|Allow: GET, PUT|Access-Control-Allow-Origin: *||", ""),
	{"an upload with a length", `
C> PUT {url}/ HTTP/1.1|Host: {host}|Content-Length: 1048576|Content-Type: x/y||{1m}
S< {end of 1m}
S> HTTP/1.1 201 Created|Location: /x|Content-Length: 2||ok`, ""},
	{"an upload in chunks", `
C> PUT {url}/ HTTP/1.1|Host: {host}|Transfer-Encoding: chunked||100000|{1m}|0||
S< {end of 1m}
S> HTTP/1.1 201 Created|Content-Length: 2||ok`, ""},
	once("a download", "GET /", "200 OK|Content-Length: 1048576||{1m}", ""),
	{"an upload and its answer in turns", `
C> POST {url}/ HTTP/1.1|Host: {host}|Transfer-Encoding: chunked||5|hello|
S< hello
S> HTTP/1.1 200 OK|Transfer-Encoding: chunked||2|ok|
C< ok
C> 5|again|
S< again
S> 3|yes|
C< yes
C> 0||
S> 0||`, ""},
	{"an answer before the upload has ended", `
C> POST {url}/ HTTP/1.1|Host: {host}|Content-Length: 100||abc
S< abc
S> HTTP/1.1 413 Content Too Large|Content-Length: 3|Connection: close||big
C< big
S|`, ""},
	{"WebSocket", `
C> GET {url}/chat HTTP/1.1|Host: {host}|Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Version: 13||
S< Sec-Websocket-Version
S> HTTP/1.1 101 Switching Protocols|Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Accept: eQ==||
C< 101
C> \x81\x85aaaa\x09\x04\x0d\x0d\x0e
S< \x81\x85aaaa\x09\x04\x0d\x0d\x0e
S> \x81\x05hello
C< \x81\x05hello
C> \x88\x80aaaa
S< \x88\x80aaaa
S> \x88\x00
S|`, ""},
	once("an upgrade that the site does not take", "GET /chat|Connection: Upgrade|Upgrade: websocket|Sec-WebSocket-Key: x",
		"426 Upgrade Required|Sec-WebSocket-Version: 13|Content-Length: 2||no", ""),
	{"a body that breaks off", `
C> GET {url}/ HTTP/1.1|Host: {host}||
S> HTTP/1.1 200 OK|Content-Length: 10||hello
C< hello
S|`, ""},
	once("Max-Forwards of a GET", "GET /|Max-Forwards: 0", "200 OK|Content-Length: 2||ok", ""),
}

// once is an exchange of one request, by its method, target and fields, and one answer.
func once(name, request, answer, hop string) exchange {
	line, fields, more := strings.Cut(request, "|")
	if more {
		fields += "|"
	}
	method, target, _ := strings.Cut(line, " ")
	return exchange{name, "C> " + method + " {url}" + target + " HTTP/1.1|Host: {host}|" + fields + "|\nS> HTTP/1.1 " + answer, hop}
}

func TestProxyChangesNothing(t *testing.T) {
	tier.Gate(t)
	names := httptest.NewUnstartedServer(nil)
	names.StartTLS() // its certificate is what we are after
	defer names.Close()
	trust(t, names.Certificate())
	flags, pool := testCA(t)
	for _, scheme := range []string{"http", "https"} {
		s := startScripted(t, scheme, names.TLS.Certificates)
		v := startProxy(t, append(flags, "--private", "--connect-to=::"+s.Addr().String())...)
		for i, e := range exchanges {
			t.Run(scheme+" "+e.name, func(t *testing.T) {
				host := fmt.Sprintf("e%d.example.com", i)
				direct := s.play(t, e, host, dialSite(t, s, host, http.DefaultTransport.(*http.Transport).TLSClientConfig.RootCAs))
				proxied := s.play(t, e, host, dialProxy(t, v, scheme, host, pool))
				if got, want := proxied.summary(e, true), direct.summary(e, false); got != want {
					t.Errorf("with the proxy:\n%s\nwithout:\n%s", got, want)
				}
			})
		}
	}
}

// scripted is a site whose answers are in a script. Its robots.txt is none.
type scripted struct {
	net.Listener
	scheme string
	conns  chan *tape
}

func startScripted(t *testing.T, scheme string, certs []tls.Certificate) *scripted {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if scheme == "https" {
		l = tls.NewListener(l, &tls.Config{Certificates: certs})
	}
	s := &scripted{l, scheme, make(chan *tape)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				r := bufio.NewReader(c)
				if line, _ := r.Peek(len("GET /robots.txt")); string(line) == "GET /robots.txt" {
					http.ReadRequest(r)
					io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
					c.Close()
					return
				}
				s.conns <- taping(c, r)
			}()
		}
	}()
	return s
}

// way is a connection to a site, and how to name the site in a request line there.
type way struct {
	net.Conn
	url string
}

func dialSite(t *testing.T, s *scripted, host string, pool *x509.CertPool) way {
	c := dial(t, s.Addr().String(), "")
	if s.scheme == "https" {
		c = tls.Client(c, &tls.Config{RootCAs: pool, ServerName: host})
	}
	return way{c, ""}
}

func dialProxy(t *testing.T, v *relay, scheme, host string, pool *x509.CertPool) way {
	if scheme == "http" {
		return way{dial(t, v.url.Host, ""), "http://" + host}
	}
	c, status, body := v.connectTo(host+":443", "")
	if status != 200 {
		t.Fatalf("got %d %s, want 200", status, body)
	}
	return way{tls.Client(c, &tls.Config{RootCAs: pool, ServerName: host}), ""}
}

// tape is a connection, and all that was read from it.
type tape struct {
	net.Conn
	mu    sync.Mutex
	more  *sync.Cond
	heard []byte
	err   error
	seen  int // by waitFor
}

func taping(c net.Conn, from io.Reader) *tape {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	r := &tape{Conn: c}
	r.more = sync.NewCond(&r.mu)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			r.mu.Lock()
			r.heard, r.err = append(r.heard, buf[:n]...), err
			r.more.Broadcast()
			r.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return r
}

// waitFor waits until text was heard, behind what was waited for before.
func (r *tape) waitFor(text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if at := bytes.Index(bytes.ToLower(r.heard[r.seen:]), bytes.ToLower([]byte(text))); at >= 0 {
			r.seen += at + len(text)
			return nil
		}
		if r.err != nil {
			return fmt.Errorf("%w, before %.80q came; there was %.300q", r.err, text, r.heard[r.seen:])
		}
		r.more.Wait()
	}
}

// reader reads what was heard from its beginning, and waits for more.
type tapeReader struct {
	*tape
	at int
}

func (r *tapeReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.at == len(r.heard) && r.err == nil {
		r.more.Wait()
	}
	n := copy(p, r.heard[r.at:])
	if r.at += n; n == 0 {
		return 0, r.err
	}
	return n, nil
}

// played is an exchange that was made.
type played struct{ client, site *tape }

var megabyte = strings.Repeat("0123456789abcdef", 65535) + "end of a megabyt"

// play makes an exchange.
func (s *scripted) play(t *testing.T, e exchange, host string, to way) played {
	t.Helper()
	client := taping(to.Conn, to.Conn)
	defer client.Close()
	words := strings.NewReplacer("|", "\r\n", `\n`, "\n", `\xff`, "\xff", `\x1f`, "\x1f", `\x8b`, "\x8b", `\x08`, "\x08",
		`\x00`, "\x00", `\x81`, "\x81", `\x85`, "\x85", `\x09`, "\x09", `\x04`, "\x04", `\x0d`, "\x0d", `\x0e`, "\x0e",
		`\x05`, "\x05", `\x88`, "\x88", `\x80`, "\x80", "{host}", host, "{url}", to.url, "{8k}", strings.Repeat("k", 8<<10),
		"{1m}", megabyte, "{end of 1m}", "end of a megabyt")
	var site *tape
	for step := range strings.SplitSeq(strings.TrimPrefix(e.steps, "\n"), "\n") {
		var err error
		who, what, text := step[0], step[1], ""
		if len(step) > 3 {
			text = words.Replace(step[3:])
		}
		if who == 'S' && site == nil {
			select {
			case site = <-s.conns:
				defer site.Close()
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: the site is not asked; the client got %q", step, client.heard)
			}
			if err := site.waitFor("\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			site.seen = 0
		}
		end := client
		if who == 'S' {
			end = site
		}
		switch what {
		case '>':
			_, err = io.WriteString(end, text)
		case '<':
			err = end.waitFor(text)
		case '|':
			if who == 'C' {
				err = end.Conn.(interface{ CloseWrite() error }).CloseWrite()
			} else {
				err = end.Conn.Close()
			}
		}
		if err != nil {
			t.Fatalf("%.60s: %v", step, err)
		}
	}
	p := played{client, site}
	p.summary(e, false) // waits for the end
	return p
}

// summary is what came over, as far as it means something.
func (p played) summary(e exchange, proxied bool) string {
	var b strings.Builder
	r := bufio.NewReader(&tapeReader{tape: p.site})
	req, err := http.ReadRequest(r)
	if err != nil {
		return err.Error()
	}
	length := req.ContentLength
	body, err := io.ReadAll(req.Body)
	fmt.Fprintf(&b, "%s %s for %s, length %d\n%s", req.Method, req.RequestURI, req.Host, length, p.fields(e, req.Header,
		proxied))
	fmt.Fprintf(&b, "%d bytes, sum %x, %v, trailer %s\n", len(body), crc32.ChecksumIEEE(body), err != nil,
		sorted(req.Trailer))
	in := bufio.NewReader(&tapeReader{tape: p.client})
	for {
		res, err := http.ReadResponse(in, req)
		if err != nil {
			fmt.Fprintln(&b, err)
			return b.String()
		}
		// A body without a byte may come as "0" or as no chunk, whichever net/http is sooner with.
		if res.Header.Get("Content-Length") == "0" {
			res.Header.Del("Content-Length")
		}
		fmt.Fprintf(&b, "%d, length %d\n%s", res.StatusCode, max(res.ContentLength, 0), p.fields(e, res.Header, proxied))
		if res.StatusCode == http.StatusSwitchingProtocols {
			rest, _ := io.ReadAll(in)
			fmt.Fprintf(&b, "%q\n", rest)
		}
		if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err := io.ReadAll(res.Body)
		fmt.Fprintf(&b, "%d bytes, sum %x, %v, trailer %s\n", len(body), crc32.ChecksumIEEE(body), err != nil,
			sorted(res.Trailer))
		return b.String()
	}
}

// fields are those of a message that a proxy must not change.
func (p played) fields(e exchange, h http.Header, proxied bool) string {
	h = h.Clone()
	for _, name := range []string{"Via", "Connection", "Transfer-Encoding"} {
		h.Del(name)
	}
	if !strings.Contains(e.steps, "Date: ") {
		h.Del("Date")
	}
	for name := range strings.SplitSeq(e.hop, ", ") {
		if proxied && name != "" && h[name] != nil {
			return name + " passed\n"
		}
		h.Del(name)
	}
	return sorted(h)
}

func sorted(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s: %q\n", name, h[name])
	}
	return b.String()
}
