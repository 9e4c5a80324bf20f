package cachetest

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// stub is a store in memory, with or without a fault. It shows that the suite can be
// passed, and that it can be failed.
type stub struct {
	fault string

	mu     sync.Mutex
	values map[string][]byte
	locks  map[string]int
	count  int
	never  chan struct{} // what "waits" waits for
}

func (s *stub) key(key string) string {
	switch s.fault {
	case "folds keys":
		return strings.TrimSuffix(key, "/")
	case "folds case":
		return strings.ToLower(key)
	case "cuts keys at 255":
		return key[:min(len(key), 255)]
	case "cuts keys at 600":
		return key[:min(len(key), 600)]
	case "blanks are trimmed":
		return strings.TrimSpace(key)
	case "unescapes":
		return strings.ReplaceAll(key, "%20", " ")
	case "two keys in one file":
		return strings.NewReplacer("/", "_", ":", "_", ".", "_", "%", "_", " ", "_").Replace(key)
	}
	if c, ok := strings.CutPrefix(s.fault, "writes _ for "); ok {
		return strings.ReplaceAll(key, c, "_")
	}
	return key
}

// value is what is kept of one.
func (s *stub) value(data []byte) []byte {
	switch s.fault {
	case "keeps its argument":
		return data
	case "drops zeros":
		data = bytes.Trim(data, "\x00")
	case "text columns":
		data = bytes.ToValidUTF8(data, nil)
	case "cuts values at 64 KiB":
		data = data[:min(len(data), 64<<10)]
	case "cuts values at a line":
		data, _, _ = bytes.Cut(data, []byte("\n"))
	}
	return bytes.Clone(data)
}

func (s *stub) Get(ctx context.Context, key string) ([]byte, error) {
	if s.fault == "waits" {
		<-s.never
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[s.key(key)]
	if !ok && s.fault == "nil for a miss" {
		return nil, nil
	}
	if !ok {
		return nil, cache.ErrMiss
	}
	return v, nil
}

func (s *stub) Put(_ context.Context, key string, data []byte, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == "overflows" && ttl > 50*365*24*time.Hour {
		return nil
	}
	data = s.value(data)
	if old := s.values[key]; s.fault == "overwrites in place" && len(old) > len(data) {
		data = append(data, old[len(data):]...)
	}
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	if s.fault == "tears" {
		s.values[s.key(key)] = data[:len(data)/2]
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	s.values[s.key(key)] = data
	lasts := map[string]time.Duration{
		"10 ms": 10 * time.Millisecond, "ms for s": ttl / 1000, "a third": ttl / 3,
	}
	if d, ok := lasts[strings.TrimPrefix(s.fault, "lasts ")]; ok {
		time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.values, s.key(key))
		})
	}
	return nil
}

func (s *stub) Lock(_ context.Context, key string, ttl time.Duration) (func(), bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[key] != 0 && s.fault != "locks twice" || s.fault == "locks never" {
		return nil, false, nil
	}
	if s.fault == "no way back" {
		return nil, true, nil
	}
	if s.locks == nil {
		s.locks = map[string]int{}
	}
	s.count++
	token := s.count
	s.locks[key] = token
	if s.fault == "locks lapse" {
		time.AfterFunc(ttl, func() { s.unlock(key, token) })
	}
	return func() { s.unlock(key, token) }, true, nil
}

func (s *stub) unlock(key string, token int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.locks[key] == token || s.fault == "unlocks for others") && s.fault != "locks for ever" {
		delete(s.locks, key)
	}
}

// found runs a claim in virtual time, and returns whether it found fault with a store.
func found(t *testing.T, claim func(suite), s *stub) (failed bool) {
	synctest.Test(t, func(t *testing.T) {
		s.never = make(chan struct{})
		defer close(s.never)
		done := make(chan struct{})
		fail := func(string, ...any) {
			failed = true
			runtime.Goexit()
		}
		go func() {
			defer close(done)
			claim(suite{fail, t.Context(), s, s})
		}()
		<-done
	})
	return failed
}

func TestAStoreInMemoryPasses(t *testing.T) {
	for _, claim := range claims {
		if found(t, claim.test, new(stub)) {
			t.Errorf("%q: fault was found with a store that has none", claim.name)
		}
	}
}

// A store without locks passes, too. This waits for what it has in common with others.
func TestTheSuiteOverAStore(t *testing.T) {
	tier.Gate(t)
	TestStore(t, func(*testing.T) cache.Store { return new(stub) })
	TestStore(t, func(*testing.T) cache.Store { return struct{ cache.Store }{new(stub)} })
}

func TestEveryFaultIsFound(t *testing.T) {
	faults := map[string][]string{ // by the claims that find them
		"what was put is what is got": {
			"nil for a miss", "drops zeros", "text columns", "cuts values at 64 KiB", "cuts values at a line",
			"overwrites in place", "keeps its argument",
		},
		"keys are whatever an origin can be": {
			"folds keys", "folds case", "cuts keys at 255", "cuts keys at 600", "blanks are trimmed", "unescapes",
			"two keys in one file", "writes _ for /", "writes _ for :", "writes _ for .", "writes _ for %", "writes _ for  ",
		},
		"values last as long as they should":      {"lasts 10 ms", "lasts ms for s", "lasts a third", "overflows"},
		"calls end with their context":            {"waits"},
		"concurrent calls never see half a value": {"tears"},
		"a lock has one holder":                   {"locks twice", "locks never", "locks for ever", "no way back", "unlocks for others"},
		"a lock lasts until it is given back":     {"locks lapse"},
	}
	for _, claim := range claims {
		for _, fault := range faults[claim.name] {
			if !found(t, claim.test, &stub{fault: fault}) {
				t.Errorf("%q finds nothing where a store %q", claim.name, fault)
			}
		}
		delete(faults, claim.name)
	}
	if len(faults) > 0 {
		t.Errorf("no such claims: %v", faults)
	}
}
