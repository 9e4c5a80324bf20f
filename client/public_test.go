package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
)

// located is a connection that tells another address than it has.
type located struct {
	net.Conn
	addr *net.TCPAddr
}

func (c located) RemoteAddr() net.Addr { return c.addr }

// With PublicOnly nothing reaches an address that is not public, whatever the way to it. The server sees
// what was sent.
func TestPublicOnlyHoldsForEveryRequest(t *testing.T) {
	public, private := net.IPv4(93, 184, 215, 14), net.IPv4(127, 0, 0, 1)
	post := func(c *http.Client, u string) (*http.Response, error) {
		return c.Post(u, "text/plain", strings.NewReader("x"))
	}
	get := func(c *http.Client, u string) (*http.Response, error) { return c.Get(u) }
	bypass := func(c *http.Client, u string) (*http.Response, error) {
		req, _ := http.NewRequestWithContext(client.WithoutRobots(t.Context()), "GET", u, nil)
		return c.Do(req)
	}
	for _, c := range []struct {
		name   string
		at     []net.IP // what the connections reach, one after the other; the last goes on
		do     func(c *http.Client, u string) (*http.Response, error)
		path   string   // of http://site.example
		direct string   // the whole URL instead
		sent   []string // what the server got
	}{
		{name: "a public site", at: []net.IP{public}, do: get, path: "/page", sent: []string{"/robots.txt", "/page"}},
		{name: "robots.txt by hand", at: []net.IP{private}, do: post, path: "/robots.txt"},
		{name: "robots.txt by hand, of a literal host", at: []net.IP{public}, do: post, direct: "http://127.0.0.1/robots.txt"},
		{name: "robots.txt by hand, of localhost", at: []net.IP{public}, do: post, direct: "http://a.localhost./robots.txt"},
		{name: "rebinding", at: []net.IP{public, private}, do: get, path: "/page", sent: []string{"/robots.txt"}},
		{name: "a private site", at: []net.IP{private}, do: get, path: "/page"},
		{name: "a redirect", at: []net.IP{public, public, private}, do: get, path: "/moved", sent: []string{"/robots.txt", "/moved"}},
		{name: "without robots", at: []net.IP{private}, do: bypass, path: "/page"},
		{name: "an address that is not told", at: []net.IP{nil}, do: bypass, path: "/page"},
		{name: "ftp", at: []net.IP{public}, do: bypass, direct: "ftp://site.example/page"},
		{name: "another scheme", at: []net.IP{public}, do: get, direct: "gopher://site.example/page"},
	} {
		for _, kind := range []string{"*http.Transport", "another type", "DialTLSContext set", "shared Cache"} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				var mu sync.Mutex
				var sent []string
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					sent = append(sent, r.RequestURI)
					mu.Unlock()
					if r.URL.Path == "/moved" {
						http.Redirect(w, r, "http://other.example/robots.txt", http.StatusFound)
					}
				}))
				defer s.Close()
				conns := 0
				dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
					mu.Lock()
					defer mu.Unlock()
					at := c.at[min(conns, len(c.at)-1)]
					conns++
					return located{conn, &net.TCPAddr{IP: at, Port: 80}}, err
				}
				wire := &http.Transport{DialContext: dial, DisableKeepAlives: true}
				gate := &client.Transport{Base: wire, Fetcher: &fetch.Fetcher{PublicOnly: true, Retries: -1}}
				switch kind {
				case "another type":
					gate.Base = struct{ http.RoundTripper }{wire}
				case "DialTLSContext set":
					wire.DialTLSContext = dial
				case "shared Cache":
					gate.Cache = new(cache.Cache)
				}
				if kind == "shared Cache" && c.path != "" && len(c.at) == 1 && c.at[0].Equal(private) {
					u, _ := url.Parse("http://site.example" + c.path)
					(&client.Transport{Base: wire, Cache: gate.Cache}).Decide(t.Context(), u)
					sent = nil
				}
				u := c.direct
				if u == "" {
					u = "http://site.example" + c.path
				}
				resp, err := c.do(&http.Client{Transport: gate}, u)
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				ok := len(c.at) == 1 && c.sent != nil
				if ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "PublicOnly") {
					t.Errorf("error %v", err)
				}
				mu.Lock()
				if !slices.Equal(sent, c.sent) {
					t.Errorf("sent %q, want %q", sent, c.sent)
				}
				mu.Unlock()
				if kind == "shared Cache" && c.path != "" { // the refusal must not become that of a Transport without PublicOnly
					a, err := (&client.Transport{Base: wire, Cache: gate.Cache}).Decide(t.Context(), parse(u))
					if err != nil || !a.Allowed {
						t.Errorf("without PublicOnly: %v, %v", a, err)
					}
				}
			})
		}
	}
}

// The proxy is the operator's own. What is asked of it is not, however it is spelled. Behind another type of Base
// a proxy cannot be told from a site.
func TestPublicOnlyLetsTheProxyBe(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.RequestURI)
	}))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	wire := &http.Transport{Proxy: func(req *http.Request) (*url.URL, error) {
		if req.URL.Host == "direct.example" {
			return nil, nil
		}
		return at, nil
	}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at.Host)
	}}
	for kind, base := range map[string]http.RoundTripper{"*http.Transport": wire, "another type": struct{ http.RoundTripper }{wire}} {
		sent = nil
		c := &http.Client{Transport: &client.Transport{Base: base, Fetcher: &fetch.Fetcher{PublicOnly: true, Retries: -1}}}
		for _, tt := range []struct {
			url, host string
			ok        bool
		}{
			{"http://site.example/robots.txt", "", true},
			{"http://127.0.0.1/robots.txt", "", false},
			{"http://direct.example/robots.txt", "", false},
			{"http://\uff11\uff12\uff17.0.0.1/robots.txt", "", false},
			{"http://169\u3002254\u3002169\u3002254/robots.txt", "", false},
			{"http://\uff4cocalhost/robots.txt", "", false},
			{"http://[::ffff:10.0.0.1]/robots.txt", "", false},
			{"http://2130706433/robots.txt", "", false},
			{"http://site.example/robots.txt", "169.254.169.254", false},
			{"http://site.example/page", "localhost:8080", false},
		} {
			req := request("GET", tt.url, nil)
			if tt.host != "" {
				req.Host = tt.host
			}
			resp, err := c.Do(req)
			spelled := err == nil || strings.Contains(err.Error(), "2130706433") // that is no host at all
			if (tt.ok && kind == "*http.Transport") != (err == nil) || !spelled && !errors.Is(err, client.ErrNotPublic) {
				t.Errorf("%s: %s of %q: %v", kind, tt.url, tt.host, err)
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		mu.Lock()
		if len(sent) > 1 || len(sent) == 1 && (kind != "*http.Transport" || sent[0] != "http://site.example/robots.txt") {
			t.Errorf("%s: sent %q", kind, sent)
		}
		mu.Unlock()
	}
}

// Not even a handshake reaches a private address.
func TestPublicOnlyIsHeldBeforeAHandshake(t *testing.T) {
	near, far := net.Pipe()
	wire := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return located{near, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}}, nil
	}}
	got := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, far)
		got <- n
	}()
	c := &http.Client{Transport: &client.Transport{Base: wire, Fetcher: &fetch.Fetcher{PublicOnly: true}}}
	if _, err := c.Get("https://site.example/robots.txt"); err == nil || !strings.Contains(err.Error(), "PublicOnly") {
		t.Errorf("error %v", err)
	}
	if n := <-got; n > 0 {
		t.Errorf("%d bytes reached a private address", n)
	}
}

// A Base may answer itself where its connection was refused, even without a body. What it does when it has answered
// reaches nobody: it is not looked at any more.
func TestPublicOnlyOverABaseOfItsOwnMind(t *testing.T) {
	public := &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}
	near, far := net.Pipe()
	defer far.Close()
	private, late := located{near, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}}, located{near, public}
	for _, c := range []struct {
		name string
		base func(connect func(httptrace.GotConnInfo)) (*http.Response, error)
		want error
	}{
		{"answers without a body", func(connect func(httptrace.GotConnInfo)) (*http.Response, error) {
			connect(httptrace.GotConnInfo{Conn: private})
			return &http.Response{StatusCode: http.StatusBadGateway}, nil
		}, client.ErrNotPublic},
		{"answers", func(func(httptrace.GotConnInfo)) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("page"))}, nil
		}, nil},
		{"gives up before it connects", func(func(httptrace.GotConnInfo)) (*http.Response, error) {
			return nil, context.DeadlineExceeded
		}, context.DeadlineExceeded},
	} {
		var connect func(httptrace.GotConnInfo)
		var answering context.Context // ends with the answer: a body that is still read would fail
		base := pagesOf(func(req *http.Request) (*http.Response, error) {
			answering = req.Context()
			connect = httptrace.ContextClientTrace(answering).GotConn
			return c.base(connect)
		})
		gate := &client.Transport{Base: base, Fetcher: &fetch.Fetcher{PublicOnly: true}}
		req := request("GET", "http://site.example/page", nil)
		if _, err := gate.RoundTrip(req); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if connect(httptrace.GotConnInfo{Conn: late}); near.SetDeadline(time.Time{}) == nil {
			t.Errorf("%s: what connects when RoundTrip has returned may be written to", c.name)
		}
		if c.want == nil && answering.Err() != nil {
			t.Errorf("%s: what connects when RoundTrip has returned ends the answer", c.name)
		}
		near, _ = net.Pipe()
		private.Conn, late.Conn = near, near
	}
}
