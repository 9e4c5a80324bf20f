package fetch_test

import (
	"net/http"
	"net/http/httptest"
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
