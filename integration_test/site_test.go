// Package integration_test uses the library as its users do: the public API only,
// over real sockets.
package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// rules is the robots.txt of a healthy test site.
const rules = "User-agent: *\nDisallow: /private\n"

// seen records the requests that reach a server.
type seen struct {
	mu   sync.Mutex // guards reqs
	reqs []*http.Request
}

func (s *seen) add(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reqs = append(s.reqs, r.Clone(context.Background()))
}

// of returns the requests whose path is path.
func (s *seen) of(path string) (found []*http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.reqs {
		if r.URL.Path == path {
			found = append(found, r)
		}
	}
	return found
}

// serve starts a server that answers /robots.txt with robots and anything else with
// "page"; record keeps what it saw.
func serve(t *testing.T, robots http.HandlerFunc) (url string, record *seen) {
	t.Helper()
	record = new(seen)
	s := httptest.NewServer(handler(record, robots))
	t.Cleanup(s.Close)
	return s.URL, record
}

func handler(record *seen, robots http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record.add(r)
		if r.URL.Path == "/robots.txt" {
			robots(w, r)
			return
		}
		io.WriteString(w, "page")
	})
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

// gate is a Transport whose robots.txt fetches are not repeated, so that they can be counted.
func gate(base http.RoundTripper) *client.Transport {
	return &client.Transport{
		Base:      base,
		UserAgent: userAgent,
		Fetcher:   &fetch.Fetcher{Transport: base, UserAgent: userAgent, Retries: -1, Timeout: 5 * time.Second},
	}
}

// get asks for url and says what happened: "sent", or the refusal.
func get(t *testing.T, rt http.RoundTripper, url string) (sent bool, refusal *client.DisallowedError) {
	t.Helper()
	sent, err := do(t.Context(), rt, url)
	if err == nil {
		return sent, nil
	}
	if !errors.As(err, &refusal) {
		t.Fatalf("GET %s: %v, want a page or a *client.DisallowedError", url, err)
	}
	return false, refusal
}

func do(ctx context.Context, rt http.RoundTripper, url string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	resp, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && string(body) != "page" {
		err = fmt.Errorf("body is %q", body)
	}
	return true, err
}

// verdict is what an answer for robots.txt means for the pages of its origin.
type verdict int

const (
	byRules verdict = iota // /public is sent, /private refused by its rule
	allowAll
	disallowAll
)

// check asks for both pages and for robots.txt itself, which is always allowed.
func check(t *testing.T, rt http.RoundTripper, origin string, want verdict) {
	t.Helper()
	for _, path := range []string{"/public", "/private"} {
		sent, refusal := get(t, rt, origin+path)
		wantSent := want == allowAll || want == byRules && path == "/public"
		if sent != wantSent {
			t.Errorf("%s: sent = %t, want %t (%v)", path, sent, wantSent, refusal)
			continue
		}
		wantReason := policy.ReasonRule
		if want == disallowAll {
			wantReason = policy.ReasonUnreachable
		}
		if !sent && refusal.Decision.Reason != wantReason {
			t.Errorf("%s: reason %v, want %v", path, refusal.Decision.Reason, wantReason)
		}
		if !sent && (refusal.Unreachable != nil) != (want == disallowAll) {
			t.Errorf("%s: cause %v, want one only where robots.txt is unreachable", path, refusal.Unreachable)
		}
	}
}

// hijacked writes raw bytes and closes the connection.
func hijacked(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		fmt.Fprint(conn, raw)
		conn.Close()
	}
}

func redirectTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}
