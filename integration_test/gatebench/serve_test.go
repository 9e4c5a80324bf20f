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
	pid  int
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
	build(b, ".", s.bin, "github.com/robotsgate/robotsgate/cmd/robots")
	s.addr, s.pid = start(b, s.bin, "serve", "--listen=127.0.0.1:0", "--cache=none", "--private",
		"--agent=ExampleBot", s.to)
	return s
}

// start runs a program that says where it listens, and ends it with the benchmark.
func start(b *testing.B, bin string, args ...string) (addr string, pid int) {
	b.Helper()
	cmd := exec.Command(bin, args...)
	_, addr, _ = strings.Cut(proc.FirstLine(b, cmd), "http://")
	return addr, cmd.Process.Pid
}

// plain is what a net/http server costs that writes fixed bytes, with the time limits of the
// service: without them it could not be left running. With a robots.txt it does by hand what the
// service does: it reads the question, decides, and writes an answer of the same length as JSON. It
// bounds nothing, and knows one site.
const plain = `package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

type answer struct {
	URL     string      ` + "`json:\"url\"`" + `
	Agent   string      ` + "`json:\"agent\"`" + `
	Allowed bool        ` + "`json:\"allowed\"`" + `
	Rule    policy.Rule ` + "`json:\"rule\"`" + `
	Until   time.Time   ` + "`json:\"until\"`" + `
	Rest    string      ` + "`json:\"rest\"`" + `
}

func main() {
	body, _ := os.ReadFile(os.Args[1])
	policies := map[string]*policy.Policy{}
	if len(os.Args) > 2 {
		policies["www.site.example"] = policy.Parse([]byte(os.Args[2]))
	}
	rest := strings.Repeat("x", max(len(body)-200, 0))
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Printf("http://%s\n", l.Addr())
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 3 * time.Minute, IdleTimeout: 2 * time.Minute}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Type", "application/json")
		if len(policies) == 0 {
			w.Write(body)
			return
		}
		q, err := url.ParseQuery(r.URL.RawQuery)
		u, err2 := url.Parse(q.Get("url"))
		if err != nil || err2 != nil {
			http.Error(w, "no question", 400)
			return
		}
		d := policies[u.Host].Decide("ExampleBot", u.RequestURI())
		text, _ := json.Marshal(answer{u.String(), "ExampleBot", d.Allowed, d.Rule, time.Now().Add(time.Hour), rest})
		w.Write(text)
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
	build(b, ".", bin, src)
	addr, _ := start(b, bin, body)
	hand, _ := start(b, bin, body, robots)
	bare := load(b, n, crowd(b, 16, addr, path), 200)
	b.Run("service", func(b *testing.B) { sides.Compare(b, n, load(b, n, crowd(b, 16, s.addr, path), 200), bare) })
	b.Run("floor", func(b *testing.B) { sides.Compare(b, n, load(b, n, crowd(b, 16, hand, path), 200), bare) })
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

// gateways is an nginx with three ways to ask before it passes a request on to an origin.
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
  server {
    listen 127.0.0.1:$PORT5;
    location / { auth_request /robots; proxy_pass http://origin; }
    location = /robots { internal; return 204; }
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
// same nginx that asks a server that always says 204: another nginx on loopback, and then itself.
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
	for name, port := range map[string]string{"a-server": "$PORT2", "itself": "$PORT5"} {
		b.Run(name, func(b *testing.B) { sides.Compare(b, n, side("$PORT1"), side(port)) })
	}
}

// BenchmarkServeMemory reports the memory of the service that has decided about 10,000 origins and
// has 1,000 connections, each of which has asked: now, and at most.
func BenchmarkServeMemory(b *testing.B) {
	s := serve(b)
	file := filepath.Join(b.TempDir(), "urls")
	var text bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&text, "http://www.site-%d.example/articles/page.html\n", i)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got := s.stream(b, file); got != 10_000 {
			b.Fatalf("%d answers, want 10,000", got)
		}
		load(b, 20_000, crowd(b, 1000, s.addr, "/v1/decide?url=http://www.site-1.example/articles/page.html"), 200)()
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		b.Skip(err)
	}
	for field, unit := range map[string]string{"VmRSS": "MiB-now", "VmHWM": "MiB-most"} {
		_, rest, _ := strings.Cut(string(status), field+":")
		kib, _ := strconv.Atoi(strings.Fields(rest)[0])
		b.ReportMetric(float64(kib)/1024, unit)
	}
}
