package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// relay is a running "robots proxy".
type relay struct {
	t     *testing.T
	url   *url.URL
	watch string // where its metrics are, if it has a listener for them
	stop  context.CancelFunc
	end   chan int // its exit status
	log   *proc.Log
}

var startLine = regexp.MustCompile(`^robots proxy: (.*)\n(?:robots proxy metrics: (.*)/metrics\n)?$`)

// startProxy runs "robots proxy" in this process, with flags.
func startProxy(t *testing.T, args ...string) *relay {
	return startProxyWith(t, proxy.UsualLimits(), args...)
}

func startProxyWith(t *testing.T, l proxy.Limits, args ...string) *relay {
	t.Helper()
	v := &relay{t: t, log: new(proc.Log)}
	p := newProxy(&shell.App{Streams: shell.Streams{Err: v.log}})
	p.bounds = l
	var said string
	said, v.stop, v.end = startCommand(t, p.command(), p.App,
		append([]string{"--listen=127.0.0.1:0", "--cache=none", "--drain=2s"}, args...))
	at := startLine.FindStringSubmatch(said)
	if at == nil {
		t.Fatalf("it says %q", said)
	}
	v.url, _ = url.Parse(at[1])
	v.watch = at[2]
	return v
}

// client is one that uses the proxy, follows no redirect, and trusts a pool; nil: that of the system.
func (v *relay) client(pool *x509.CertPool) *http.Transport {
	tr := &http.Transport{Proxy: http.ProxyURL(v.url), DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: pool}}
	v.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// do sends a request through the proxy; fields are lines "Name: value".
func (v *relay) do(method, target string, fields ...string) (*http.Response, string) {
	v.t.Helper()
	return talk(v.t, v.client(nil), method, target, "", fields...)
}

// proxySite is what proxied sites answer. "down.example" is down, others have rules.
func proxySite(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(r.Host, ":")
	switch {
	case name == "down.example":
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path != "/robots.txt":
		fmt.Fprintf(w, "%s %s for %q via %q", r.Method, r.RequestURI, r.UserAgent(), r.Header["Via"])
	case name == "use.example":
		io.WriteString(w, "User-agent: *\nAllow: /\nContent-Signal: ai-train=no\n")
	case name == "open.example":
		io.WriteString(w, "User-agent: *\nDisallow:\nUser-agent: badbot\nDisallow: /x\n")
	default:
		io.WriteString(w, "User-agent: *\nDisallow: /private\nUser-agent: guest\nAllow: /\nDisallow: /cellar\n")
	}
}

func TestProxyPassesWhatIsAllowed(t *testing.T) {
	to := siteServer(t, proxySite)
	one := startProxy(t, "--private", "--agent=ExampleBot", "--uses=train-ai", to)
	each := startProxy(t, "--private", "--agent-from-client", to)
	for _, c := range []struct {
		proxy          *relay
		method, target string
		fields         string // separated by |
		status         int
		says, problem  string
	}{
		{one, "GET", "http://s.example/a?b=;&c", "User-Agent: X/1", 200, `GET /a?b=;&c for "X/1" via ["1.1 robotsgate"]`, ""},
		{one, "GET", "http://s.example/a", "User-Agent: ", 200, `for ""`, ""},
		{one, "GET", "http://s.example/robots.txt", "", 200, "Disallow: /private", ""},
		{one, "GET", "http://s.example/private", "", 403, "line 2: Disallow: /private", "rule"},
		{one, "POST", "http://s.example/private", "User-Agent: guest", 403, "line 2: Disallow: /private", "rule"},
		{one, "GET", "http://s.example/a/../private", "", 400, "dot segment", "target"},
		{one, "GET", "http://S.EXAMPLE:80/%70rivate", "", 403, "line 2: Disallow: /private", "rule"},
		{one, "GET", "http://use.example/", "", 403, "train-ai is disallowed by", "rule"},
		{one, "GET", "http://down.example/", "", 503, "robots.txt is unreachable: status 503", "unreachable"},
		{one, "GET", "http://s.example/" + strings.Repeat("a", 17<<10), "", 400, "shorten them", "target"},
		{one, "GET", "http://s.example:22/", "", 400, "not one of the web's", "target"},
		{one, "GET", "http://s.example:6000/", "", 400, "not one of the web's", "target"},
		{one, "OPTIONS", "http://s.example/", "", 200, "OPTIONS / ", ""},
		{one, "TRACE", "http://s.example/a", "Cookie: c=d", 400, "TRACE does not pass", "target"},
		{one, "GET", "http://s.example/private", "Accept: text/html", 403, "line 2: Disallow: /private", "rule"},
		{each, "GET", "http://s.example/private", "User-Agent: Guest/1.0 (+x)", 200, `for "Guest/1.0 (+x)"`, ""},
		{each, "GET", "http://s.example/cellar", "User-Agent: guest", 403, "line 5: Disallow: /cellar", "rule"},
		{each, "GET", "http://s.example/private", "User-Agent: other/guest", 403, "line 2", "rule"},
		{each, "GET", "http://s.example/private", "User-Agent: ", 403, "line 2", "rule"},
		{each, "GET", "http://use.example/", "", 200, "GET /", ""},
	} {
		res, body := c.proxy.do(c.method, c.target, strings.Split(c.fields, "|")...)
		if res.StatusCode != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %.80s: %s: %.300s, want %d: %s", c.method, c.target, res.Status, body, c.status, c.says)
			continue
		}
		if c.problem == "" {
			if strings.Contains(body, "c=d") || res.Header.Get("Proxy-Status") != "" {
				t.Errorf("%s %s: %v %s", c.method, c.target, res.Header, body)
			}
			continue
		}
		var p web.Problem
		json.Unmarshal([]byte(body), &p)
		if !strings.HasSuffix(p.Type,
			"#problem-"+c.problem) || res.Header.Get("Content-Type") != "application/problem+json" ||
			!strings.HasPrefix(res.Header.Get("Proxy-Status"), "robotsgate;error=http_request_") {
			t.Errorf("%s %.80s: %v %s", c.method, c.target, res.Header, body)
		}
		if retry := res.Header.Get("Retry-After"); (retry != "") != (c.problem == "unreachable") {
			t.Errorf("%s %.80s: got Retry-After %q, problem %q", c.method, c.target, retry, c.problem)
		}
	}
}

// The proxy asks for robots.txt in its own name, whichever client's request it decides on.
func TestProxyAsksForRobotsInItsOwnName(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]string{}
	v := startProxy(t, "--private", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path] += r.UserAgent() + r.Header.Get("Cookie") + r.Header.Get("Via")
	}))
	v.do("GET", "http://s.example/a", "User-Agent: Crawler/1", "Cookie: ;a=b")
	mu.Lock()
	defer mu.Unlock()
	if asked["/robots.txt"] != site.UserAgent || asked["/a"] != "Crawler/1;a=b1.1 robotsgate" {
		t.Errorf("asked %q, want robots.txt by %s, and /a by Crawler/1 with Via", asked, site.UserAgent)
	}
}

func TestProxyAsksForItsToken(t *testing.T) {
	v := startProxy(t, "--private", "--token-file="+written(t, "0123456789abcdef\n"), siteServer(t, proxySite))
	for user, status := range map[string]int{":": 407, "any:0123456789abcdef": 200, "any:0123456789abcdeg": 407,
		":0123456789abcdef": 200} {
		name, word, _ := strings.Cut(user, ":")
		v.url.User = url.UserPassword(name, word)
		if res, body := v.do("GET", "http://s.example/a"); res.StatusCode != status ||
			(res.Header.Get("Proxy-Authenticate") != "") != (status == 407) {
			t.Errorf("%q: got %s %v %s, want %d", user, res.Status, res.Header, body, status)
		}
	}
	v.url.User = nil
	for field, status := range map[string]int{"Bearer 0123456789abcdef": 200, "Basic 0123456789abcdef": 407,
		"0123456789abcdef": 407} {
		if res, body := v.do("GET", "http://s.example/a", "Proxy-Authorization: "+field); res.StatusCode != status {
			t.Errorf("%q: %s %s, want %v", field, res.Status, body, status)
		}
	}
}

func TestProxyListensOnLoopbackUnlessToldOtherwise(t *testing.T) {
	for _, args := range []string{"--listen=0.0.0.0:0", "--log=xml", "--drain=-1s", "--turn-time=1m", "--agent=A --agent-from-client",
		"--uses=x", "argument"} {
		args := append([]string{"proxy", "--cache=none"}, strings.Fields(args)...)
		if status, said := fails(t, args...); status != shell.ExitUsage {
			t.Errorf("%q: status %d: %s, want %d", args, status, said, shell.ExitUsage)
		}
	}
	v := startProxy(t, "--listen=0.0.0.0:0", "--open", "--private", siteServer(t, proxySite))
	v.url.Host = strings.Replace(v.url.Host, "[::]", "127.0.0.1", 1)
	if res, body := v.do("GET", "http://s.example/a"); res.StatusCode != 200 {
		t.Errorf("got %s %s, want 200", res.Status, body)
	}
}

// Whatever names the site, and however the address is written, no private network is reached, not
// even for robots.txt itself, which needs no permission.
func TestProxyReachesPublicNetworksOnly(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer inner.Close()
	v := startProxy(t, "--timeout=2s") // without the proxies of the environment, see TestServeAsksPublicNetworksOnly
	_, port, _ := strings.Cut(inner.Listener.Addr().String(), ":")
	for _, host := range []string{
		"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "10.0.0.1",
		"169.254.169.254", "[fe80::1]", "[fd00::1]", "192.168.0.1", "100.64.0.1", "127.1", "2130706433", "0x7f000001",
	} {
		for _, path := range []string{"/", "/robots.txt"} {
			res, body := v.do("GET", "http://"+host+":"+port+path)
			if res.StatusCode != 403 && res.StatusCode != 400 {
				t.Errorf("%s%s: got %s %s, want 403 or 400", host, path, res.Status, body)
			}
			if path == "/robots.txt" && res.StatusCode == 403 &&
				!strings.Contains(res.Header.Get("Proxy-Status"), "error=destination_ip_prohibited") {
				t.Errorf("%s: got %v, want destination_ip_prohibited", host, res.Header)
			}
		}
	}
}

// A request that goes round ends, and is reported as what it is.
func TestProxyDoesNotAskItself(t *testing.T) {
	v := startProxy(t, "--private", "--timeout=2s")
	self := "http://" + v.url.Host + "/a"
	if res, body := v.do("GET", self); res.StatusCode != 400 {
		t.Errorf("%s: %s %s, want 400", self, res.Status, body)
	}
	v = startProxy(t, "--private", siteServer(t, proxySite))
	for hops, want := range map[int]int{1: 200, 4: 200, 5: 508} {
		res, body := v.do("GET", "http://s.example/a", "Via: "+strings.Repeat("1.1 robotsgate, ", hops)+"1.0 other")
		if res.StatusCode != want || (want == 508) != strings.Contains(res.Header.Get("Proxy-Status"), "proxy_loop_detected") {
			t.Errorf("%d hops: got %s %v %s, want %d", hops, res.Status, res.Header, body, want)
		}
	}
}
