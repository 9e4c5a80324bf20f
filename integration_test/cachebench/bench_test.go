// Package cachebench measures a hit of the cache beside golang-lru, on which it is built.
package cachebench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/policy"
)

// BenchmarkTimes is a hit beside golang-lru's, in turns, with the same keys and values. What golang-lru leaves out,
// cache.Get does: it reads the clock to see that the result is still fresh.
//
//	go test -run XXX -bench Times -benchtime 21x -count 3
func BenchmarkTimes(b *testing.B) {
	const calls = 1 << 18
	result := &fetch.Result{StatusCode: 200, Policy: policy.Parse([]byte("User-agent: *\nDisallow: /private\n")), Time: time.Now()}
	src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return result, nil }}
	for _, n := range []int{1, 10_000} {
		ours, origins := new(cache.Cache), make([]fetch.Origin, n)
		theirs, err := lru.New[fetch.Origin, *fetch.Result](50_000)
		if err != nil {
			b.Fatal(err)
		}
		for i := range origins {
			origins[i], err = fetch.OriginOf(&url.URL{Scheme: "https", Host: fmt.Sprintf("www.example%d.com", i)})
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := ours.Get(b.Context(), origins[i], src); err != nil {
				b.Fatal(err)
			}
			theirs.Add(origins[i], result)
		}
		for _, goroutines := range []int{1, 2, 8} {
			side := func(get func(fetch.Origin) *fetch.Result) func() time.Duration {
				return sides.Took(func() {
					share(calls, goroutines, func(i int) {
						if get(origins[i%n]) == nil {
							b.Error("a miss")
						}
					})
				})
			}
			b.Run(fmt.Sprintf("origins=%d/goroutines=%d", n, goroutines), func(b *testing.B) {
				sides.Compare(b, calls,
					side(func(o fetch.Origin) *fetch.Result { r, _, _ := ours.Get(context.Background(), o, src); return r }),
					side(func(o fetch.Origin) *fetch.Result { r, _ := theirs.Get(o); return r }))
			})
		}
	}
}

// share divides calls among goroutines, each of which goes its own way through the keys.
func share(calls, goroutines int, f func(i int)) {
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			i := rand.IntN(1 << 20)
			for range (calls + goroutines - 1) / goroutines {
				f(i)
				i += 7919
			}
		})
	}
	group.Wait()
}
