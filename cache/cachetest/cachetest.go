// Package cachetest tests implementations of cache.Store, the second level behind the
// robots.txt results that package cache keeps (RFC 9309 §2.4). It does for them what
// testing/fstest does for file systems.
package cachetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/robotsgate/robotsgate/cache"
)

// TestStore tests what cache.Store promises, and what cache.Locker does if the Store
// implements it. Each test calls open for a Store that is empty, or at least has none of
// the keys that the tests use; open may register a cleanup. Run it with -race.
func TestStore(t *testing.T, open func(t *testing.T) cache.Store) {
	for _, c := range claims() {
		t.Run(c.name, func(t *testing.T) {
			store := open(t)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			locker, locks := store.(cache.Locker)
			if c.ofLocks && !locks {
				t.Skip("the store has no locks")
			}
			c.test(suite{t.Fatalf, ctx, store, locker})
		})
	}
}

// suite is what a claim is tested with.
type suite struct {
	fatalf func(format string, args ...any) // ends the test
	ctx    context.Context
	store  cache.Store
	locker cache.Locker // nil: the store has no locks
}

type claim struct {
	name    string
	ofLocks bool
	test    func(suite)
}

func claims() []claim {
	return []claim{
		{"a key that was never put is a miss", false, suite.missIsMiss},
		{"what was put is what is got", false, suite.roundTrip},
		{"keys are whatever an origin can be", false, suite.keysAreApart},
		{"a put replaces all that was there", false, suite.putReplaces},
		{"a put keeps nothing of its argument", false, suite.putCopies},
		{"values last as long as they should", false, suite.valuesLast},
		{"calls end with their context", false, suite.callsEnd},
		{"concurrent calls never see half a value", false, suite.neverTorn},
		{"a lock has one holder", true, suite.lockExcludes},
		{"a lock lasts until it is given back", true, suite.lockLasts},
		{"a lock can be given back twice", true, suite.unlockOnce},
	}
}

const hour = time.Hour

func (s suite) missIsMiss() {
	if data, err := s.store.Get(s.ctx, "https://never.example"); !errors.Is(err, cache.ErrMiss) {
		s.fatalf("store: Get of a key that was never put: %q, %v; want an error that wraps ErrMiss", cut(data), err)
	}
}

func (s suite) roundTrip() {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, data := range [][]byte{
		{0}, every, []byte("User-agent: *\r\n\n"), bytes.Repeat([]byte("0123456789"), cache.MaxValue/10),
	} {
		s.put("https://a.example", data, hour)
		s.expect("https://a.example", data)
	}
}

func (s suite) keysAreApart() {
	keys := []string{
		"http://a.example", "https://a.example", "https://a.example:8443", "https://a.example/", "a.example",
		"https://[2001:db8::1]:8443", "https://[fe80::1%25eth0]", "https://b.example via 192.0.2.1:8080",
		"https://../../etc", "https://*", "https://a.example:lock", "RGC4 https://a.example signed as 00ff",
		"https://A.example", "HTTPS://a.example", "RGC4 https://a.example signed as 00FF",
	}
	for _, c := range []string{"/", ":", ".", "%", " ", "_", "-", "+", "%20", "%2F", ""} { // what names of files are made of
		keys = append(keys, "https://x"+c+"y.example", "https://y.example"+c)
	}
	for _, n := range []int{31, 32, 63, 64, 127, 128, 250, 254, 255, 256, 511, 512, 599, 600, 640} { // what columns and names hold
		keys = append(keys, strings.Repeat("k", n), strings.Repeat("k", n-1)+"l")
	}
	for _, key := range keys {
		s.put(key, []byte("of "+key), hour)
	}
	for _, key := range keys {
		s.expect(key, []byte("of "+key))
	}
}

func (s suite) putReplaces() {
	for _, data := range []string{"a long value", "short", "a value that is longer"} {
		s.put("https://a.example", []byte(data), hour)
		s.expect("https://a.example", []byte(data))
	}
}

func (s suite) putCopies() {
	data := []byte("as it was put")
	s.put("https://a.example", data, hour)
	clear(data)
	s.expect("https://a.example", []byte("as it was put"))
}

// valuesLast tests that values are there for half of their ttl. A Store may count in seconds, and
// may forget late or never.
func (s suite) valuesLast() {
	const shortest = 4 * time.Second
	ttls := []time.Duration{shortest, time.Minute, hour, 31 * 24 * hour, 100 * 365 * 24 * hour}
	key := func(i int) string { return fmt.Sprintf("https://a%d.example", i) }
	start := time.Now()
	for i, ttl := range ttls {
		s.put(key(i), []byte("value"), ttl)
		s.expect(key(i), []byte("value"))
	}
	time.Sleep(shortest / 2)
	for i, ttl := range ttls {
		err := s.compare(key(i), []byte("value"))
		if err != nil && time.Since(start) < ttl*3/4 { // else this process was late
			s.fatalf("ttl %v: after %v: %v", ttl, time.Since(start).Round(time.Millisecond), err)
		}
	}
}

// callsEnd tests that a call whose context has ended does not wait for anything. It may return
// what it likes.
func (s suite) callsEnd() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = s.store.Get(ended, "https://a.example")
		_ = s.store.Put(ended, "https://a.example", []byte("value"), hour)
		if s.locker != nil {
			if unlock, taken, err := s.locker.Lock(ended, "https://a.example", hour); err == nil && taken {
				unlock()
			}
		}
	}()
	select {
	case <-returned:
	case <-time.After(5 * time.Second):
		s.fatalf("a call goes on for seconds after its context has ended")
	}
}

func (s suite) neverTorn() {
	const size = 50_000
	value := func(n int) []byte { return bytes.Repeat([]byte{byte('a' + n)}, size+n) }
	s.put("https://a.example", value(0), hour)
	var calls errgroup.Group
	for n := range 8 {
		calls.Go(func() error {
			for range 5 {
				if err := s.store.Put(s.ctx, "https://a.example", value(n), hour); err != nil {
					return err
				}
			}
			return nil
		})
		calls.Go(func() error {
			for range 10 {
				data, err := s.store.Get(s.ctx, "https://a.example")
				if err != nil {
					return err
				}
				if len(data) < size || !bytes.Equal(data, value(len(data)-size)) {
					return fmt.Errorf("a value that was never put: %d bytes, from %q to %q",
						len(data), cut(data), cut(data[max(0, len(data)-20):]))
				}
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		s.fatalf("%v", err)
	}
}

func (s suite) lockExcludes() {
	unlock := s.take("https://a.example", true)
	s.take("https://a.example", false)
	s.take("https://b.example", true)()
	unlock()
	s.take("https://a.example", true)()
}

// lockLasts holds a lock for longer than its ttl, which is for holders that died. It cannot
// test that the lock of such a holder lapses: that takes a process to kill. A busy machine may
// renew a lock too late; one that is not renewed lapses with a longer ttl, too.
func (s suite) lockLasts() {
	var err error
	for _, ttl := range []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second} {
		if err = s.lockLastsBeyond(ttl); err == nil {
			return
		}
	}
	s.fatalf("%v", err)
}

func (s suite) lockLastsBeyond(ttl time.Duration) error {
	call, cancel := context.WithCancel(s.ctx)
	unlock, ok, err := s.locker.Lock(call, "https://a.example", ttl)
	cancel() // the context was for the call
	if !ok || err != nil {
		return fmt.Errorf("store: Lock: %v, %v", ok, err)
	}
	defer unlock()
	for start := time.Now(); time.Since(start) < 2*ttl; time.Sleep(ttl / 10) {
		if _, err := s.lock("https://a.example", false); err != nil {
			return fmt.Errorf("%v after it was taken with a ttl of %v: %w",
				time.Since(start).Round(time.Millisecond), ttl, err)
		}
	}
	return nil
}

// unlockOnce tests that a lock given back late is not taken from its next holder.
func (s suite) unlockOnce() {
	first := s.take("https://a.example", true)
	first()
	defer s.take("https://a.example", true)()
	first()
	s.take("https://a.example", false)
}

// take is lock, and ends the test if that is wrong.
func (s suite) take(key string, want bool) (unlock func()) {
	unlock, err := s.lock(key, want)
	if err != nil {
		s.fatalf("%v", err)
	}
	return unlock
}

// lock asks for a lock, and returns an error unless that gives what is wanted.
func (s suite) lock(key string, want bool) (func(), error) {
	unlock, ok, err := s.locker.Lock(s.ctx, key, hour)
	switch {
	case err != nil:
		return nil, fmt.Errorf("store: Lock of %q: %w", key, err)
	case ok != want:
		return nil, fmt.Errorf("store: Lock of %q: taken %v, want %v", key, ok, want)
	case ok && unlock == nil:
		return nil, fmt.Errorf("store: Lock of %q: taken without a way to give it back", key)
	}
	return unlock, nil
}

func (s suite) put(key string, data []byte, ttl time.Duration) {
	if err := s.store.Put(s.ctx, key, data, ttl); err != nil {
		s.fatalf("store: Put of %d bytes under %q with a ttl of %v: %v", len(data), key, ttl, err)
	}
}

// expect is compare, and ends the test if the value is another.
func (s suite) expect(key string, want []byte) {
	if err := s.compare(key, want); err != nil {
		s.fatalf("%v", err)
	}
}

func (s suite) compare(key string, want []byte) error {
	got, err := s.store.Get(s.ctx, key)
	if err != nil {
		return fmt.Errorf("store: Get of %.60q after Put: %w", key, err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("store: Get of %.60q: %d bytes %q, want %d bytes %q",
			key, len(got), cut(got), len(want), cut(want))
	}
	return nil
}

func cut(data []byte) []byte { return data[:min(len(data), 20)] }
