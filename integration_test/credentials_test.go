package integration_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// adds is a transport that gives each request a field, as those for tokens and sessions do.
type adds struct {
	http.RoundTripper
	field string
}

func (a adds) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header[a.field] = []string{"secret"}
	return a.RoundTripper.RoundTrip(req)
}

// The order that Base and the README ask for.
func TestCredentialsAboveTheGateAreOfPagesOnly(t *testing.T) {
	foreign, foreignSeen := serve(t, text(rules))
	origin, record := serve(t, redirectTo(foreign+"/robots.txt"))
	check(t, adds{gate(nil), "Authorization"}, origin, byRules)
	for _, r := range append(record.of("/robots.txt"), foreignSeen.of("/robots.txt")...) {
		if r.Header.Get("Authorization") != "" {
			t.Error("robots.txt was asked for with the credentials")
		}
	}
	if page := record.of("/public"); len(page) != 1 || page[0].Header.Get("Authorization") != "secret" {
		t.Errorf("the page was asked for %v", page)
	}
}

// What net/http itself sends to a proxy is for that proxy, also below a Base of another type, as the one that hides a
// RegisterProtocol.
func TestAProxysOwnCredentialsDoNotStopRedirects(t *testing.T) {
	p := newProxy(t, "Basic bWU6cmlnaHQ=", map[string]http.HandlerFunc{
		"a.example": redirectTo("http://b.example/robots.txt"), "b.example": text(rules),
	})
	for _, base := range []http.RoundTripper{
		&http.Transport{Proxy: p.as("right")}, struct{ http.RoundTripper }{&http.Transport{Proxy: p.as("right")}},
	} {
		t.Run(fmt.Sprintf("%T", base), func(t *testing.T) {
			check(t, gate(base), "http://a.example", byRules)
		})
	}
}

func TestAClientCertificateIsNotPresentedToAnotherOriginOfARedirect(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(c *tls.Config, own tls.Certificate)
	}{
		{"Certificates", func(c *tls.Config, own tls.Certificate) { c.Certificates = []tls.Certificate{own} }},
		{"GetClientCertificate", func(c *tls.Config, own tls.Certificate) {
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		}},
		{"session of the page client", func(c *tls.Config, own tls.Certificate) {
			c.Certificates, c.ClientSessionCache = []tls.Certificate{own}, tls.NewLRUClientSessionCache(8)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex
			var presented []string // as origin and path
			start := func(name string, robots http.HandlerFunc) *httptest.Server {
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if len(r.TLS.PeerCertificates) > 0 {
						mu.Lock()
						presented = append(presented, name+r.URL.Path)
						mu.Unlock()
					}
					if r.URL.Path == "/robots.txt" {
						robots(w, r)
						return
					}
					io.WriteString(w, "page")
				}))
				s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
				s.TLS.SetSessionTicketKeys([][32]byte{{1}}) // of one operator: a session of one is one of the other
				s.StartTLS()
				t.Cleanup(s.Close)
				return s
			}
			foreign := start("foreign", text(rules))
			origin := start("origin", redirectTo(foreign.URL+"/robots.txt"))
			base := foreign.Client().Transport.(*http.Transport)
			row.set(base.TLSClientConfig, origin.TLS.Certificates[0])

			check(t, gate(base), origin.URL, byRules)
			if got := strings.Join(presented, " "); got != "origin/robots.txt origin/public" {
				t.Errorf("the certificate was presented for %s", got)
			}
			presented = nil
			check(t, gate(base), foreign.URL, byRules) // asked for itself
			if got := strings.Join(presented, " "); got != "foreign/robots.txt foreign/public" {
				t.Errorf("the certificate was presented for %s", got)
			}
		})
	}
}

// A certificate that a proxy wants is presented to it, whichever site robots.txt is read of.
func TestAProxyThatWantsACertificateGetsItForRedirectsAsWell(t *testing.T) {
	sites := map[string]http.HandlerFunc{"a.example": redirectTo("http://b.example/robots.txt"), "b.example": text(rules)}
	p := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			sites[r.URL.Host](w, r)
			return
		}
		w.Write([]byte("page"))
	}))
	p.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	p.StartTLS()
	defer p.Close()
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := p.Client().Transport.(*http.Transport).Clone()
	base.Proxy = http.ProxyURL(u)
	base.TLSClientConfig.Certificates = p.TLS.Certificates
	check(t, gate(base), "http://a.example", byRules)
}
