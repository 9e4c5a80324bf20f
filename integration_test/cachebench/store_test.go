package cachebench

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// BenchmarkStore is the first use of an origin that the Store knows, by a Cache that has just
// been made, beside the Store's own Get. Parse is that Get and then the parser, the least that
// the first use can take. Hand is the same with one flight for all callers, a Store that may
// hang, and an LRU. Redis is the one that $ROBOTSGATE_REDIS names by its URL.
//
//	go test -run XXX -bench Store -benchtime 21x -count 3
func BenchmarkStore(b *testing.B) {
	files, err := dirstore.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	stores := map[string]cache.Store{"files": files}
	if url := os.Getenv("ROBOTSGATE_REDIS"); url != "" {
		if stores["redis"], err = redisstore.Open(url); err != nil {
			b.Fatal(err)
		}
	}
	for name, store := range stores {
		b.Run(name, func(b *testing.B) { benchmarkStore(b, store) })
	}
}

func benchmarkStore(b *testing.B, store cache.Store) {
	const n = 1000
	ctx := context.Background()
	origins, _ := originsOf(b, n)
	files, i := vectors.Corpus(b), 0
	names := slices.Sorted(maps.Keys(files))
	load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		body := files[names[i%len(names)]]
		i++
		return &fetch.Result{StatusCode: 200, Policy: policy.Parse(body), Body: body, Time: time.Now()}, nil
	}
	open := &noting{Store: store, keys: map[string]string{}}
	first := &cache.Cache{Store: open}
	for _, o := range origins {
		if _, _, err := first.Get(ctx, o, &cache.Source{Load: load}); err != nil {
			b.Fatal(err)
		}
	}
	if err := first.Shutdown(ctx); err != nil {
		b.Fatal(err)
	}
	get := func(o fetch.Origin) []byte {
		data, err := store.Get(ctx, open.keys[o.String()])
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	each := func(f func(fetch.Origin)) func() time.Duration {
		return sides.Took(func() {
			for _, o := range origins {
				f(o)
			}
		})
	}
	alone := each(func(o fetch.Origin) { get(o) })
	never := &cache.Source{Load: func(_ context.Context, o fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
		b.Errorf("%v is not in the Store", o)
		return nil, nil
	}}
	b.Run("cache", func(b *testing.B) {
		sides.Compare(b, n, func() time.Duration {
			c := &cache.Cache{Store: open}
			return each(func(o fetch.Origin) { c.Get(ctx, o, never) })()
		}, alone)
	})
	b.Run("parse", func(b *testing.B) {
		sides.Compare(b, n, each(func(o fetch.Origin) { policy.Parse(get(o)) }), alone)
	})
	b.Run("hand", func(b *testing.B) {
		sides.Compare(b, n, func() time.Duration {
			var flights singleflight.Group
			kept, _ := lru.New[fetch.Origin, *policy.Policy](n)
			return each(func(o fetch.Origin) {
				<-flights.DoChan(o.String(), func() (any, error) {
					kept.Add(o, policy.Parse(bounded(store, open.keys[o.String()])))
					return nil, nil
				})
			})()
		}, alone)
	})
}

// noting is a Store whose keys are known by their origin. It is not closed with the first Cache.
type noting struct {
	cache.Store
	mu   sync.Mutex
	keys map[string]string
}

func (s *noting) Put(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	s.mu.Lock()
	s.keys[strings.Fields(key)[1]] = key
	s.mu.Unlock()
	return s.Store.Put(ctx, key, value, ttl)
}

// bounded is the Get of a Store that may hang.
func bounded(store cache.Store, key string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	got := make(chan []byte, 1)
	go func() {
		data, _ := store.Get(ctx, key)
		got <- data
	}()
	select {
	case data := <-got:
		return data
	case <-ctx.Done():
		return nil
	}
}
