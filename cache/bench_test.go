package cache_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// BenchmarkGet is what the gate pays for every request on a warm cache: one origin over and over, and ten thousand in
// random order, beside what golang-lru's own cache takes for the same origins.
func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		c, s := new(cache.Cache), &site{serve: always(rules("/private"))}
		src, origins := &cache.Source{Load: s.load, Reader: "examplebot"}, make([]fetch.Origin, n)
		bare, err := lru.New[fetch.Origin, *fetch.Result](n)
		if err != nil {
			b.Fatal(err)
		}
		for i := range origins {
			origins[i] = origin(b, fmt.Sprintf("https://www%d.example.com", i))
			r, _, err := c.Get(b.Context(), origins[i], src)
			if err != nil {
				b.Fatal(err)
			}
			bare.Add(origins[i].Clone(), r)
		}
		for _, goroutines := range []int{1, 2, 8} {
			name := fmt.Sprintf("origins=%d/goroutines=%d/", n, goroutines)
			b.Run(name+"cache", func(b *testing.B) {
				b.ReportAllocs()
				each(b, goroutines, func(i int) {
					if r, _, err := c.Get(b.Context(), origins[i%n], src); err != nil || r.Err != nil {
						b.Error(err)
					}
				})
			})
			b.Run(name+"golang-lru", func(b *testing.B) {
				b.ReportAllocs()
				each(b, goroutines, func(i int) {
					if _, ok := bare.Get(origins[i%n]); !ok {
						b.Error("a miss")
					}
				})
			})
		}
	}
}

// each shares b.N calls of f among goroutines.
func each(b *testing.B, goroutines int, f func(i int)) {
	var all sync.WaitGroup
	b.ResetTimer()
	for g := range goroutines {
		all.Go(func() {
			start := rand.IntN(1 << 20)
			for i := g; i < b.N; i += goroutines {
				f(start + i*7919)
			}
		})
	}
	all.Wait()
}
