package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// What a server serves for a target with dot segments is what its rules are about,
// however the target was written: every path served must be one that the gate has decided
// on. Each page of the tree says its own path.
func TestWhatAServerServesIsWhatWasDecidedOn(t *testing.T) {
	tier.Gate(t)
	const robots = "User-agent: *\nDisallow: /private\n"
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // for a server that root starts as another user
		t.Fatal(err)
	}
	writeTree(t, root, robots)
	targets := dotTargets()
	for _, s := range dotServers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			base := s.start(t, root)
			gate := &client.Transport{Base: base}
			deciders := map[string]*client.Transport{} // by the path that all robots.txt files forbid there
			var served, resolved, sent, refused int
			missed := 0
			for _, target := range targets {
				u, err := url.Parse("http://a.test" + target)
				if err != nil || u.RequestURI() != target {
					t.Fatalf("net/http sends another target than %s (%v)", target, err)
				}
				page := pageAt(t, base, u)
				if page == "" {
					continue
				}
				served++

				// The gate over the server itself.
				resp, err := gate.RoundTrip(&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}})
				switch {
				case err == nil:
					sent++
					if got := textOf(t, resp); strings.HasPrefix(got, "/private") && hasDots(target) {
						t.Errorf("sent %s, served %s", target, got)
					}
				case errors.As(err, new(*client.DisallowedError)):
					refused++
				case hasDots(target) && strings.Contains(err.Error(), "dot segment"):
					refused++
				default:
					t.Fatal(err)
				}

				// And any gate that has to keep this page from us, if it was not asked for as it is.
				if !hasDots(target) {
					continue
				}
				resolved++
				decider := deciders[page]
				if decider == nil {
					file := fmt.Sprintf("User-agent: *\nDisallow: %[1]s$\nDisallow: %[1]s?\n", page)
					decider = &client.Transport{Base: answering(file)}
					deciders[page] = decider
				}
				if d, err := decider.Decide(t.Context(), u); err == nil && d.Allowed {
					if missed++; missed <= 10 {
						t.Errorf("%s is served for %s, and was not decided on", page, target)
					}
				}
			}
			t.Logf("%d targets: %d served, %d of them with dot segments; with Disallow: /private %d sent, %d refused; %d missed",
				len(targets), served, resolved, sent, refused, missed)
			if resolved < 100 || sent < 100 || refused < 100 {
				t.Error("too few to tell anything")
			}
		})
	}
}

// treeNames are the directories at each of three levels: those that targets name, and those
// that a server would ask for which resolves less than another.
var treeNames = []string{"a", "private", "a;x", "..;", "..;x", `a\..`, `..\a`, "..%2f", "..."}

func writeTree(t *testing.T, root, robots string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, "robots.txt"), []byte(robots), 0o644); err != nil {
		t.Fatal(err)
	}
	var write func(path string, levels int)
	write = func(path string, levels int) {
		page := (&url.URL{Path: path}).EscapedPath()
		if err := os.WriteFile(filepath.Join(root, path, "index.html"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		if levels == 0 {
			return
		}
		for _, name := range treeNames {
			if err := os.Mkdir(filepath.Join(root, path, name), 0o755); err != nil {
				t.Fatal(err)
			}
			write(path+name+"/", levels-1)
		}
	}
	write("/", 3)
}

// dotTargets are all short ones of these pieces, and a sample of longer ones.
func dotTargets() []string {
	pieces := []string{"/", "//", "%2f", "%2F", "%5c", ".", "..", "%2e", "%2E", ";x", ";", "a", "private", "?", "%252f", "..."}
	names := []string{"a", "a", "private", ".", "..", "..", "%2e", "%2e%2E", ".%2e", "...", "a;x", "..;", "..;x", ".;", "%2e%2e;x", "", "%5c", `a%5c..`, "%252e%252e"}
	separators := []string{"/", "/", "/", "//", "///", "%2f", "%2F", "%2f%2f", "/%2f", "%5c", "%252f", "/?"}
	seen := map[string]bool{}
	var targets []string
	add := func(target string) {
		for _, t := range []string{target, strings.TrimSuffix(target, "/") + "/"} { // a directory's page has a slash at its end
			if !seen[t] {
				seen[t] = true
				targets = append(targets, t)
			}
		}
	}
	for _, t := range []string{"/a/..//private/", "/.%2f/private/", "/a/..%2f%2fprivate/", "/a/%2e%2e%2f/private/", "/x/a%5cb/..%2f../private/", "/a/..;/private/", "/a?x/../../private/?y"} {
		add(t)
	}
	var all func(prefix string, n int)
	all = func(prefix string, n int) {
		add(prefix)
		if n > 0 {
			for _, p := range pieces {
				all(prefix+p, n-1)
			}
		}
	}
	all("/", 3)
	random := rand.New(rand.NewPCG(1, 2))
	n := 6_000
	if *sizes.Full {
		n = 100_000
	}
	for range n {
		target := "/"
		for range 2 + random.IntN(5) {
			target += names[random.IntN(len(names))] + separators[random.IntN(len(separators))]
		}
		add(target)
	}
	return targets
}

// hasDots reports whether any server could find a dot segment in target. Those without
// are compared as they are written. Debian's lighttpd takes what is before the last
// question mark for the path when it resolves it.
func hasDots(target string) bool {
	path := target
	if end := strings.LastIndexByte(target, '?'); end >= 0 {
		path = target[:end]
	}
	path = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/").Replace(path)
	for s := range strings.SplitSeq(path, "/") {
		if i := strings.IndexAny(s, ";?"); i >= 0 {
			s = s[:i]
		}
		if s == "." || s == ".." {
			return true
		}
	}
	return false
}

// pageAt is the page that is served, or "" if none is.
func pageAt(t *testing.T, base http.RoundTripper, u *url.URL) string {
	t.Helper()
	resp, err := base.RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(t.Context()))
	if err != nil {
		t.Fatalf("%s: %v", u.RequestURI(), err)
	}
	if page := textOf(t, resp); resp.StatusCode == http.StatusOK && strings.HasPrefix(page, "/") {
		return page
	}
	return ""
}

func textOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// answering answers everything with its text.
type answering string

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))), Request: req}, nil
}

// dotServers are the servers as they are installed, with what a child process needs.
var dotServers = []struct {
	name  string
	start func(t *testing.T, root string) *http.Transport
}{
	{"net_http", func(t *testing.T, root string) *http.Transport {
		s := httptest.NewServer(http.FileServer(http.Dir(root)))
		t.Cleanup(s.Close)
		return dialling(s.Listener.Addr().String())
	}},
	{"nginx", func(t *testing.T, root string) *http.Transport {
		return startServer(t, "nginx", "nginx-light", func(dir, port string) (string, []string) {
			return fmt.Sprintf(`daemon off; master_process off; error_log stderr; pid nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	server { listen 127.0.0.1:%s; root %s; }
}
`, port, root), []string{"-p", dir, "-c", "conf"}
		})
	}},
	{"apache", func(t *testing.T, root string) *http.Transport { return startApache(t, root, "") }},
	{"apache AllowEncodedSlashes", func(t *testing.T, root string) *http.Transport {
		return startApache(t, root, "AllowEncodedSlashes On")
	}},
	{"apache MergeSlashes off", func(t *testing.T, root string) *http.Transport {
		return startApache(t, root, "AllowEncodedSlashes On\nMergeSlashes Off")
	}},
	{"caddy", func(t *testing.T, root string) *http.Transport {
		return startServer(t, "caddy", "caddy", func(dir, port string) (string, []string) {
			return fmt.Sprintf(`{
	admin off
	auto_https off
}
http://a.test:%s {
	bind 127.0.0.1
	root * %s
	file_server
}
`, port, root), []string{"run", "--config", filepath.Join(dir, "conf"), "--adapter", "caddyfile"}
		})
	}},
	{"lighttpd", func(t *testing.T, root string) *http.Transport { return startLighttpd(t, root, "") }},
	{"lighttpd as Debian has it", func(t *testing.T, root string) *http.Transport {
		return startLighttpd(t, root, `server.http-parseopts = (
	"header-strict" => "enable", "host-strict" => "enable", "host-normalize" => "enable",
	"url-normalize-unreserved" => "enable", "url-normalize-required" => "enable", "url-ctrls-reject" => "enable",
	"url-path-2f-decode" => "enable", "url-path-dotseg-remove" => "enable",
)`)
	}},
}

func startApache(t *testing.T, root, more string) *http.Transport {
	const modules = "/usr/lib/apache2/modules"
	return startServer(t, "apache2", "apache2-bin", func(dir, port string) (string, []string) {
		return fmt.Sprintf(`ServerRoot %[1]s
ServerName a.test
Listen 127.0.0.1:%[2]s
PidFile %[1]s/pid
ErrorLog /dev/stderr
User #65534
Group #65534
LoadModule mpm_event_module %[3]s/mod_mpm_event.so
LoadModule authz_core_module %[3]s/mod_authz_core.so
LoadModule dir_module %[3]s/mod_dir.so
MaxKeepAliveRequests 0
DocumentRoot %[4]s
%[5]s
`, dir, port, modules, root, more), []string{"-X", "-f", filepath.Join(dir, "conf")}
	})
}

func startLighttpd(t *testing.T, root, more string) *http.Transport {
	return startServer(t, "lighttpd", "lighttpd", func(dir, port string) (string, []string) {
		return fmt.Sprintf(`server.document-root = "%s"
server.bind = "127.0.0.1"
server.port = %s
index-file.names = ( "index.html" )
%s
`, root, port, more), []string{"-D", "-f", filepath.Join(dir, "conf")}
	})
}

// startServer starts a program of a Debian package with the configuration that configure
// returns, and its arguments, and returns a transport that connects to nothing else.
func startServer(t *testing.T, program, pkg string, configure func(dir, port string) (string, []string)) *http.Transport {
	t.Helper()
	tier.Gate(t)
	name, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not in the PATH: install it (Debian's %s) to run this test", program, pkg)
	}
	dir, port := t.TempDir(), proc.FreePort(t)
	conf, args := configure(dir, port)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	addr := "127.0.0.1:" + port
	proc.Serve(t, cmd, addr)
	base := dialling(addr)
	t.Cleanup(base.CloseIdleConnections)
	return base
}

func dialling(addr string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
}
