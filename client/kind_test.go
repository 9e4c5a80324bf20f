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
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
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

// What a site tells one signer is not for another: the Vary of its answer names what they differ in.
func TestTwoSignersShareNoAnswerThatVaries(t *testing.T) {
	for _, vary := range []string{"Signature-Agent", "signature-input,Signature", "X-Key"} {
		for _, moved := range []bool{false, true} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if moved && r.URL.Path == "/robots.txt" {
					w.Header().Set("Vary", vary)
					http.Redirect(w, r, "/robots/"+r.Header.Get("X-Key"), http.StatusFound)
					return
				}
				if !moved {
					w.Header().Set("Vary", vary)
				}
				if r.Header.Get("X-Key") == "a" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				io.WriteString(w, "User-agent: *\nDisallow: /secret\n")
			}))
			secret, _ := url.Parse(s.URL + "/secret")
			c := new(cache.Cache)
			for _, who := range []string{"a", "b", "a", "b"} {
				gate := &client.Transport{UserAgent: who + "/1", Cache: c, Sign: func(r *http.Request) error {
					for _, name := range []string{"Signature", "Signature-Input", "Signature-Agent", "X-Key"} {
						r.Header.Set(name, who)
					}
					return nil
				}}
				if answer, err := gate.Decide(t.Context(), secret); err != nil || answer.Allowed != (who == "a") {
					t.Errorf("Vary %q, moved %v, %s: got allowed %v, %v, want %v", vary, moved, who, answer.Allowed, err, who == "a")
				}
			}
			s.Close()
		}
	}
}

// What is at another host is not for a gate that asks its own alone.
func TestSameHostIsKeptWithASharedCache(t *testing.T) {
	base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host == "a.example" {
			res := answer(301, "", "")
			res.Header = http.Header{"Location": {"http://www.a.example/robots.txt"}}
			return res, nil
		}
		return answer(200, "", "User-agent: *\nAllow: /\n"), nil
	})
	c := new(cache.Cache)
	for _, same := range []bool{false, true, false} {
		gate := &client.Transport{Base: base, UserAgent: "B/1", Cache: c, Fetcher: &fetch.Fetcher{SameHost: same}}
		if a, err := gate.Decide(t.Context(), parse("http://a.example/")); err != nil || a.Allowed == same {
			t.Errorf("SameHost %v: got %v, %v, want allowed: %v", same, a, err, !same)
		}
	}
}
