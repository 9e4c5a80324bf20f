package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// fails runs "robots" in this process, and returns how it ends and what it complains of.
func fails(t *testing.T, args ...string) (status int, said string) {
	t.Helper()
	var errs strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status = run(ctx, args, shell.Streams{Out: io.Discard, Err: &errs})
	return status, errs.String()
}

func TestServeListensOnLoopbackUnlessToldOtherwise(t *testing.T) {
	dir := t.TempDir()
	token, short := written(t, "0123456789abcdef\n"), written(t, "0123456789abcde\n")
	for _, args := range [][]string{
		{"--listen=0.0.0.0:0"}, {"--listen=:0"}, {"--listen=127.0.0.1:0", "--token-file=" + short},
		{"--trusted=10.0.0.1"}, {"--log=xml"}, {"--drain=-1s"},
	} {
		if status, said := fails(t, append([]string{"serve", "--cache=none"}, args...)...); status != shell.ExitUsage {
			t.Errorf("%q: status %d: %s, want %d", args, status, said, shell.ExitUsage)
		}
	}
	if status, said := fails(t, "serve", "--cache=none", "--token-file="+filepath.Join(dir, "none")); status != shell.ExitUnknown {
		t.Errorf("no token file: status %d: %s, want %d", status, said, shell.ExitUnknown)
	}
	for _, how := range []string{"--open", "--token-file=" + token} {
		v := startServe(t, serve.UsualLimits(), "--listen=0.0.0.0:0", how)
		v.url = strings.Replace(v.url, "[::]", "127.0.0.1", 1)
		want := map[string]int{"": 401, "Bearer 0123456789abcdef": 200, "bearer 0123456789abcdef": 200, "Bearer  0123456789abcdef": 200,
			"Bearer 0123456789abcdeg": 401, "Basic 0123456789abcdef": 401, "Bearer": 401}
		for field, status := range want {
			if how == "--open" {
				status = 200
			}
			lint, _ := v.do("POST", "/v1/lint", "", "Content-Type: text/plain", "Authorization: "+field)
			probe, _ := v.do("GET", "/readyz", "", "Authorization: "+field)
			if lint.StatusCode != status || probe.StatusCode != 200 {
				t.Errorf("%s, %q: status %d, want %d; of /readyz %d", how, field, lint.StatusCode, status, probe.StatusCode)
			}
		}
		res, _ := v.do("GET", "/authz", "", "X-Original-URL: http://a.example/")
		if want := map[bool]int{true: 403, false: 401}[how == "--open"]; res.StatusCode != want && res.StatusCode != 200 {
			t.Errorf("%s: /authz: status %d, want %d", how, res.StatusCode, want)
		}
		if field := res.Header.Get("WWW-Authenticate"); res.StatusCode == 401 && field != "Bearer" {
			t.Errorf("%s: /authz: WWW-Authenticate is %q, want Bearer", how, field)
		}
	}
}

// A web page that gives its own name our address must learn nothing.
func TestServeKnowsItsHost(t *testing.T) {
	v := startServe(t, serve.UsualLimits(), "--host=robots.internal")
	_, port, _ := net.SplitHostPort(v.addr)
	for host, status := range map[string]int{
		"127.0.0.1": 404, "127.0.0.1:" + port: 404, "localhost:1": 404, "LOCALHOST": 404, "[::1]:80": 404, "[::1]": 404,
		"robots.internal": 404, "Robots.Internal:80": 404, "evil.example": 421, "localhost.evil.example": 421,
		"127.0.0.1.evil.example": 421, "10.0.0.1": 421, "[::ffff:10.0.0.1]": 421, "robots.internal.evil.example": 421,
	} {
		for _, path := range []string{"/nothing", "/authz"} {
			want := status
			if want == 404 && path == "/authz" {
				want = 400
			}
			if res, _ := v.do("GET", path, "", "Host: "+host); res.StatusCode != want {
				t.Errorf("%s, Host: %s: status %d, want %d", path, host, res.StatusCode, want)
			}
		}
	}
}

func TestServeAnswersNoPageOfAnotherOrigin(t *testing.T) {
	v := startServe(t, serve.UsualLimits())
	for field, status := range map[string]int{
		"Origin: http://evil.example": 403, "Sec-Fetch-Site: cross-site": 403, "Sec-Fetch-Site: same-site": 403,
		"Sec-Fetch-Site: same-origin": 200, "Origin: " + v.url: 200, "X: y": 200,
	} {
		for path, media := range map[string]string{"/v1/lint": "text/plain", "/v1/decide": "text/plain", "/": "application/x-www-form-urlencoded"} {
			if res, _ := v.do("POST", path, "source=text", "Content-Type: "+media, field); res.StatusCode != status {
				t.Errorf("%s, %s: status %d, want %d", path, field, res.StatusCode, status)
			}
		}
	}
}

func second(_ *http.Response, body string) string { return body }

func (v *serving) dial(text string) net.Conn { return dial(v.t, v.addr, text) }

// dial connects, and sends text.
func dial(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, text)
	return c
}

// A client that stalls loses its connection, wherever it does, and gives its place to another.
func TestServeWaitsForNoStalledClient(t *testing.T) {
	tier.Gate(t)
	l := serve.UsualLimits()
	l.Header, l.Body, l.Answer, l.Stream, l.Streams, l.Questions =
		200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond, 1, 1
	v := startServe(t, l, "--private", "--connect-to=::127.0.0.1:1", "--timeout=1s")
	const head = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
	for name, text := range map[string]string{
		"half a header":     "GET / HTTP/1.1\r\nHost: loc",
		"half a body":       "POST /v1/lint" + head + "Content-Length: 10\r\n\r\nUser",
		"an unread body":    "GET /healthz" + head + "Content-Length: 10\r\n\r\nUser",
		"a silent stream":   "POST /v1/decide" + head + "Content-Length: 100\r\n\r\nfoo\n",
		"a body of gateway": "POST /authz" + head + "Content-Length: 100\r\n\r\nfoo\n",
	} {
		c := v.dial(text)
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		if res, got := v.do("POST", "/v1/decide", "foo\n", "Content-Type: text/plain"); res.StatusCode != 200 {
			t.Errorf("%s: the next stream: %s, want 200", name, got)
		}
	}
	// One that asks and never reads.
	c := v.dial("POST /v1/decide" + head + "Transfer-Encoding: chunked\r\n\r\n")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 4000, strings.Repeat("f o\n", 1000))
	n, err := 0, error(nil)
	for ; err == nil && n < 100000; n++ {
		_, err = io.WriteString(c, chunk)
	}
	if ne, ok := err.(net.Error); err == nil || ok && ne.Timeout() {
		t.Errorf("after %d chunks: %v, want a connection that is closed", n, err)
	}
	// net/http closes the connection within the Write that fails. The stream holds its place, as
	// it holds its memory, until that returns; so this client alone may be told to ask again.
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		res, got := v.do("POST", "/v1/decide", "foo\n", "Content-Type: text/plain")
		if res.StatusCode == 200 {
			break
		}
		if res.StatusCode != 429 || time.Now().After(deadline) {
			t.Fatalf("the next stream: got %s, want 429 until there is a place", got)
		}
	}
}

// What can be said before a body has come is said then: a client may wait for it before it sends more.
func TestServeAnswersBeforeTheBodyHasCome(t *testing.T) {
	v := startServe(t, serve.UsualLimits(), "--private", "--connect-to=::127.0.0.1:1", "--timeout=1s")
	const chunked = "Transfer-Encoding: chunked\r\n\r\n4\r\nfoo\n\r\n"
	for _, row := range []struct {
		line, fields string
		want         int
	}{
		{"POST /v1/decide", "Host: localhost\r\nContent-Type: image/png\r\n" + chunked, 415},
		{"POST /v1/decide?x=1", "Host: localhost\r\nContent-Type: text/plain\r\n" + chunked, 400},
		{"POST /v1/nope", "Host: localhost\r\n" + chunked, 404},
		{"PUT /v1/decide", "Host: localhost\r\n" + chunked, 405},
		{"POST /v1/decide", "Host: other.example\r\n" + chunked, 421},
		{"POST /v1/decide", "Host: localhost\r\nOrigin: http://other.example\r\n" + chunked, 403},
		{"POST /v1/match", "Host: localhost\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n{", 415},
		{"POST /v1/lint", "Host: localhost\r\nContent-Type: text/plain\r\nContent-Length: 5000000\r\n\r\nUser", 413},
		{"POST /authz", "Host: localhost\r\nX-Original-URL: http://a.example/robots.txt\r\nContent-Length: 9\r\n\r\nfoo", 200},
		{"POST /authz", "Host: localhost\r\nX-Original-URL: http://a.example/\r\nContent-Length: 9\r\n\r\nfoo", 403},
	} {
		c := v.dial(row.line + " HTTP/1.1\r\n" + row.fields)
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != row.want {
			t.Errorf("%s: %v, %v; want %d", row.line, res, err, row.want)
		}
	}
}

func TestServeBoundsTheQuestionsUnderWay(t *testing.T) {
	silent, arrived := make(chan struct{}), make(chan struct{}, 10)
	to := siteServer(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-silent })
	l := serve.UsualLimits()
	l.Questions, l.Streams = 2, 1
	v := startServe(t, l, "--private", to)
	c := v.dial("GET /v1/decide?url=http://a.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-arrived
	s := v.dial("POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" +
		"Content-Length: 20\r\n\r\nhttp://b.example/\n")
	<-arrived
	for _, path := range []string{"/v1/decide?url=c.example", "/v1/robots?origin=c.example", "/authz"} {
		if res, got := v.do("GET", path, ""); res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: got %s %s, want 429 and Retry-After: 1", path, res.Status, got)
		}
	}
	if res, _ := v.do("GET", "/readyz", ""); res.StatusCode != 200 {
		t.Errorf("/readyz: %s, want 200", res.Status)
	}
	close(silent)
	if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the first: got %v, %v, want 200", res, err)
	}
	if res, got := v.do("POST", "/v1/decide", "foo\n", "Content-Type: text/plain"); res.StatusCode != 429 {
		t.Errorf("the second stream: %s %s, want 429", res.Status, got)
	}
	s.Close()
}

// A form that is slow to come takes no place of the questions that need no body.
func TestServeAnswersBesideASlowForm(t *testing.T) {
	l := serve.UsualLimits()
	l.Questions = 1
	v := startServe(t, l, "--private", siteServer(t, schemaSite))
	c := v.dial("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n" +
		"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n")
	if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 100"))); err != nil { // it waits for the body
		t.Fatal(err)
	}
	if res, got := v.do("GET", "/v1/decide?url=http://rules.example/", ""); res.StatusCode != 200 {
		t.Errorf("got %s %s, want 200", res.Status, got)
	}
}

// Slow clients, wherever they stop, leave the others at their pace.
func TestServeAnswersBesideSlowConnections(t *testing.T) {
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, schemaSite))
	ask := func() time.Duration {
		begin := time.Now()
		for range 500 {
			res, got := v.do("GET", "/v1/decide?url=http://rules.example/", "")
			if res.StatusCode != 200 {
				t.Fatalf("got %s %s, want 200", res.Status, got)
			}
		}
		return time.Since(begin)
	}
	ask()
	alone := ask()
	const head = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 9999\r\n\r\nfoo bar"
	var slow []net.Conn
	for i := range 1000 {
		slow = append(slow, v.dial([]string{
			"GET /v1/decide?url=http", "POST /v1/lint" + head,
			"POST /v1/match" + strings.Replace(head, "text/plain", mediaJSON, 1), "POST /v1/decide" + head,
		}[i%4]))
	}
	var trickles sync.WaitGroup
	done := make(chan struct{})
	trickles.Go(func() {
		for {
			for _, c := range slow {
				io.WriteString(c, "x")
			}
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond): // sooner, the bytes would take a processor for themselves
			}
		}
	})
	beside := min(ask(), ask(), ask()) // a busy machine has bad moments
	close(done)
	trickles.Wait()
	t.Logf("500 questions: alone %v, beside 1,000 slow connections %v", alone, beside)
	if beside > 5*alone+time.Second {
		t.Errorf("500 questions: alone %v, beside 1,000 slow connections %v", alone, beside)
	}
}

// At the end what is under way is answered, and nothing new is taken.
func TestServeDrains(t *testing.T) {
	silent, arrived := make(chan struct{}), make(chan struct{}, 10)
	to := siteServer(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-silent })
	v := startServe(t, serve.UsualLimits(), "--private", to)
	const head = " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
	c := bufio.NewReader(v.dial("GET /v1/decide?url=http://a.example/" + head + "\r\n"))
	<-arrived
	s := bufio.NewReader(v.dial("POST /v1/decide" + head + "Content-Length: 99\r\n\r\nfoo\nhttp://b.example/\n"))
	<-arrived
	stream, err := http.ReadResponse(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	v.stop()
	for {
		again, err := net.Dial("tcp", v.addr)
		if err != nil {
			break // it listens no more
		}
		again.Close()
	}
	close(silent)
	if res, err := http.ReadResponse(c, nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the question under way: got %v, %v, want 200", res, err)
	}
	data, err := io.ReadAll(stream.Body)
	if n := strings.Count(string(data), "\n"); n != 2 || err == nil {
		t.Errorf("the stream: %d answers, %v; want 2 and that it broke off", n, err)
	}
	if status := <-v.end; status != shell.ExitOK {
		t.Errorf("exit status %d: %s, want %d", status, v.log, shell.ExitOK)
	} else {
		v.end <- status
	}
}

// process starts "robots serve" as a process of its own: testscript takes the name for it.
func process(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Args = append([]string{"robots", "serve", "--listen=127.0.0.1:0"}, args...)
	return cmd, strings.TrimPrefix(proc.FirstLine(t, cmd), "robots serve: ")
}

func get(t *testing.T, url string) string {
	t.Helper()
	return second(talk(t, http.DefaultTransport, "GET", url, ""))
}

// What was stored is there after a SIGTERM, and after a kill that nothing can prepare for.
func TestServeStartsWarm(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	to := siteServer(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	dir := filepath.Join(t.TempDir(), "cache")
	for _, c := range []struct {
		signal os.Signal
		most   int64
	}{{syscall.SIGTERM, 1}, {syscall.SIGKILL, 1}, {syscall.SIGKILL, 1}} {
		cmd, at := process(t, "--cache="+dir, "--private", to)
		if got := get(t, at+"/v1/decide?url=http://a.example/"); !strings.Contains(got, `"allowed":true`) {
			t.Errorf("got %s, want it allowed", got)
		}
		cmd.Process.Signal(c.signal)
		if err := cmd.Wait(); (err == nil) != (c.signal == syscall.SIGTERM) {
			t.Errorf("%v: got %v, want an error but of SIGTERM", c.signal, err)
		}
		if n := asked.Load(); n > c.most {
			t.Errorf("before %v: the site was asked %d times, want %d", c.signal, n, c.most)
		}
	}
}
