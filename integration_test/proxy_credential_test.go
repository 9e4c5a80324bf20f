package integration_test

import (
	"net/http"
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
