package integration_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

// proxy is a forward proxy that wants credentials. It answers for the sites of plain http
// itself, and connects whatever it is asked to for https to secure.
type proxy struct {
	*httptest.Server
	seen
	auth   string // what it wants; "": it is never content
	sites  map[string]http.HandlerFunc
	secure string
}

func newProxy(t *testing.T, auth string, sites map[string]http.HandlerFunc) *proxy {
	p := &proxy{auth: auth, sites: sites}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.add(r)
	switch {
	case p.auth == "" || r.Header.Get("Proxy-Authorization") != p.auth:
		w.Header().Set("Proxy-Authenticate", `Basic realm="proxy"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		p.tunnel(w)
	case r.URL.Path == "/robots.txt":
		p.sites[r.URL.Host](w, r)
	default:
		w.Write([]byte("page"))
	}
}

func (p *proxy) tunnel(w http.ResponseWriter) {
	up, err := net.Dial("tcp", p.secure)
	if err != nil {
		panic(err)
	}
	down, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	down.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	go func() {
		defer up.Close()
		up.(*net.TCPConn).ReadFrom(down)
	}()
	go func() {
		defer down.Close()
		down.(*net.TCPConn).ReadFrom(up)
	}()
}

// as is a Transport.Proxy for one who has a password.
func (p *proxy) as(password string) func(*http.Request) (*url.URL, error) {
	u, err := url.Parse(p.URL)
	if u.User = url.UserPassword("me", password); err != nil {
		panic(err)
	}
	return http.ProxyURL(u)
}

// puts is a Store that has nothing and notes what it is given.
type puts struct {
	mu   sync.Mutex
	keys []string
}

func (p *puts) Get(context.Context, string) ([]byte, error) { return nil, cache.ErrMiss }

func (p *puts) Put(_ context.Context, key string, _ []byte, _ time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, key)
	return nil
}

// Once the credential is put right, nothing must remember that a proxy had none.
func TestA407OfAProxyIsNotTheOriginsAndKeptNowhere(t *testing.T) {
	plain := func(t *http.Transport) http.RoundTripper { return t }
	wrapped := func(t *http.Transport) http.RoundTripper { return adds{t, "Traceparent"} }
	for _, row := range []struct {
		name, origin string
		base         func(*http.Transport) http.RoundTripper
	}{
		{"plain http", "http://a.example", plain},
		{"CONNECT", "https://example.com", plain},
		{"plain http, a Base of another type", "http://a.example", wrapped},
		{"CONNECT, a Base of another type", "https://example.com", wrapped},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newProxy(t, "Basic bWU6cmlnaHQ=", map[string]http.HandlerFunc{"a.example": text(rules)})
			site := httptest.NewTLSServer(handler(new(seen), text(rules)))
			defer site.Close()
			p.secure = site.Listener.Addr().String()

			password := "wrong"
			base := site.Client().Transport.(*http.Transport)
			base.Proxy = func(r *http.Request) (*url.URL, error) { return p.as(password)(r) }
			store := new(puts)
			c := &cache.Cache{Store: store}
			rt := gate(row.base(base))
			rt.Cache = c

			_, err := (&http.Client{Transport: rt}).Get(row.origin + "/public")
			if !errors.Is(err, client.ErrNotSent) || !strings.Contains(err.Error(), "the proxy answered 407") {
				t.Errorf("got %v, want an error that is ErrNotSent and names the proxy's 407", err)
			}
			if n := len(p.of("/public")) + len(p.of("/private")); n > 0 {
				t.Errorf("%d pages were asked for", n)
			}
			if n := c.Stats().Origins; n != 0 {
				t.Errorf("%d origins are in memory", n)
			}

			password = "right"
			check(t, rt, row.origin, byRules)
			if err := c.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(store.keys, " "); got != "RGC5 "+row.origin+" examplebot" {
				t.Errorf("the Store was given %q, want the rules only", got)
			}
		})
	}
}

// Without a proxy it is a 4xx like any other (RFC 9309 §2.3.1.3).
func TestA407OfTheOriginItselfAllowsAll(t *testing.T) {
	origin, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) })
	check(t, &client.Transport{Base: &http.Transport{}}, origin, allowAll)
}
