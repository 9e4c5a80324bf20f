package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// memStore is a Store whose calls can be made to misbehave.
type memStore struct {
	before func(ctx context.Context, call string) error // nil: nothing goes wrong

	mu     sync.Mutex
	values map[string][]byte
	calls  map[string]int
}

func (s *memStore) enter(ctx context.Context, call string) error {
	s.mu.Lock()
	if s.calls == nil {
		s.calls, s.values = map[string]int{}, map[string][]byte{}
	}
	s.calls[call]++
	before := s.before
	s.mu.Unlock()
	if before != nil {
		return before(ctx, call)
	}
	return ctx.Err()
}

func (s *memStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.enter(ctx, "Get"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.values[key]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("no %q: %w", key, cache.ErrMiss)
}

func (s *memStore) Put(ctx context.Context, key string, data []byte, _ time.Duration) error {
	if err := s.enter(ctx, "Put"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = bytes.Clone(data)
	return nil
}

func (s *memStore) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.values))
}

// kept counts the values but the marks, which hold no answer.
func (s *memStore) kept() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		if !bytes.Contains(v, []byte(`"rules_until"`)) {
			n++
		}
	}
	return n
}

func (s *memStore) lose(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
}

func (s *memStore) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *memStore) misbehave(before func(context.Context, string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// ask asks for an origin and fails the test for any error.
func ask(t *testing.T, c *cache.Cache, src *cache.Source, raw string) *fetch.Result {
	t.Helper()
	r, _, err := c.Get(t.Context(), origin(t, raw), src)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get asks what a site says.
func get(t *testing.T, c *cache.Cache, s *site, raw string) *fetch.Result {
	t.Helper()
	return ask(t, c, &cache.Source{Load: s.load, Dialect: s.dialect}, raw)
}

func closeCache(t *testing.T, c *cache.Cache) {
	t.Helper()
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// seal puts a value that looks genuine, as another process might have written it.
func (s *memStore) seal(key, meta, file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.calls = map[string][]byte{}, map[string]int{}
	}
	s.values[key] = sealed([]byte(meta), []byte(file))
}

// lockStore has locks, each of which lapses if its holder does not renew it.
type lockStore struct {
	memStore
	locks map[string]time.Time // until when
	dead  bool                 // holders of locks never let go
}

func (s *lockStore) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.locks)
}

func (s *lockStore) Lock(ctx context.Context, key string, ttl time.Duration) (func(), bool, error) {
	if err := s.enter(ctx, "Lock"); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks == nil {
		s.locks = map[string]time.Time{}
	}
	if time.Now().Before(s.locks[key]) {
		return nil, false, nil
	}
	s.locks[key] = time.Now().Add(time.Hour)
	if s.dead {
		s.locks[key] = time.Now().Add(ttl)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.dead {
			delete(s.locks, key)
		}
	}, true, nil
}

// on returns a fault of one call of a Store, or of all.
func on(call string, fault func(context.Context) error) func(context.Context, string) error {
	return func(ctx context.Context, called string) error {
		if called == call || call == "" {
			return fault(ctx)
		}
		return ctx.Err()
	}
}

// then is what the next process over a Store says of a site, and of its answer; it ends with that.
func then(t *testing.T, store cache.Store, answer *fetch.Result) *fetch.Result {
	t.Helper()
	c := &cache.Cache{Store: store, Logger: quiet}
	defer closeCache(t, c)
	return get(t, c, &site{serve: always(answer)}, "https://a.example")
}

func fails(context.Context) error { return errors.New("no connection") }

func late(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// damage flips a byte of each value, or flips it back.
func (s *lockStore) damage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		v[len(v)-1] ^= 1
	}
}
