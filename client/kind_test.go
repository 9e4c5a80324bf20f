package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
)

// A site may answer signed and unsigned requests differently, whatever its Vary says. What one
// was told is not for the other, though they share User-Agent and Cache.
func TestSignedAndUnsignedShareNoAnswer(t *testing.T) {
	for _, vary := range []string{"", "Signature-Input, Signature-Agent"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Vary", vary)
			if r.Header.Get("Signature-Input") == "" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			io.WriteString(w, "User-agent: *\nDisallow: /secret\n")
		}))
		secret, _ := url.Parse(s.URL + "/secret")
		sign := func(r *http.Request) error { r.Header.Set("Signature-Input", "x"); return nil }
		c := new(cache.Cache)
		for _, tt := range []struct {
			name string
			gate *client.Transport
			open bool
		}{
			{"unsigned", &client.Transport{UserAgent: "B/1", Cache: c}, true},
			{"Transport.Sign", &client.Transport{UserAgent: "B/1", Cache: c, Sign: sign}, false},
			{"Fetcher.Sign", &client.Transport{UserAgent: "B/1", Cache: c, Fetcher: &fetch.Fetcher{Sign: sign}}, false},
			{"unsigned again", &client.Transport{UserAgent: "B/1", Cache: c}, true},
			{"obeys walls", &client.Transport{UserAgent: "B/1", Cache: c, Fetcher: &fetch.Fetcher{ObeyWalls: true}}, false},
			{"does not", &client.Transport{UserAgent: "B/1", Cache: c}, true},
		} {
			if a, err := tt.gate.Decide(t.Context(), secret); err != nil || a.Allowed != tt.open {
				t.Errorf("Vary %q, %s: allowed %v, %v; want %v", vary, tt.name, a.Allowed, err, tt.open)
			}
		}
		s.Close()
	}
}
