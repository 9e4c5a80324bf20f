package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/policy"
)

// One 429 does not open a site whose rules are known.
func TestAStatusOfTheMomentOpensNoSite(t *testing.T) {
	statuses := map[policy.Dialect][]int{
		policy.RFC9309: {408, 421, 425, 428, 429, 431},
		policy.Google:  {408, 421, 425, 428, 429, 431},
		policy.Yandex:  {429, 500, 503},
	}
	for dialect, codes := range statuses {
		for _, code := range codes {
			t.Run(fmt.Sprint(dialect, code), func(t *testing.T) {
				var failing atomic.Bool
				site, record := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Cache-Control", "max-age=0")
					if failing.Load() {
						w.Header().Set("Retry-After", "3600")
						w.WriteHeader(code)
						return
					}
					io.WriteString(w, rules)
				})
				rt := gate(nil)
				rt.Fetcher.Dialect = dialect
				rt.Cache = &cache.Cache{MinTTL: -1} // so that every question is a refresh
				for i := range 3 {
					if ok, err := do(t.Context(), rt, site+"/private"); ok {
						t.Errorf("request %d of a forbidden page is sent (%v)", i, err)
					}
					failing.Store(true)
				}
				if ok, err := do(t.Context(), rt, site+"/public"); !ok {
					t.Errorf("a page that the copy allows is not sent: %v", err)
				}
				if n := len(record.of("/robots.txt")); n != 2 {
					t.Errorf("robots.txt was asked for %d times, want twice: Retry-After is an hour", n)
				}
			})
		}
	}
}
