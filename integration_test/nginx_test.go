package integration_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// nginxSites is what is in nginx.conf within http. %[1]s and %[2]s are the ports for http and https.
const nginxSites = `
	server_tokens off; absolute_redirect off;
	access_log off;
	default_type text/plain;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	root files;
	server { listen 127.0.0.1:%[1]s; server_name plain.test; add_header Cache-Control max-age=60; }
	server { listen 127.0.0.1:%[1]s; server_name gzip.test; gzip on; gzip_min_length 0; gzip_types text/plain; }
	server { listen 127.0.0.1:%[1]s; server_name dated.test; etag off; }
	server { listen 127.0.0.1:%[1]s; server_name endless.test; gzip on; gzip_min_length 0; gzip_types text/plain; chunked_transfer_encoding off; }
	server { listen 127.0.0.1:%[1]s; server_name moved.test; return 301 http://plain.test/robots.txt; }
	server { listen 127.0.0.1:%[1]s; server_name secured.example.com; return 308 https://$host$request_uri; }
	server { listen 127.0.0.1:%[1]s; server_name looping.test; return 302 $request_uri; }
	server { listen 127.0.0.1:%[1]s; server_name maze.test; return 302 $request_uri?; }
	server { listen 127.0.0.1:%[1]s; server_name missing.test; root nothing; }
	server { listen 127.0.0.1:%[1]s; server_name secret.test; location / { auth_basic x; auth_basic_user_file users; } }
	server { listen 127.0.0.1:%[1]s; server_name closed.test; deny all; }
	server { listen 127.0.0.1:%[1]s; server_name busy.test; location / { return 429; } add_header Retry-After 120 always; }
	server { listen 127.0.0.1:%[1]s; server_name down.test; location / { return 503; } add_header Retry-After 3600 always; }
	server { listen 127.0.0.1:%[1]s; server_name orphan.test; location / { proxy_pass http://127.0.0.1:1; } }
	server { listen 127.0.0.1:%[1]s; server_name mute.test; return 444; }
	server { listen 127.0.0.1:%[1]s; server_name large.test; location = /robots.txt { alias files/large.txt; } }
	server { listen 127.0.0.1:%[1]s; server_name largezip.test; gzip on; gzip_types text/plain; location = /robots.txt { alias files/large.txt; } }
	server { listen 127.0.0.1:%[2]s ssl http2; server_name secured.example.com h2.example.com; ssl_certificate cert.pem; ssl_certificate_key key.pem; }
`

// startNginx runs nginx with these sites and returns a transport to it by name.
func startNginx(t *testing.T) *http.Transport {
	tier.Gate(t)
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not in the PATH: install it (nginx-light does) to run this test")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("files/robots.txt", origins.File)
	write("files/large.txt", origins.File+strings.Repeat("# more of it\n", 100_000))
	write("users", "")
	roots := certificate(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	ports := [2]string{proc.FreePort(t), proc.FreePort(t)}
	write("nginx.conf", "daemon off; master_process off; error_log stderr; pid nginx.pid;\nevents {}\nhttp {"+fmt.Sprintf(nginxSites, ports[0], ports[1])+"}\n")

	proc.Serve(t, exec.Command(program, "-p", dir, "-c", "nginx.conf"), "127.0.0.1:"+ports[1])
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			port := ports[0]
			if strings.HasSuffix(addr, ":443") {
				port = ports[1]
			}
			return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		},
	}
}

func TestNginx(t *testing.T) {
	tier.Gate(t)
	base := startNginx(t)
	for _, c := range []struct {
		url       string
		verdict   origins.Verdict
		status    int
		redirects int
		retry     time.Duration
		truncated bool
		again     origins.Verdict // with the first Result to validate; "" if that is not to be had
	}{
		{"http://plain.test", origins.Rules, 200, 0, 0, false, origins.Rules},
		{"http://gzip.test", origins.Rules, 200, 0, 0, false, origins.Rules},
		{"http://dated.test", origins.Rules, 200, 0, 0, false, origins.Rules},
		{"http://endless.test", origins.Rules, 200, 0, 0, false, origins.Rules},
		{"http://moved.test", origins.Rules, 200, 1, 0, false, origins.Rules},
		{"http://secured.example.com", origins.Rules, 200, 1, 0, false, origins.Rules},
		{"https://secured.example.com", origins.Rules, 200, 0, 0, false, origins.Rules},
		{"https://h2.example.com", origins.Rules, 200, 0, 0, false, origins.Rules},
		{"https://plain.test", origins.Disallow, 0, 0, 0, false, ""}, // a certificate for others
		{"http://looping.test", origins.Allow, 302, 0, 0, false, ""},
		{"http://maze.test", origins.Allow, 302, 5, 0, false, ""},
		{"http://missing.test", origins.Allow, 404, 0, 0, false, ""},
		{"http://secret.test", origins.Allow, 401, 0, 0, false, ""},
		{"http://closed.test", origins.Allow, 403, 0, 0, false, ""},
		{"http://busy.test", origins.Allow, 429, 0, 2 * time.Minute, false, ""},
		{"http://down.test", origins.Disallow, 503, 0, time.Hour, false, ""},
		{"http://orphan.test", origins.Disallow, 502, 0, 0, false, ""},
		{"http://mute.test", origins.Disallow, 0, 0, 0, false, ""},
		{"http://large.test", origins.Rules, 200, 0, 0, true, origins.Rules},
		{"http://largezip.test", origins.Rules, 200, 0, 0, true, origins.Rules},
	} {
		t.Run(c.url, func(t *testing.T) {
			watch := &watched{Transport: base}
			f := fetch.Fetcher{Transport: base, UserAgent: "examplebot/1.0"}
			o := originOf(t, c.url)
			r, err := f.Fetch(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := verdictOf(r.Policy); got != c.verdict || r.StatusCode != c.status || len(r.Redirects) != c.redirects || r.RetryAfter != c.retry || r.Truncated != c.truncated {
				t.Errorf("got %s, status %d, Redirects %q, RetryAfter %v, Truncated %v (%v)", got, r.StatusCode, r.Redirects, r.RetryAfter, r.Truncated, r.Err)
			}
			if c.again == "" {
				return
			}
			// Through a transport that shows what nginx answers: the validators must have
			// been right, or this would be the whole file again.
			f = fetch.Fetcher{Transport: watch, UserAgent: "examplebot/1.0"}
			again, err := f.Fetch(t.Context(), o, r)
			if err != nil {
				t.Fatal(err)
			}
			if got := verdictOf(again.Policy); got != c.again || watch.last != http.StatusNotModified || again.Policy != r.Policy || !again.Time.After(r.Time) {
				t.Errorf("validated: got %s after status %d, %v", got, watch.last, again.Err)
			}
		})
	}
}

// watched notes the status of the last response.
type watched struct {
	*http.Transport
	last int
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := w.Transport.RoundTrip(r)
	if err == nil {
		w.last = res.StatusCode
	}
	return res, err
}

func verdictOf(p *policy.Policy) origins.Verdict {
	public, private := p.Decide("examplebot", "/public").Allowed, p.Decide("examplebot", "/private/x").Allowed
	switch {
	case public && private:
		return origins.Allow
	case public:
		return origins.Rules
	case private:
		return "reversed"
	}
	return origins.Disallow
}
