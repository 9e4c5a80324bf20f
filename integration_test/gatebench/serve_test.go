package gatebench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// service is a process of "robots serve" whose sites are all answered by this one.
type service struct {
	addr string
	bin  string
	to   string // the flag that leads to the sites
}

// serve builds the command, and runs it as a service.
func serve(b *testing.B) *service {
	b.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=86400")
		io.WriteString(w, robots)
	}))
	b.Cleanup(site.Close)
	s := &service{bin: filepath.Join(b.TempDir(), "robots"), to: "--connect-to=::" + site.Listener.Addr().String()}
	build(b, s.bin, "github.com/robotsgate/robotsgate/cmd/robots")
	s.addr = start(b, s.bin, "serve", "--listen=127.0.0.1:0", "--cache=none", "--private",
		"--agent=ExampleBot", s.to)
	return s
}

// start runs a program that says where it listens, and ends it with the benchmark.
func start(b *testing.B, bin string, args ...string) (addr string) {
	b.Helper()
	_, addr, _ = strings.Cut(proc.FirstLine(b, exec.Command(bin, args...)), "http://")
	return addr
}

// plain is what a net/http server costs that writes fixed bytes, with the time limits of the
// service: without them it could not be left running.
const plain = `package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	body, _ := os.ReadFile(os.Args[1])
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Printf("http://%s\n", l.Addr())
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 3 * time.Minute, IdleTimeout: 2 * time.Minute}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	})
	s.Serve(l)
}
`

// keep is a connection that is kept alive. It costs a load generator the least that it can.
type keep struct {
	net.Conn
	in      *bufio.Reader
	request []byte
	body    bytes.Buffer
}

func dial(b testing.TB, addr, path string, fields ...string) *keep {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	request := "GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n"
	request = strings.Replace(request, "\r\n\r\n\r\n", "\r\n\r\n", 1)
	return &keep{Conn: c, in: bufio.NewReader(c), request: []byte(request)}
}

// ask sends the request, and reads an answer that has a length, or no body.
func (k *keep) ask() (status int, err error) {
	if _, err := k.Write(k.request); err != nil {
		return 0, err
	}
	length := 0
	for first := true; ; first = false {
		line, err := k.in.ReadSlice('\n')
		switch value, is := bytes.CutPrefix(line, []byte("Content-Length: ")); {
		case err != nil:
			return 0, err
		case first:
			status, err = strconv.Atoi(string(line[9:12]))
			if err != nil {
				return 0, err
			}
		case is:
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		case len(line) == 2:
			k.body.Reset()
			_, err := io.CopyN(&k.body, k.in, int64(length))
			return status, err
		}
	}
}

// load has connections send n requests in all.
func load(b *testing.B, n int, all []*keep, status int) func() time.Duration {
	return sides.Took(func() {
		var next atomic.Int64
		var group sync.WaitGroup
		for _, k := range all {
			group.Go(func() {
				for next.Add(1) <= int64(n) {
					if got, err := k.ask(); err != nil || got != status {
						b.Errorf("status %d, want %d: %v", got, status, err)
						return
					}
				}
			})
		}
		group.Wait()
	})
}

func crowd(b *testing.B, n int, addr, path string, fields ...string) (all []*keep) {
	for range n {
		all = append(all, dial(b, addr, path, fields...))
	}
	return all
}

// BenchmarkServeDecide is a decision about an origin that is known, over 16 connections that are
// kept alive, beside net/http that writes the same bytes. The load generator is included.
//
//	go test -run XXX -bench Serve -benchtime 9x -count 3
func BenchmarkServeDecide(b *testing.B) {
	const n = 20_000
	s := serve(b)
	path := "/v1/decide?url=http://www.site.example/articles/page.html"
	one := dial(b, s.addr, path)
	status, err := one.ask()
	if err != nil || status != 200 || !bytes.Contains(one.body.Bytes(), []byte(`"allowed":true`)) {
		b.Fatal(status, err, one.body.String())
	}
	dir := b.TempDir()
	src, bin, body := filepath.Join(dir, "plain.go"), filepath.Join(dir, "plain"), filepath.Join(dir, "body")
	if err := os.WriteFile(src, []byte(plain), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(body, one.body.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	build(b, bin, src)
	addr := start(b, bin, body)
	sides.Compare(b, n, load(b, n, crowd(b, 16, s.addr, path), 200), load(b, n, crowd(b, 16, addr, path), 200))
}

// list writes a list of URLs of 2,000 origins.
func list(b *testing.B, lines int) string {
	file := filepath.Join(b.TempDir(), "urls")
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "http://www.site-%d.example/articles/%d/page.html\n", i%2000, i)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// stream posts a list, and returns how many lines came back.
func (s *service) stream(b *testing.B, file string) (lines int) {
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/decide HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-ndjson\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n", s.addr, info.Size())
	go io.Copy(c, f)
	buffer, kept := make([]byte, 1<<20), 0
	for {
		n, err := c.Read(buffer[kept:])
		n += kept
		lines += bytes.Count(buffer[:n], []byte("}\n"))
		if err != nil {
			return lines
		}
		kept = copy(buffer, buffer[max(n-1, 0):n]) // a line may end in the next piece
	}
}

// BenchmarkServeStream is a list of URLs of 2,000 origins, all known, posted to the service, beside
// "robots filter --json" on the same list with a file of the same origins.
func BenchmarkServeStream(b *testing.B) {
	const n = 400_000
	s := serve(b)
	file, store := list(b, n), filepath.Join(b.TempDir(), "store")
	if got := s.stream(b, list(b, 2000)); got != 2000 {
		b.Fatalf("%d answers, want 2000", got)
	}
	filter := func() {
		in, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		cmd := exec.Command(s.bin, "filter", "--json", "--agent=ExampleBot", "--cache="+store, s.to)
		cmd.Stdin = in
		if out, err := cmd.StderrPipe(); err == nil {
			go io.Copy(io.Discard, out)
		}
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
	filter() // fills the store
	sides.Compare(b, n, sides.Took(func() {
		if got := s.stream(b, file); got != n {
			b.Errorf("%d answers, want %d", got, n)
		}
	}), sides.Took(filter))
}

// gateways is an nginx with two ways to ask before it passes a request on to an origin.
const gateways = `worker_processes 1;
pid nginx.pid;
daemon off;
error_log stderr error;
events { worker_connections 512; }
http {
  access_log off;
  keepalive_requests 100000000;
  upstream origin { server 127.0.0.1:$PORT3; keepalive 64; keepalive_requests 100000000; }
  upstream service { server $SERVICE; keepalive 64; keepalive_requests 100000000; }
  upstream static { server 127.0.0.1:$PORT4; keepalive 64; keepalive_requests 100000000; }
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  server {
    listen 127.0.0.1:$PORT1;
    location / { auth_request /robots; proxy_pass http://origin; }
    location = /robots {
      internal;
      proxy_pass http://service/authz;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Connection "";
      proxy_set_header Host localhost;
      proxy_set_header X-Original-URL http://www.site.example$request_uri;
      proxy_set_header X-Forwarded-Host "";
      proxy_set_header X-Forwarded-Uri "";
    }
  }
  server {
    listen 127.0.0.1:$PORT2;
    location / { auth_request /robots; proxy_pass http://origin; }
    location = /robots {
      internal;
      proxy_pass http://static/authz;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Connection "";
    }
  }
  server { listen 127.0.0.1:$PORT3; location / { return 200 "page"; } }
  server { listen 127.0.0.1:$PORT4; location / { return 204; } }
}
`

// gateway starts nginx between the service and the origin, and returns its addresses.
func gateway(b *testing.B, nginx, service string) (ports map[string]string) {
	ports = map[string]string{"$SERVICE": service}
	places := regexp.MustCompile(`127\.0\.0\.1:(\$PORT\d)|\$SERVICE`)
	config := places.ReplaceAllStringFunc(gateways, func(name string) string {
		if ports[name] == "" {
			ports[name] = "127.0.0.1:" + proc.FreePort(b)
		}
		return ports[name]
	})
	dir := b.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	proc.Serve(b, exec.Command(nginx, "-p", dir, "-c", file), ports["127.0.0.1:$PORT1"])
	return ports
}

// BenchmarkServeAuthz is a request through nginx, whose auth_request asks the service, beside the
// same nginx that asks another nginx on loopback, which always says 204.
func BenchmarkServeAuthz(b *testing.B) {
	const n = 10_000
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		b.Skip(err)
	}
	ports := gateway(b, nginx, serve(b).addr)
	side := func(port string) func() time.Duration {
		addr := ports["127.0.0.1:"+port]
		return load(b, n, crowd(b, 16, addr, "/articles/page.html", "User-Agent: ExampleBot/1.0"), 200)
	}
	sides.Compare(b, n, side("$PORT1"), side("$PORT2"))
}
