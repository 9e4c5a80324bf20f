package integration_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// walled is a site, under any name, that admits only requests which are signed.
type walled struct {
	*httptest.Server
	key func(agent, keyID string) (ed25519.PublicKey, error)

	mu       sync.Mutex
	verified int
	refused  []string          // what came unsigned, or wrongly signed
	asked    map[string]int    // robots.txt, by host
	nonces   map[string]string // by nonce, the target
}

func newWalled(t *testing.T, s *sign.Signer) *walled {
	t.Helper()
	id, err := s.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	w := &walled{asked: make(map[string]int), nonces: make(map[string]string)}
	w.key = func(agent, keyID string) (ed25519.PublicKey, error) {
		if agent != s.Agent || keyID != id {
			return nil, errors.New("not known")
		}
		return s.Key.Public().(ed25519.PublicKey), nil
	}
	w.Server = httptest.NewTLSServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.Close)
	return w
}

func (w *walled) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := sign.Verify(r, w.key); err != nil {
		w.refused = append(w.refused, fmt.Sprintf("%s%s: %v", r.Host, r.RequestURI, err))
		http.Error(rw, "sign", http.StatusForbidden)
		return
	}
	w.verified++
	fields := strings.Join(r.Header["Signature-Input"], "")
	if was, again := w.nonces[fields]; again {
		w.refused = append(w.refused, r.RequestURI+": signed as "+was+" was")
	}
	w.nonces[fields] = r.RequestURI
	switch {
	case r.URL.Path == "/robots.txt":
		if w.asked[r.Host]++; w.asked[r.Host] == 1 {
			rw.WriteHeader(http.StatusServiceUnavailable) // once: it has to be signed anew
			return
		}
		fmt.Fprint(rw, "User-agent: *\nDisallow: /private\n")
	case strings.HasPrefix(r.URL.Path, "/moved"):
		http.Redirect(rw, r, "https://next.example"+strings.TrimPrefix(r.URL.Path, "/moved"), http.StatusFound)
	}
}

// client reaches the site under all names.
func (w *walled) client(hook func(*http.Request) error) (*http.Client, *client.Transport) {
	base := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		DialContext:         dialTo(w.Listener.Addr().String()),
		MaxIdleConnsPerHost: 4,
	}
	gate := &client.Transport{Base: base, UserAgent: userAgent, Sign: hook}
	return &http.Client{Transport: gate}, gate
}

func newSigner(t *testing.T) *sign.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &sign.Signer{Key: key, Agent: "https://bot.example"}
}

// Every request that the gate sends verifies at a server: pages and robots.txt, hops of
// redirects, retries, names of all kinds.
func TestEverySignedRequestVerifies(t *testing.T) {
	tier.Gate(t)
	s := newSigner(t)
	w := newWalled(t, s)
	c, gate := w.client(s.Sign)
	defer gate.CloseIdleConnections()
	requests := 500
	if *full {
		requests = 10_000
	}
	rng := mrand.New(mrand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range requests {
		host := pick("one.example", "TWO.example", "three.example:8443", "four.example:443", "[2001:db8::1]", "[2001:db8::2]:8443", "bücher.example")
		link := "https://" + host + pick("", "/moved") + pick("/a", "/ä/%2F", "/a//b/", "/") + pick("", "?q=1", "?q=a%20b&x", "?")
		req, err := http.NewRequest(pick("GET", "HEAD"), link, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Signature", "sig1=:AAAA:") // a caller's own would go to other hosts with a redirect
		if rng.IntN(10) == 0 {
			req.Host = "other.example"
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", link, err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", link, resp.Status)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for host, n := range w.asked {
		if n != 2 && host != "other.example" { // an origin of its own below each name
			t.Errorf("%s: robots.txt was asked for %d times, want 2", host, n)
		}
	}
	if len(w.refused) > 0 || w.verified < requests || len(w.asked) < 8 {
		t.Errorf("%d verified, of %d hosts; refused: %q", w.verified, len(w.asked), w.refused[:min(len(w.refused), 5)])
	}
}

// What cannot be signed is not sent: neither a page nor robots.txt.
func TestNothingGoesOutUnsigned(t *testing.T) {
	tier.Gate(t)
	s := newSigner(t)
	vault := errors.New("key vault away")
	var failing atomic.Pointer[[]string] // the paths for which the hook fails
	hook := func(r *http.Request) error {
		if paths := failing.Load(); slices.Contains(*paths, r.URL.Path) {
			return vault
		}
		return s.Sign(r)
	}
	for _, c := range []struct {
		name  string
		fails []string
	}{
		{"a page", []string{"/page"}},
		{"robots.txt", []string{"/robots.txt"}},
	} {
		for _, pacer := range []*client.Pacer{nil, {}} {
			t.Run(fmt.Sprint(c.name, ", paced ", pacer != nil), func(t *testing.T) {
				w := newWalled(t, s)
				cl, gate := w.client(hook)
				gate.Pacer = pacer
				defer gate.CloseIdleConnections()
				failing.Store(&c.fails)
				body := &closing{Reader: strings.NewReader("x")}
				_, err := cl.Post("https://walled.example/page", "text/plain", body)
				// It is the caller's own mistake, and no outage of the site.
				if _, refused := errors.AsType[*client.DisallowedError](err); refused || !errors.Is(err, vault) {
					t.Errorf("error %v", err)
				}
				if !body.closed.Load() {
					t.Error("the body is still open")
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.refused) > 0 {
					t.Errorf("unsigned: %q", w.refused)
				}
			})
		}
	}
}

type closing struct {
	*strings.Reader
	closed atomic.Bool
}

func (c *closing) Close() error {
	c.closed.Store(true)
	return nil
}
