package integration_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// So it is below a Base of another type, as the one that hides a RegisterProtocol.
func TestAProxysOwnCredentialsBelowABaseOfAnotherTypeDoNotStopRedirects(t *testing.T) {
	log := logged(t)
	p := newProxy(t, "Basic bWU6cmlnaHQ=", map[string]http.HandlerFunc{
		"a.example": redirectTo("http://b.example/robots.txt"), "b.example": text(rules),
	})
	rt := gate(struct{ http.RoundTripper }{&http.Transport{Proxy: p.as("right")}})
	check(t, rt, "http://a.example", byRules)
	if log.String() != "" {
		t.Errorf("logged %s", log)
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
