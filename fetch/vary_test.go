package fetch_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// For whom an answer is depends on the Vary of each hop, and on what is sent.
func TestForWhomAnAnswerIs(t *testing.T) {
	sign := func(req *http.Request) error {
		req.Header.Set("Signature-Input", "x")
		req.Header.Set("X-Api-Key", "x")
		return nil
	}
	for _, tt := range []struct {
		name           string
		agent          string
		sign           func(*http.Request) error
		redirect, last string // their Vary
		want           string // Result.UserAgent
		any            bool   // no other request matches
	}{
		{"nothing varies", "a", nil, "", "", "", false},
		{"the answer", "a", nil, "", "Accept, user-agent", "a", false},
		{"a redirect", "a", nil, "User-Agent", "", "a", false},
		{"a redirect, no UserAgent", "", nil, "User-Agent", "", "Go-http-client/1.1", false},
		{"no UserAgent", "", nil, "", "User-Agent", "Go-http-client/1.1", false},
		{"what all send", "a", sign, "", "Accept-Encoding", "", false},
		{"what is not sent", "a", sign, "", "Cookie", "", false},
		{"a signature", "a", sign, "", "Cookie, signature-input, signature", "a", false},
		{"a signature, unsigned", "a", nil, "", "Signature-Input", "", false},
		{"a signature, and what Sign adds", "a", sign, "", "signature, x-api-key", "a", true},
		{"what Sign adds", "a", sign, "", "Accept, x-api-key", "a", true},
		{"what Sign would add", "a", nil, "", "X-Api-Key", "", false},
		{"what Sign adds, at a redirect", "a", sign, "X-API-Key", "", "a", true},
	} {
		f := fetch.Fetcher{UserAgent: tt.agent, Sign: tt.sign, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			res := &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{"Vary": {tt.last}}}
			if req.URL.Path == "/robots.txt" {
				res.StatusCode = 302
				res.Header = http.Header{"Vary": {tt.redirect}, "Location": {"/r.txt"}, "Expires": {"0"}}
			}
			return res, nil
		})}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.example"), nil)
		if err != nil || r.Err != nil || len(r.RedirectHeaders) != 1 {
			t.Fatalf("%s: got %v, %v, want a file behind one redirect", tt.name, r, err)
		}
		if r.UserAgent != tt.want {
			t.Errorf("%s: for %q, want %q", tt.name, r.UserAgent, tt.want)
		}
		if any := slices.Contains(append(r.Header["Vary"], r.RedirectHeaders[0]["Vary"]...), "*"); any != tt.any {
			t.Errorf("%s: Vary %q and %q, want * %v", tt.name, r.Header["Vary"], r.RedirectHeaders[0]["Vary"], tt.any)
		}
		if got := r.RedirectHeaders[0].Get("Expires"); got != "0" {
			t.Errorf("%s: the redirect's Expires is %q", tt.name, got)
		}
	}
}
