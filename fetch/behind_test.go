package fetch_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// What a status means does not depend on how many redirects led to it, nor on whether the
// last one led to another origin (RFC 9309 §2.3.1.2: "the rules MUST be evaluated in the
// context of the initial authority"). An outage behind a redirect is an outage.
func TestAStatusMeansTheSameBehindRedirects(t *testing.T) {
	for _, d := range []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original} {
		for _, status := range []int{200, 201, 204, 299, 400, 401, 403, 404, 408, 410, 425, 429, 451, 499, 500, 502, 503, 504, 511, 599} {
			want := ""
			for hops := 0; hops <= fetch.MaxRedirects; hops++ {
				for _, host := range []string{"a.test", "b.test"} {
					synctest.Test(t, func(t *testing.T) {
						transport := roundTripFunc(func(r *http.Request) (*http.Response, error) {
							at := 0
							if r.URL.Path != "/robots.txt" {
								fmt.Sscanf(r.URL.Path, "/hop%d", &at)
							}
							if at < hops {
								return response(302, "", "Location", fmt.Sprintf("http://%s/hop%d", host, at+1)), nil
							}
							return response(status, file), nil
						})
						f := fetch.Fetcher{Transport: transport, Dialect: d}
						r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
						if want == "" {
							want = verdict(r)
						}
						check(t, r, err, want)
						if r.StatusCode != status || len(r.Redirects) != hops {
							t.Errorf("%v: status %d after %d redirects: got %d after %d", d, status, hops, r.StatusCode, len(r.Redirects))
						}
					})
				}
			}
		}
	}
}
