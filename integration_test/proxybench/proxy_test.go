// Package proxybench measures "robots proxy" beside a proxy that gates nothing.
package proxybench

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

const (
	atOnce   = 16
	perRound = 3000
)

// role tells a child that it is the other proxy.
const role = "PROXYBENCH"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	serveBare()
}

// BenchmarkProxy is a page of 16 KiB through "robots proxy", beside the parts of net/http that it is made
// of, which gate nothing. Each proxy is a process of its own; the site and the clients, on connections that
// are kept, are in this one. All share the machine.
//
//	go test -run XXX -bench Proxy -benchtime 21x -count 3
func BenchmarkProxy(b *testing.B) {
	dir := b.TempDir()
	bin, ca, key := filepath.Join(dir, "robots"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	must(b, exec.Command("go", "build", "-o", bin, "github.com/robotsgate/robotsgate/cmd/robots"))
	must(b, exec.Command(bin, "proxy", "ca", ca, key))
	page := bytes.Repeat([]byte("16 bytes of text"), 1<<10)
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /private/\nDisallow: /*?print=\nAllow: /private/open\n")
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Length", fmt.Sprint(len(page)))
		w.Write(page)
	})
	plain, secure := httptest.NewServer(pages), httptest.NewTLSServer(pages)
	defer plain.Close()
	defer secure.Close()
	site := filepath.Join(dir, "site.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(site, text, 0o600); err != nil {
		b.Fatal(err)
	}
	env := append(os.Environ(), "SSL_CERT_FILE="+site, "CA="+ca, "KEY="+key, "XDG_CACHE_HOME="+dir,
		"PLAIN="+plain.Listener.Addr().String(), "SECURE="+secure.Listener.Addr().String())
	robots := exec.Command(bin, "proxy", "--listen=127.0.0.1:0", "--private", "--cache=none", "--agent=ExampleBot",
		"--ca="+ca, "--ca-key="+key, "--connect-to=:80:"+plain.Listener.Addr().String(),
		"--connect-to=:443:"+secure.Listener.Addr().String())
	ours := start(b, robots, env)
	theirs := start(b, exec.Command(os.Args[0]), append(env, role+"=bare"))
	for _, scheme := range []string{"http", "https"} {
		b.Run(scheme, func(b *testing.B) {
			target := scheme + "://s.example.com/articles/page.html"
			sides.Compare(b, perRound, load(b, ours, ca, target, len(page)), load(b, theirs, ca, target, len(page)))
		})
	}
}

func must(b *testing.B, cmd *exec.Cmd) {
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// start runs a proxy, which says where it listens, until the benchmark ends.
func start(b *testing.B, cmd *exec.Cmd, env []string) *url.URL {
	cmd.Env, cmd.Stderr = env, os.Stderr
	line := proc.FirstLine(b, cmd)
	at, err := url.Parse(line[strings.Index(line, "http://"):])
	if err != nil {
		b.Fatal(err)
	}
	return at
}

// load returns a side that fetches the page through a proxy.
func load(b *testing.B, proxy *url.URL, ca, target string, size int) func() time.Duration {
	data, err := os.ReadFile(ca)
	if err != nil {
		b.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data)
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: pool},
		DisableCompression:  true,
		MaxIdleConnsPerHost: atOnce, MaxIdleConns: atOnce}
	b.Cleanup(tr.CloseIdleConnections)
	get := func() {
		req, err := http.NewRequest(http.MethodGet, target, nil)
		if err != nil {
			b.Error(err)
			return
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			b.Error(err)
			return
		}
		n, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil || n != int64(size) || res.StatusCode != http.StatusOK {
			b.Errorf("%s: %d bytes, %v", res.Status, n, err)
		}
	}
	side := func(n int64) {
		var group sync.WaitGroup
		var next atomic.Int64
		for range atOnce {
			group.Go(func() {
				for next.Add(1) <= n {
					get()
				}
			})
		}
		group.Wait()
	}
	side(10 * atOnce) // connections, handshakes and robots.txt count on no side
	return sides.Took(func() { side(perRound) })
}

// transport is the transport of a proxy that gates nothing, with the limits that "robots proxy" has.
func transport() *http.Transport {
	dialer := net.Dialer{}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := os.Getenv("PLAIN")
			if strings.HasSuffix(address, ":443") {
				to = os.Getenv("SECURE")
			}
			return dialer.DialContext(ctx, network, to)
		},
		DisableCompression: true, MaxIdleConns: 1024, MaxIdleConnsPerHost: 64, TLSClientConfig: &tls.Config{},
	}
}
