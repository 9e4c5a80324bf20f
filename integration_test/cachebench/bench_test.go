// Package cachebench measures a hit of the cache beside the caches that it could have been
// built on. It is a module of its own, so that they stay out of the library's go.mod.
//
//	go test -bench . -benchmem -count 6
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
	"github.com/maypok86/otter/v2"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/policy"
)

// BenchmarkHit looks up origins that are there, at 1, 2 and 8 goroutines. All caches have
// the same keys and values. What the others leave out, cache.Get does: it reads the clock
// to see that the result is still fresh.
func BenchmarkHit(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		origins, result := originsOf(b, n)
		for _, c := range caches(b, origins, result) {
			for _, goroutines := range []int{1, 2, 8} {
				b.Run(fmt.Sprintf("origins=%d/goroutines=%d/%s", n, goroutines, c.name), func(b *testing.B) {
					b.ReportAllocs()
					b.ResetTimer()
					share(b.N, goroutines, func(i int) {
						if c.get(origins[i%n]) == nil {
							b.Error("a miss")
						}
					})
				})
			}
		}
	}
}

func originsOf(b *testing.B, n int) ([]fetch.Origin, *fetch.Result) {
	origins := make([]fetch.Origin, n)
	for i := range origins {
		o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: fmt.Sprintf("www.example%d.com", i)})
		if err != nil {
			b.Fatal(err)
		}
		origins[i] = o
	}
	file := []byte("User-agent: *\nDisallow: /private\n")
	return origins, &fetch.Result{StatusCode: 200, Policy: policy.Parse(file), Time: time.Now()}
}

type peer struct {
	name string
	get  func(fetch.Origin) *fetch.Result
}

func caches(b *testing.B, origins []fetch.Origin, result *fetch.Result) []peer {
	ours, ctx := new(cache.Cache), context.Background()
	src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return result, nil }}
	plain, err := lru.New[fetch.Origin, *fetch.Result](50_000)
	if err != nil {
		b.Fatal(err)
	}
	otters, err := otter.New(&otter.Options[fetch.Origin, *fetch.Result]{MaximumSize: 50_000})
	if err != nil {
		b.Fatal(err)
	}
	expiring, err := otter.New(&otter.Options[fetch.Origin, *fetch.Result]{
		MaximumSize:      50_000,
		ExpiryCalculator: otter.ExpiryWriting[fetch.Origin, *fetch.Result](24 * time.Hour),
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range origins {
		if _, _, err := ours.Get(ctx, o, src); err != nil {
			b.Fatal(err)
		}
		plain.Add(o, result)
		otters.Set(o, result)
		expiring.Set(o, result)
	}
	return []peer{
		{"cache.Get", func(o fetch.Origin) *fetch.Result { r, _, _ := ours.Get(ctx, o, src); return r }},
		{"lru.Get", func(o fetch.Origin) *fetch.Result { r, _ := plain.Get(o); return r }},
		{"otter", func(o fetch.Origin) *fetch.Result { r, _ := otters.GetIfPresent(o); return r }},
		{"otter-expiring", func(o fetch.Origin) *fetch.Result { r, _ := expiring.GetIfPresent(o); return r }},
	}
}

// BenchmarkTimes is a hit beside golang-lru's, in turns. Clock is a read of the monotonic clock
// alone, which a cache of answers that expire cannot do without.
//
//	go test -run XXX -bench Times -benchtime 21x -count 3
func BenchmarkTimes(b *testing.B) {
	const calls = 1 << 18
	for _, n := range []int{1, 10_000} {
		origins, result := originsOf(b, n)
		all := caches(b, origins, result)
		start := time.Now()
		clock := peer{"clock", func(fetch.Origin) *fetch.Result { return hold(result, time.Since(start)) }}
		for _, c := range []peer{all[0], clock} {
			for _, goroutines := range []int{1, 2, 8} {
				side := func(c peer) func() time.Duration {
					return sides.Took(func() {
						share(calls, goroutines, func(i int) {
							if c.get(origins[i%n]) == nil {
								b.Error("a miss")
							}
						})
					})
				}
				b.Run(fmt.Sprintf("origins=%d/goroutines=%d/%s", n, goroutines, c.name), func(b *testing.B) {
					sides.Compare(b, calls, side(c), side(all[1]))
				})
			}
		}
	}
}

// hold returns r unless time runs backwards.
func hold(r *fetch.Result, d time.Duration) *fetch.Result {
	if d < 0 {
		return nil
	}
	return r
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
