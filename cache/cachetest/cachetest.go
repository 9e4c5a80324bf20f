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
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
)

// TestStore tests what cache.Store promises, and what cache.Locker does if the Store
// implements it. Each test calls open for a Store that is empty, or at least has none of
// the keys that the tests use; open may register a cleanup. Run it with -race.
func TestStore(t *testing.T, open func(t *testing.T) cache.Store) {
	for _, c := range claims() {
		t.Run(c.name, func(t *testing.T) {
			store, err := open(t), error(nil)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if locker, locks := store.(cache.Locker); c.ofStore != nil {
				err = c.ofStore(ctx, store)
			} else if locks {
				err = c.ofLocker(ctx, locker)
			} else {
				t.Skip("the store has no locks")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// claim is something to be tested, of a Store or of a Locker.
type claim struct {
	name     string
	ofStore  func(context.Context, cache.Store) error
	ofLocker func(context.Context, cache.Locker) error
}

func claims() []claim {
	return []claim{
		{name: "a key that was never put is a miss", ofStore: missIsMiss},
		{name: "what was put is what is got", ofStore: roundTrip},
		{name: "keys are whatever an origin can be", ofStore: keysAreApart},
		{name: "a put replaces all that was there", ofStore: putReplaces},
		{name: "a put keeps nothing of its argument", ofStore: putCopies},
		{name: "values last as long as they should", ofStore: valuesLast},
		{name: "calls end with their context", ofStore: callsEnd},
		{name: "concurrent calls never see half a value", ofStore: neverTorn},
		{name: "a lock has one holder", ofLocker: lockExcludes},
		{name: "a lock lasts until it is given back", ofLocker: lockLasts},
		{name: "a lock can be given back twice", ofLocker: unlockOnce},
	}
}

const hour = time.Hour

func missIsMiss(ctx context.Context, s cache.Store) error {
	if data, err := s.Get(ctx, "https://never.example"); !errors.Is(err, cache.ErrMiss) {
		return fmt.Errorf("store: Get of a key that was never put: %q, %v; want an error that wraps ErrMiss",
			cut(data), err)
	}
	return nil
}

func roundTrip(ctx context.Context, s cache.Store) error {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, data := range map[string][]byte{
		"one byte": {0}, "every byte": every, "text": []byte("User-agent: *\r\n\n"),
		"MaxValue": bytes.Repeat([]byte("0123456789"), cache.MaxValue/10),
	} {
		if err := s.Put(ctx, "https://a.example", data, hour); err != nil {
			return fmt.Errorf("store: Put of %s: %w", name, err)
		}
		if err := expect(ctx, s, "https://a.example", data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func keysAreApart(ctx context.Context, s cache.Store) error {
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
		if err := s.Put(ctx, key, []byte("of "+key), hour); err != nil {
			return fmt.Errorf("store: Put under %q: %w", key, err)
		}
	}
	for _, key := range keys {
		if err := expect(ctx, s, key, []byte("of "+key)); err != nil {
			return err
		}
	}
	return nil
}

func putReplaces(ctx context.Context, s cache.Store) error {
	for _, data := range []string{"a long value", "short", "a value that is longer"} {
		if err := s.Put(ctx, "https://a.example", []byte(data), hour); err != nil {
			return err
		}
		if err := expect(ctx, s, "https://a.example", []byte(data)); err != nil {
			return err
		}
	}
	return nil
}

func putCopies(ctx context.Context, s cache.Store) error {
	data := []byte("as it was put")
	if err := s.Put(ctx, "https://a.example", data, hour); err != nil {
		return err
	}
	clear(data)
	return expect(ctx, s, "https://a.example", []byte("as it was put"))
}

// valuesLast tests that values are there for half of their ttl. A Store may count in seconds, and
// may forget late or never.
func valuesLast(ctx context.Context, s cache.Store) error {
	const shortest = 4 * time.Second
	ttls := []time.Duration{shortest, time.Minute, hour, 31 * 24 * hour, 100 * 365 * 24 * hour}
	key := func(i int) string { return fmt.Sprintf("https://a%d.example", i) }
	start := time.Now()
	for i, ttl := range ttls {
		key := key(i)
		if err := s.Put(ctx, key, []byte("value"), ttl); err != nil {
			return fmt.Errorf("store: Put with a ttl of %v: %w", ttl, err)
		}
		if err := expect(ctx, s, key, []byte("value")); err != nil {
			return fmt.Errorf("ttl %v: %w", ttl, err)
		}
	}
	time.Sleep(shortest / 2)
	for i, ttl := range ttls {
		err := expect(ctx, s, key(i), []byte("value"))
		if err != nil && time.Since(start) < ttl*3/4 { // else this process was late
			return fmt.Errorf("ttl %v: after %v: %w", ttl, time.Since(start).Round(time.Millisecond), err)
		}
	}
	return nil
}

// callsEnd tests that a call whose context has ended does not wait for anything. It may return
// what it likes.
func callsEnd(_ context.Context, s cache.Store) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = s.Get(ended, "https://a.example")
		_ = s.Put(ended, "https://a.example", []byte("value"), hour)
		if l, ok := s.(cache.Locker); ok {
			if unlock, taken, err := l.Lock(ended, "https://a.example", hour); err == nil && taken {
				unlock()
			}
		}
	}()
	select {
	case <-returned:
		return nil
	case <-time.After(5 * time.Second):
		return errors.New("a call goes on for seconds after its context has ended")
	}
}

func neverTorn(ctx context.Context, s cache.Store) error {
	const size = 50_000
	value := func(n int) []byte { return bytes.Repeat([]byte{byte('a' + n)}, size+n) }
	if err := s.Put(ctx, "https://a.example", value(0), hour); err != nil {
		return err
	}
	errs := make(chan error, 16)
	var calls sync.WaitGroup
	for n := range 8 {
		calls.Go(func() {
			for range 5 {
				if err := s.Put(ctx, "https://a.example", value(n), hour); err != nil {
					errs <- err
					return
				}
			}
		})
		calls.Go(func() {
			for range 10 {
				data, err := s.Get(ctx, "https://a.example")
				if err != nil {
					errs <- err
					return
				}
				if len(data) < size || !bytes.Equal(data, value(len(data)-size)) {
					errs <- fmt.Errorf("a value that was never put: %d bytes, from %q to %q",
						len(data), cut(data), cut(data[max(0, len(data)-20):]))
					return
				}
			}
		})
	}
	calls.Wait()
	close(errs)
	return <-errs
}

func lockExcludes(ctx context.Context, l cache.Locker) error {
	unlock, err := take(ctx, l, "https://a.example", true)
	if err != nil {
		return err
	}
	if _, err := take(ctx, l, "https://a.example", false); err != nil {
		return err
	}
	other, err := take(ctx, l, "https://b.example", true)
	if err != nil {
		return err
	}
	other()
	unlock()
	unlock, err = take(ctx, l, "https://a.example", true)
	if err != nil {
		return fmt.Errorf("after it was given back: %w", err)
	}
	unlock()
	return nil
}

// lockLasts holds a lock for longer than its ttl, which is for holders that died. It cannot
// test that the lock of such a holder lapses: that takes a process to kill. A busy machine may
// renew a lock too late; one that is not renewed lapses with a longer ttl, too.
func lockLasts(ctx context.Context, l cache.Locker) (err error) {
	for _, ttl := range []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second} {
		if err = lockLastsBeyond(ctx, l, ttl); err == nil {
			break
		}
	}
	return err
}

func lockLastsBeyond(ctx context.Context, l cache.Locker, ttl time.Duration) error {
	call, cancel := context.WithCancel(ctx)
	unlock, ok, err := l.Lock(call, "https://a.example", ttl)
	cancel() // the context was for the call
	if !ok || err != nil {
		return fmt.Errorf("store: Lock: %v, %v", ok, err)
	}
	defer unlock()
	for start := time.Now(); time.Since(start) < 2*ttl; time.Sleep(ttl / 10) {
		if _, err := take(ctx, l, "https://a.example", false); err != nil {
			return fmt.Errorf("%v after it was taken with a ttl of %v: %w",
				time.Since(start).Round(time.Millisecond), ttl, err)
		}
	}
	return nil
}

// unlockOnce tests that a lock given back late is not taken from its next holder.
func unlockOnce(ctx context.Context, l cache.Locker) error {
	first, err := take(ctx, l, "https://a.example", true)
	if err != nil {
		return err
	}
	first()
	second, err := take(ctx, l, "https://a.example", true)
	if err != nil {
		return err
	}
	defer second()
	first()
	_, err = take(ctx, l, "https://a.example", false)
	return err
}

func take(ctx context.Context, l cache.Locker, key string, want bool) (func(), error) {
	unlock, ok, err := l.Lock(ctx, key, hour)
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

func expect(ctx context.Context, s cache.Store, key string, want []byte) error {
	got, err := s.Get(ctx, key)
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
