package sign_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/sign"
)

// What a site sees of a crawler that signs when asked. On the wire nothing is sent twice, nothing is signed
// for a site that has not asked, and what robots.txt told a request without signature is no permission for one with it.
func TestWhenAskedSignsForWhoAsks(t *testing.T) {
	signer := &sign.Signer{Key: ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32))), Agent: "https://bot.example", Cover: []string{"@method"}, PlainHTTP: true}
	keyID, err := signer.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	plain := []string{"/robots.txt", "/a 403", "/b 403", "/private 403"}
	onPage := []string{"/robots.txt", "/a 403", "/robots.txt signed", "/b 200 signed"}
	for _, tt := range []struct {
		name, asks string
		at         string // begins the paths that ask
		http       bool   // signed over http
		want       []string
	}{
		{"for a page", `sig=("@authority" "signature-agent");created;expires;tag="web-bot-auth"`, "/a", true, onPage},
		{"for robots.txt", `sig=("@authority" "signature-agent")`, "/robots.txt", true, onPage},
		{"with all that it makes", `s=("@method" "signature-agent";key="s");alg="ed25519";keyid="` + keyID + `"`, "/", true, onPage},
		{"one of two", `a=("@status"), b=()`, "/", true, onPage},
		{"not at all", "", "/", true, plain},
		{"for what is not covered", `sig=("@authority" "date")`, "/", true, plain},
		{"for a component of another message", `sig=("@authority";req)`, "/", true, plain},
		{"for the key of a field without one", `sig=("@method";key="x")`, "/", true, plain},
		{"for a nonce of its own", `sig=("@authority");nonce="n"`, "/", true, plain},
		{"for another key", `sig=("@authority");keyid="x"`, "/", true, plain},
		{"for another algorithm", `sig=("@authority");alg="rsa-pss-sha512"`, "/", true, plain},
		{"for another purpose", `sig=("@authority");tag="x"`, "/", true, plain},
		{"without a list", `sig="@authority"`, "/", true, plain},
		{"in no dictionary", `(`, "/", true, plain},
		{"at length", "a=" + strings.Repeat("1", 16<<10) + ", b=()", "/", true, plain},
		{"over http", `sig=("@authority")`, "/", false, plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			verifier := &sign.Verifier{Key: func(context.Context, string, string) (crypto.PublicKey, error) { return signer.Key.Public(), nil }}
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := verifier.Verify(r)
				said := r.URL.Path
				if said != "/robots.txt" {
					said = fmt.Sprint(said, map[bool]string{true: " 200", false: " 403"}[err == nil])
				}
				if r.Header["Signature"] != nil {
					said += " signed"
				}
				mu.Lock()
				seen = append(seen, said)
				mu.Unlock()
				if err != nil {
					if strings.HasPrefix(r.URL.Path, tt.at) && tt.asks != "" {
						w.Header().Set("Accept-Signature", tt.asks)
					}
					http.Error(w, "sign", http.StatusForbidden)
				} else if r.URL.Path == "/robots.txt" {
					io.WriteString(w, "User-agent: *\nDisallow: /private\n")
				}
			}))
			defer site.Close()
			s, shared, fetched := *signer, new(cache.Cache), 0
			s.PlainHTTP = tt.http
			unsigned := &client.Transport{Cache: shared, Trace: &client.Trace{Fetched: func(context.Context, client.FetchedInfo) { fetched++ }}}
			c := &http.Client{Transport: s.WhenAsked(unsigned, &client.Transport{Cache: shared, Sign: s.Sign})}
			defer c.CloseIdleConnections()
			for _, path := range []string{"/a", "/b", "/private"} {
				if resp, err := c.Get(site.URL + path); err == nil {
					resp.Body.Close()
				} else if !strings.Contains(err.Error(), "Disallow: /private") {
					t.Error(err)
				}
			}
			if !slices.Equal(seen, tt.want) || fetched != 1 {
				t.Errorf("the site saw %q, want %q; the caller's Trace heard of %d", seen, tt.want, fetched)
			}
		})
	}
}

// Other sites of the same crawler get no signature, though one has asked.
func TestWhenAskedSignsForNoOther(t *testing.T) {
	signer := &sign.Signer{Key: ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32))), Agent: "https://bot.example", PlainHTTP: true}
	signed := map[string]bool{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed[r.Host] = r.Header["Signature"] != nil
		if strings.HasPrefix(r.Host, "127.") {
			w.Header().Set("Accept-Signature", "sig=()")
		}
	}))
	defer site.Close()
	c := &http.Client{Transport: signer.WhenAsked(new(client.Transport), &client.Transport{Sign: signer.Sign})}
	defer c.CloseIdleConnections()
	other := strings.Replace(site.URL, "127.0.0.1", "localhost", 1)
	for _, u := range []string{site.URL, other, site.URL, other} {
		resp, err := c.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if len(signed) != 2 || signed[strings.TrimPrefix(other, "http://")] || !signed[strings.TrimPrefix(site.URL, "http://")] {
		t.Errorf("signed: %v", signed)
	}
	if _, err := c.Transport.RoundTrip(new(http.Request)); err == nil {
		t.Error("a request without a URL was sent")
	}
}
