package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/policy"
)

// openStore opens what --cache names: a Redis server by its URL, else a file. The store
// is nil for "". The other store is the same, if it is a file; a connection to Redis
// needs no closing, it ends with the process.
//
// What a store holds was read in one dialect, so each has keys of its own; those of
// RFC9309 are the ones that programs use.
func openStore(at string, d policy.Dialect) (cache.Store, *fileStore, error) {
	prefix := ""
	if d != policy.RFC9309 {
		prefix = dialectName(d) + ":"
	}
	switch {
	case at == "":
		return nil, nil, nil
	case strings.HasPrefix(at, "redis://"), strings.HasPrefix(at, "rediss://"):
		s, err := redisstore.Open(at)
		if err != nil {
			return nil, nil, usageError{err}
		}
		if prefix != "" {
			s.Prefix = "robotsgate:" + prefix
		}
		return s, nil, nil
	case strings.Contains(at, "://"):
		return nil, nil, usagef("--cache is a FILE or redis://HOST:PORT, and %q is neither", at)
	}
	s, err := boltstore.Open(at)
	if err != nil {
		return nil, nil, err
	}
	f := &fileStore{Store: s, prefix: prefix, slots: make(chan struct{}, maxWrites)}
	return f, f, nil
}

// maxWrites is how many values a fileStore writes at a time.
const maxWrites = 128

// fileStore writes many values at a time to a boltstore.Store, which commits them
// together: a commit takes milliseconds, and origins answer faster than that. A Cache
// by itself puts 16 at a time, and drops what it cannot keep up with.
type fileStore struct {
	*boltstore.Store
	prefix string
	slots  chan struct{} // one element for each value being written

	writing sync.WaitGroup
	mu      sync.Mutex
	failed  error // the first
}

func (f *fileStore) Get(ctx context.Context, key string) ([]byte, error) {
	return f.Store.Get(ctx, f.prefix+key)
}

// Put returns before the value is written; Close waits for that. A run puts a key once,
// so that no value can overtake another.
func (f *fileStore) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	data = bytes.Clone(data)
	f.writing.Go(func() {
		defer func() { <-f.slots }()
		if err := f.Store.Put(context.WithoutCancel(ctx), f.prefix+key, data, ttl); err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.failed = cmp.Or(f.failed, err)
		}
	})
	return nil
}

// wait waits for a slot.
func (f *fileStore) wait(ctx context.Context) error {
	select {
	case f.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// room waits until a value could be put, so that nothing is fetched that cannot be kept.
func (f *fileStore) room(ctx context.Context) {
	if f.wait(ctx) == nil {
		<-f.slots
	}
}

// Close ends when all values are written. The cache that puts them must be closed.
func (f *fileStore) Close() error {
	f.writing.Wait()
	return errors.Join(f.failed, f.Store.Close())
}
