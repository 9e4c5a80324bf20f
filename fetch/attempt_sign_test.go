package fetch_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A Sign that makes requests conditional has no copy for a 304 to renew.
func TestA304ToValidatorsOfSignRenewsNothing(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("ETag", `"other"`)
		w.WriteHeader(http.StatusNotModified)
	}))
	defer srv.Close()
	f := &fetch.Fetcher{Sign: func(r *http.Request) error {
		r.Header.Set("If-None-Match", `"other"`)
		return nil
	}}
	prev := &fetch.Result{StatusCode: 200, Policy: policy.Parse(nil), Header: http.Header{"Etag": {`"ours"`}}}
	for name, prev := range map[string]*fetch.Result{"without a copy": nil, "with a copy": prev} {
		asked.Store(0)
		r, err := f.Fetch(t.Context(), originOf(t, srv.URL), prev)
		if err != nil || r.Err == nil || r.Policy.Reason() != policy.ReasonUnreachable || asked.Load() > 2 {
			t.Errorf("%s: %v, %v after %d requests, want an unreachable result after two at most", name, r, err, asked.Load())
		}
	}
}

// A key that Sign gives to one site goes to no other: a redirect is followed without it, or not at all.
func TestCredentialsOfSignAreForOneOrigin(t *testing.T) {
	var keys []string // that the other origin got
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("X-Key"))
		io.WriteString(w, "User-agent: *\nDisallow: /private/\n")
	}))
	defer other.Close()
	var own []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own = append(own, r.Header.Get("X-Key"))
		if r.URL.Path == "/robots.txt" {
			http.Redirect(w, r, "/moved.txt", http.StatusFound) // the same origin gets it again
			return
		}
		http.Redirect(w, r, other.URL+"/robots.txt", http.StatusFound)
	}))
	defer srv.Close()
	for _, row := range []struct {
		blind bool // Sign does not look where the request goes
		want  string
		keys  []string
	}{
		{false, "rules", []string{""}},
		{true, "disallow", nil},
	} {
		own, keys = nil, nil
		f := &fetch.Fetcher{Retries: -1, Sign: func(r *http.Request) error {
			if row.blind || "http://"+r.URL.Host == srv.URL {
				r.Header.Set("X-Key", "abc")
			}
			return nil
		}}
		r := fetched(t, f, srv.URL, nil, row.want)
		if !slices.Equal(own, []string{"abc", "abc"}) || !slices.Equal(keys, row.keys) {
			t.Errorf("blind %v: the origin got %q, the other %q, want %q; %v", row.blind, own, keys, row.keys, r)
		}
	}
}
