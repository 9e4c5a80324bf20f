package backing

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hung is a Store that is silent.
type hung struct{}

func (hung) Get(ctx context.Context, _ string) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
func (hung) Put(ctx context.Context, _ string, _ []byte, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// Values may grow while they wait.
func TestValuesThatReplaceOthersInTheQueueAreCountedToo(t *testing.T) {
	b := New(hung{}, errMiss, time.Second, nil)
	for _, size := range []int{100, 500 << 10} {
		for i := range 1000 {
			b.Put(strconv.Itoa(i), make([]byte, size), time.Hour, 0, func() {})
		}
	}
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	if b.queue.bytes > maxQueueBytes {
		t.Errorf("%d MiB queued, bound %d MiB", b.queue.bytes>>20, maxQueueBytes>>20)
	}
}

// What is called for a value that finds no room may use the queue: its lock is free then.
func TestTheQueueCallsWithoutItsLock(t *testing.T) {
	b, called := New(hung{}, errMiss, time.Second, nil), false
	b.Put("large", make([]byte, maxQueueBytes+1), time.Hour, 0, func() { called = !b.queue.Has("large") })
	if !called {
		t.Error("not called")
	}
}

// slow is a Store that takes a while for each value.
type slow struct{ hung }

func (slow) Put(context.Context, string, []byte, time.Duration) error {
	time.Sleep(10 * time.Millisecond)
	return nil
}

// A Store that is slower than the callers slows them down; none of their values is lost.
func TestACallerWaitsForRoomInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(slow{}, errMiss, time.Second, nil)
		start := time.Now()
		for i := range 10 * maxQueue {
			b.Put(strconv.Itoa(i), make([]byte, 100), time.Hour, time.Second, func() {})
		}
		if took := time.Since(start); b.Drops() != 0 || took < time.Second || took > 2*time.Second {
			t.Errorf("%d values dropped in %v, want none in the time that they take", b.Drops(), took)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A caller waits no longer than it has said, and not at all for a Store that fails.
func TestACallerDoesNotWaitForAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(hung{}, errMiss, time.Second, slog.New(slog.DiscardHandler))
		put := func(i int) time.Duration {
			start := time.Now()
			b.Put(strconv.Itoa(i), make([]byte, 100), time.Hour, 100*time.Millisecond, func() {})
			return time.Since(start)
		}
		const room = maxQueue + maxWriters
		for i := range room {
			if took := put(i); took != 0 {
				t.Fatalf("value %d waits for %v, want room", i, took)
			}
			synctest.Wait()
		}
		if took := put(room); took != 100*time.Millisecond {
			t.Errorf("waits for %v, want 100 ms", took)
		}
		time.Sleep(writeTimeout) // it fails now
		synctest.Wait()
		if b.writes.ready(time.Now()) {
			t.Error("a silent Store is written to after one writeTimeout")
		}
		if took := put(room + 1); took != 0 {
			t.Errorf("waits for %v, want no wait for a Store that fails", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Flush(ctx); err == nil {
			t.Error("Close has lost the values without a word")
		}
		time.Sleep(time.Minute) // let everything end
	})
}

// flaky is a Store that is down, or keeps how many values it took.
type flaky struct {
	hung
	down  atomic.Bool
	taken atomic.Int32
}

func (s *flaky) Put(context.Context, string, []byte, time.Duration) error {
	if s.down.Load() {
		return errors.New("READONLY")
	}
	s.taken.Add(1)
	return nil
}

// That the Store is down is not the fault of the value that it does not take.
func TestAValueOutlivesAnOutageOfTheStore(t *testing.T) {
	for name, again := range map[string]func(b *Backing){
		"refreshed": func(b *Backing) { b.Put("a", []byte("newer"), time.Hour, 0, func() {}) },
		"closed":    func(b *Backing) { _ = b.Close(context.Background()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := new(flaky)
			s.down.Store(true)
			b := New(s, errMiss, time.Second, slog.New(slog.DiscardHandler))
			b.Put("a", []byte("value"), time.Hour, 0, func() {})
			time.Sleep(time.Hour)
			s.down.Store(false)
			time.Sleep(time.Hour)
			if n := s.taken.Load(); n != 0 {
				t.Errorf("%s: %d values taken before", name, n)
			}
			again(b)
			synctest.Wait()
			if s.taken.Load() != 1 || b.Drops() != 0 {
				t.Errorf("%s: %d values taken, %d dropped, want the one taken", name, s.taken.Load(), b.Drops())
			}
		})
	}
}

// Values that the Store refuses take no room from others, and one is refused once for each refresh.
func TestValuesThatFailedGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(flaky)
		b := New(s, errMiss, time.Second, slog.New(slog.DiscardHandler))
		s.down.Store(true)
		for i := range 2 * maxQueue {
			b.Put(strconv.Itoa(i), make([]byte, 100), time.Hour, 0, func() {})
			time.Sleep(breakFor)
		}
		if n := b.Failures(); n != 2*maxQueue {
			t.Errorf("%d failures of %d values", n, 2*maxQueue)
		}
		s.down.Store(false)
		b.Put("new", []byte("value"), time.Hour, 0, func() {})
		synctest.Wait()
		if n, dropped := s.taken.Load(), b.Drops(); n != 1 || dropped != maxQueue+1 {
			t.Errorf("%d values taken, %d given up; want the new one, and %d", n, dropped, maxQueue+1)
		}
	})
}

var errMiss = errors.New("cache: no value")
