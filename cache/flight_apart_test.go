package cache_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// An origin is scheme, host and port (RFC 9309 §2.3), and the name it is asked for where
// that is another: those that have some of it in common share neither a fetch nor its result.
func TestOriginsOfOneHostAreFetchedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origins := []fetch.Origin{
			origin(t, "http://a.example"), origin(t, "https://a.example"),
			origin(t, "http://a.example:8080"), origin(t, "https://a.example:8080"),
			origin(t, "http://b.example"), origin(t, "http://a.example.b.example"),
		}
		for _, link := range []string{"http://a.example", "https://a.example", "http://b.example"} {
			o, err := fetch.OriginOfRequest(request(t, link, "c.example"))
			if err != nil {
				t.Fatal(err)
			}
			origins = append(origins, o)
		}
		c, release := new(cache.Cache), make(chan struct{})
		var fetching atomic.Int32
		var callers sync.WaitGroup
		for i, o := range origins {
			load := func(ctx context.Context, asked fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
				if asked != o {
					t.Errorf("%v is fetched for %v", asked, o)
				}
				fetching.Add(1)
				<-release
				return rules(fmt.Sprintf("/%d/", i)), nil
			}
			callers.Go(func() {
				if r, _, err := c.Get(t.Context(), o, &cache.Source{Load: load}); err != nil || r.Policy.Decide("a", fmt.Sprintf("/%d/", i)).Allowed {
					t.Errorf("%v: got %s, %v, want its own rules", o, brief(r), err)
				}
			})
		}
		synctest.Wait()
		if n := int(fetching.Load()); n != len(origins) {
			t.Errorf("%d fetches are under way, want %d", n, len(origins))
		}
		close(release)
		callers.Wait()
		if n := c.Stats().Origins; n != len(origins) {
			t.Errorf("%d origins are known, want %d", n, len(origins))
		}
	})
}
