// Package backing makes a Store harmless: calls are bounded in time and, but for the end of a
// lock, in number; panics stay inside, a part that fails is left alone, and values are written
// behind the callers. It knows nothing of what the bytes mean.
package backing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Store is a cache.Store, and Locker a cache.Locker: package cache imports this one.
type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
}

type Locker interface {
	Lock(ctx context.Context, key string, ttl time.Duration) (unlock func(), ok bool, err error)
}

const (
	maxReads = 32 // at a time; a burst of misses must not look like a slow Store

	// maxShared is how many reads, and as many locks, of a Store with locks run at a time. Many
	// processes wait for each other, and such a Store sends what it is asked at one moment together.
	maxShared = 64

	// LockTTL is how long a lock outlives a process that dies.
	LockTTL = 5 * time.Second
)

// Backing is a Store behind its guards. It is safe for concurrent use.
type Backing struct {
	store    Store
	locker   Locker        // nil: it has no locks
	miss     error         // what its Get says if there is no value
	patience time.Duration // what a Look may take

	reads   breaker
	reading chan struct{} // holds one element for each Get under way
	locks   breaker       // its own: that values are read and written says nothing about locks
	locking chan struct{} // holds one element for each Lock under way
	unlocks sync.WaitGroup
	queue

	closing sync.Once
	closed  chan struct{} // closed when the Store is; nil before closing
	lost    error         // what the Store's Close returned
}

// New returns a Backing of store, whose Looks take as long as patience says. miss is cache.ErrMiss.
func New(store Store, miss error, patience time.Duration, log *slog.Logger) *Backing {
	log = cmp.Or(log, slog.Default())
	b := &Backing{
		store: store, miss: miss, patience: patience,
		reads: breaker{part: "reading", log: log}, reading: make(chan struct{}, maxReads),
		locks: breaker{part: "locking", log: log}, locking: make(chan struct{}, maxShared),
	}
	var shared bool
	if b.locker, shared = store.(Locker); shared {
		b.reading = make(chan struct{}, maxShared)
	}
	b.queue = queue{
		put: store.Put, writes: breaker{part: "writing", log: log}, slots: make(chan struct{}, maxWriters),
		waiting: make(map[string]*write), writing: make(map[string]*write),
	}
	return b
}

// Failures returns how many calls have failed so far.
func (b *Backing) Failures() uint64 {
	return b.reads.errors.Load() + b.locks.errors.Load() + b.writes.errors.Load()
}

// Damaged counts a value that is not one of the caller's.
func (b *Backing) Damaged() { b.reads.errors.Add(1) }

// Close is Flush, and then closes the Store if it is an io.Closer. It waits no longer than
// ctx, and may then be called again. Later calls of the Store fail.
func (b *Backing) Close(ctx context.Context) error {
	if err := b.Flush(ctx); err != nil {
		return err
	}
	// On a goroutine, because a call that hangs must not keep the caller beyond ctx. The next
	// Close waits for the same one.
	b.closing.Do(func() {
		b.closed = make(chan struct{})
		go b.close()
	})
	select {
	case <-b.closed:
		return b.lost
	case <-ctx.Done():
		return fmt.Errorf("cache: the store is not closed yet: %w", ctx.Err())
	}
}

// close takes all slots: then no call is under way, and none can begin. A call that never
// returns keeps the Store open, as a file in use has to be.
func (b *Backing) close() {
	defer close(b.closed)
	for _, slots := range [...]chan struct{}{b.reading, b.locking, b.slots} {
		for range cap(slots) {
			slots <- struct{}{}
		}
	}
	b.unlocks.Wait()
	defer func() {
		if p := recover(); p != nil {
			b.lost = fmt.Errorf("cache: the store panicked: %v", p)
		}
	}()
	if c, ok := b.store.(io.Closer); ok {
		b.lost = c.Close()
	}
}

// Look is a few calls of a Store. They end together, whether or not they heed their context.
// With a Locker, each has its own time, see window.
type Look struct {
	*Backing
	before, end  time.Time
	reads, locks uint64 // how many calls had been answered when it began
}

// Look begins one at now. It ends when the caller's patience does, or at end.
func (b *Backing) Look(now, end time.Time) Look {
	l := Look{b, now.Add(b.patience), end, b.reads.answered.Load(), b.locks.answered.Load()}
	if end.Before(l.before) {
		l.before = end
	}
	return l
}

// Get returns the value of a key, or nil if there is none. An error means that there may be.
func (l Look) Get(key string) ([]byte, error) {
	data, err := during(l, &l.Backing.reads, l.reads, l.reading, func(ctx context.Context) ([]byte, error) {
		data, err := l.store.Get(ctx, key)
		if errors.Is(err, l.miss) {
			return nil, nil
		}
		return data, err
	}, nil)
	if string(data) == void {
		data = nil
	}
	return data, err
}

// Lock tries to take the lock of a key. unlock gives it back behind its caller; it is nil if
// another process has the lock. An error means that there is none to be had: the Store has no
// locks, fails, or is busy. Going on without can only cost a fetch.
func (l Look) Lock(key string) (unlock func(), err error) {
	if l.locker == nil {
		return nil, errDown
	}
	return during(l, &l.Backing.locks, l.locks, l.locking, func(ctx context.Context) (func(), error) {
		unlock, taken, err := l.locker.Lock(ctx, key, LockTTL)
		if !taken || unlock == nil {
			return nil, err
		}
		return func() {
			l.unlocks.Go(func() {
				defer func() { _ = recover() }() // it runs where a panic would end the process
				unlock()
			})
		}, err
	}, func(unlock func()) { // granted after we have left, it would be renewed for ever
		if unlock != nil {
			unlock()
		}
	})
}

// during makes a call of one part of the Store. Too little time for a call is no failure of the
// Store. The error is then ErrBusy, if the Store has locks and has answered any call since its
// count was answers. A Store that has gone silent is not waited for again.
func during[T any](l Look, part *breaker, answers uint64, slots chan struct{},
	f func(context.Context) (T, error), late func(T),
) (v T, err error) {
	now := time.Now()
	w := window{length: l.before.Sub(now), end: l.before}
	if l.locker != nil {
		w = window{length: min(l.patience, l.end.Sub(now)), end: l.end, part: part, seen: answers}
	}
	switch {
	case w.length <= 0: // an earlier call of the Look took it all
		err = ErrBusy
	case !part.allow(now):
		return v, errDown
	default:
		if v, err = within(slots, w, l.patience/2, f, late); !errors.Is(err, ErrBusy) {
			part.done(now, time.Now(), err)
			return v, err
		}
	}
	if l.locker == nil || part.answered.Load() <= answers {
		err = errDown
	}
	return v, err
}
