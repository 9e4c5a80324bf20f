// Package cachetest tests implementations of cache.Store, the second level behind the robots.txt results that package
// cache keeps (RFC 9309 §2.4). It does for them what testing/fstest does for file systems.
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

// TestStore tests what cache.Store promises, and what cache.Locker does if the Store implements it. Each test calls
// open for a Store that is empty, or at least has none of the keys that the tests use; open may register a cleanup. Run
// it with -race. It takes eight seconds, because values and locks are to last.
func TestStore(t *testing.T, open func(t *testing.T) cache.Store) {
	for _, c := range claims {
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

var claims = []struct {
	name    string
	ofLocks bool
	test    func(suite)
}{
	{"what was put is what is got", false, suite.roundTrip},
	{"keys are whatever an origin can be", false, suite.keysAreApart},
	{"values last as long as they should", false, suite.valuesLast},
	{"calls end with their context", false, suite.callsEnd},
	{"concurrent calls never see half a value", false, suite.neverTorn},
	{"a lock has one holder", true, suite.lockExcludes},
	{"a lock lasts until it is given back", true, suite.lockLasts},
}

const a, b, hour = "https://a.example", "https://b.example", time.Hour

// roundTrip tests a miss, and then values of all bytes and lengths, each in place of another.
func (s suite) roundTrip() {
	if data, err := s.store.Get(s.ctx, a); !errors.Is(err, cache.ErrMiss) {
		s.fatalf("store: Get of a key that was never put: %q, %v; want an error that wraps ErrMiss", cut(data), err)
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, data := range []string{
		string(every), "\x00", "User-agent: *\r\n\n", strings.Repeat("0123456789", 600<<10/10), "short",
	} {
		s.put(a, data, hour)
		s.expect(a, data)
	}
}

func (s suite) keysAreApart() {
	keys := []string{
		"http://a.example", a, a + ":8443", a + "/", "a.example", "https://[2001:db8::1]:8443", "https://[fe80::1%25eth0]",
		"https://../../etc", "https://*", a + ":lock", "RGC4 " + a + " examplebot signed", "https://A.example",
		"HTTPS://a.example", "RGC4 " + a + " ExampleBot signed", "RGC5 " + a + " examplebot signed",
	}
	for _, c := range []string{"/", ":", ".", "%", " ", "_", "-", "+", "%20", "%2F", ""} { // what names of files are made of
		keys = append(keys, "https://x"+c+"y.example", "https://y.example"+c)
	}
	for _, n := range []int{31, 32, 63, 64, 127, 128, 250, 254, 255, 256, 511, 512, 599, 600, 640} { // what columns and names hold
		keys = append(keys, strings.Repeat("k", n), strings.Repeat("k", n-1)+"l")
	}
	for _, key := range keys {
		s.put(key, "of "+key, hour)
	}
	for _, key := range keys {
		s.expect(key, "of "+key)
	}
}

// valuesLast tests that values are there for half of their ttl. A Store may count in seconds, and may forget late or
// never.
func (s suite) valuesLast() {
	const shortest = 4 * time.Second
	ttls := []time.Duration{shortest, time.Minute, hour, 31 * 24 * hour, 100 * 365 * 24 * hour}
	start := time.Now()
	for _, ttl := range ttls {
		s.put(ttl.String(), "value", ttl)
		s.expect(ttl.String(), "value")
	}
	time.Sleep(shortest / 2)
	for _, ttl := range ttls {
		err := s.compare(ttl.String(), "value")
		if err != nil && time.Since(start) < ttl*3/4 { // else this process was late
			s.fatalf("ttl %v: after %v: %v", ttl, time.Since(start).Round(time.Millisecond), err)
		}
	}
}

// callsEnd tests that a call whose context has ended does not wait for anything. It may return what it likes.
func (s suite) callsEnd() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = s.store.Get(ended, a)
		_ = s.store.Put(ended, a, []byte("value"), hour)
		if s.locker != nil {
			if unlock, taken, err := s.locker.Lock(ended, a, hour); err == nil && taken {
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
	s.put(a, string(value(0)), hour)
	var calls errgroup.Group
	for n := range 8 {
		calls.Go(func() (err error) {
			for i := 0; i < 5 && err == nil; i++ {
				err = s.store.Put(s.ctx, a, value(n), hour)
			}
			return err
		})
		calls.Go(func() error {
			for range 10 {
				data, err := s.store.Get(s.ctx, a)
				if err != nil || len(data) < size || !bytes.Equal(data, value(len(data)-size)) {
					return fmt.Errorf("a value that was never put: %d bytes, %q to %q, %w",
						len(data), cut(data), data[max(0, len(data)-20):], err)
				}
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		s.fatalf("store: Get and Put of many: %v", err)
	}
}

// lockExcludes tests also that a lock that is given back twice is not taken from its next holder.
func (s suite) lockExcludes() {
	first := s.take(a, true, hour)
	s.take(a, false, hour)
	s.take(b, true, hour)()
	first()
	defer s.take(a, true, hour)()
	first()
	s.take(a, false, hour)
}

// lockLasts holds a lock for longer than its ttl, which is for holders that died. It cannot test that the locks
// of those lapse: that takes a process to kill.
func (s suite) lockLasts() {
	const ttl = 4 * time.Second
	unlock := s.take(a, true, ttl)
	defer unlock()
	for start := time.Now(); time.Since(start) < ttl*3/2; time.Sleep(ttl / 10) {
		s.take(a, false, ttl)
	}
}

// take asks for a lock, with a context for that call only, and ends the test unless that gives what is wanted.
func (s suite) take(key string, want bool, ttl time.Duration) (unlock func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	unlock, ok, err := s.locker.Lock(ctx, key, ttl)
	if err != nil || ok != want || ok && unlock == nil {
		s.fatalf("store: Lock of %q with a ttl of %v: taken %v, with a way to give it back %v, %v; want taken %v",
			key, ttl, ok, unlock != nil, err, want)
	}
	return unlock
}

// put puts, and changes its argument when that is done: a Store keeps none.
func (s suite) put(key, value string, ttl time.Duration) {
	data := []byte(value)
	if err := s.store.Put(s.ctx, key, data, ttl); err != nil {
		s.fatalf("store: Put of %d bytes under %.60q with a ttl of %v: %v", len(data), key, ttl, err)
	}
	clear(data)
}

// expect is compare, and ends the test if the value is another.
func (s suite) expect(key, want string) {
	if err := s.compare(key, want); err != nil {
		s.fatalf("%v", err)
	}
}

func (s suite) compare(key, want string) error {
	got, err := s.store.Get(s.ctx, key)
	if err != nil || string(got) != want {
		return fmt.Errorf("store: Get of %.60q after Put: %d bytes %q, %w; want %d bytes %q",
			key, len(got), cut(got), err, len(want), cut([]byte(want)))
	}
	return nil
}

func cut(data []byte) []byte { return data[:min(len(data), 20)] }
