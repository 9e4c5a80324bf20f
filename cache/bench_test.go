package cache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// BenchmarkGet is what the gate pays for every request on a warm cache: one origin over
// and over, and ten thousand in random order.
func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		c, s := new(cache.Cache), &site{serve: always(rules("/private"))}
		src, origins := &cache.Source{Load: s.load}, make([]fetch.Origin, n)
		for i := range origins {
			origins[i] = origin(b, fmt.Sprintf("https://www%d.example.com", i))
			if _, _, err := c.Get(b.Context(), origins[i], src); err != nil {
				b.Fatal(err)
			}
		}
		for _, goroutines := range []int{1, 2, 8} {
			b.Run(fmt.Sprintf("origins=%d/goroutines=%d", n, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				each(b, goroutines, func(i int) {
					if r, _, err := c.Get(b.Context(), origins[i%n], src); err != nil || r.Err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}

// each shares b.N calls of f among goroutines.
func each(b *testing.B, goroutines int, f func(i int)) {
	done := make(chan struct{})
	b.ResetTimer()
	for g := range goroutines {
		go func() {
			start := rand.IntN(1 << 20)
			for i := range b.N/goroutines + (b.N%goroutines+goroutines-1-g)/goroutines {
				f(start + i*7919)
			}
			done <- struct{}{}
		}()
	}
	for range goroutines {
		<-done
	}
}
