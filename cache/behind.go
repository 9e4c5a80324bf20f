package cache

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	maxQueue      = 1024
	maxQueueBytes = 32 << 20 // as a thousand files of 500 KiB would be too much
	maxWriters    = 16       // a Store that commits in groups wants company
	maxTries      = 8        // of a value that a Store refuses
)

// behind writes to a Store without anybody waiting. Its goroutines end when there is
// nothing left to write.
type behind struct {
	store  Store
	writes breaker
	slots  chan struct{} // holds one element for each call of a writer

	mu      sync.Mutex        // guards what follows
	queued  map[string]*write // waiting, by key
	order   []string          // keys of those that are due
	later   []string          // keys of those that failed, until the next timer
	timer   bool              // one is set
	writing map[string]bool
	bytes   int // of queued
	writers int
	flush   bool // closed: write even if the breaker is open, each value once
	stopped bool // closed, and none of that is under way: write nothing
	dropped uint64
	cause   error         // why a value could not be written since flush
	settled chan struct{} // closed when the last writer ends; nil unless somebody waits for that
}

// write is the latest value of a key that is yet to be written.
type write struct {
	key   string
	data  []byte
	ttl   time.Duration
	then  []func() // to be called when it is written, or is not going to be soon
	tries int      // that failed although the Store was well
}

func (b *behind) init(store Store, log *slog.Logger) {
	b.store = store
	b.writes.init("writing", log)
	b.slots = make(chan struct{}, maxWriters)
	b.queued = make(map[string]*write)
	b.writing = make(map[string]bool)
}

// put queues a value. One of the same key that still waits gives way to it: only the
// latest matters.
func (b *behind) put(key string, data []byte, ttl time.Duration, then func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.queued[key]
	if w == nil {
		if len(b.queued) >= maxQueue || b.bytes+len(data) > maxQueueBytes {
			// The new one, not the oldest: what waits longest is due next.
			b.dropped++
			go then()
			return
		}
		w = &write{key: key}
		b.queued[key] = w
		if !b.writing[key] { // else it follows the one being written, so that none overtakes another
			b.order = append(b.order, key)
		}
	}
	if b.bytes+len(data)-len(w.data) > maxQueueBytes {
		data, ttl = []byte(tombstone), time.Minute // what it replaces is out of date, too
		b.dropped++
	}
	b.bytes += len(data) - len(w.data)
	w.data, w.ttl, w.tries = data, ttl, 0
	w.then = append(w.then, then)
	if b.start(); b.writers == 0 {
		b.giveUp()
	}
}

// again sees to it that what waits is tried again in a while, with no put to start it: it
// would be lost with the process. The lock is held.
func (b *behind) again() {
	if b.timer || b.flush || len(b.queued) == 0 {
		return
	}
	b.timer = true
	time.AfterFunc(breakFor, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.timer = false; b.flush {
			return
		}
		b.order, b.later = append(b.order, b.later...), nil
		if b.start(); b.writers == 0 {
			b.again()
		}
	})
}

// giveUp calls what was to be called after the writes that wait, because it may be long
// until they are made; the lock is held.
func (b *behind) giveUp() {
	var all []func()
	for _, w := range b.queued {
		all = append(all, w.then...)
		w.then = nil
	}
	if len(all) > 0 {
		go func() {
			for _, then := range all {
				then()
			}
		}()
	}
	b.again()
}

// start sees to it that somebody writes, unless the Store is left alone; the lock is held.
func (b *behind) start() {
	for !b.stopped && b.writers < min(maxWriters, len(b.order)) && (b.flush || b.writes.ready()) {
		b.writers++
		go b.write()
	}
}

// write writes until nothing is left, or the Store is to be left alone.
func (b *behind) write() {
	for w := b.take(); w != nil; w = b.take() {
		_, err := within(b.slots, writeTimeout, 0, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, b.store.Put(ctx, w.key, w.data, w.ttl)
		}, nil)
		b.writes.record(err)
		for _, then := range w.then {
			then()
		}
		b.done(w, err)
	}
}

// take returns the next write; nil if the writer is to end.
func (b *behind) take() *write {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.order) == 0 || b.stopped || !b.flush && !b.writes.allow() {
		if b.writers--; b.writers == 0 {
			b.giveUp()
			if b.settled != nil {
				close(b.settled)
				b.settled = nil
			}
		}
		return nil
	}
	key := b.order[0]
	b.order = b.order[1:]
	w := b.queued[key]
	delete(b.queued, key)
	b.bytes -= len(w.data)
	b.writing[key] = true
	return w
}

// done takes note of a write's outcome. What failed waits for another try, unless there is
// something newer. While the Store is left alone a failure says nothing about the value;
// but one that the Store goes on refusing is given up, not to be tried for ever.
func (b *behind) done(w *write, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.writing, w.key)
	if b.queued[w.key] != nil {
		b.order = append(b.order, w.key)
		return
	}
	switch {
	case err == nil:
		return
	case b.flush:
		b.cause = err
	case b.writes.ready():
		w.tries++
	}
	if !b.flush && (w.tries >= maxTries || len(b.queued) >= maxQueue || b.bytes+len(w.data) > maxQueueBytes) {
		b.dropped++
		return
	}
	w.then = nil
	b.queued[w.key] = w
	b.bytes += len(w.data)
	if !b.flush {
		b.later = append(b.later, w.key)
		b.again()
	}
}

// close writes what is queued, trying each value once, and waits no longer than ctx. What is
// not written then stays queued for another close, and the error says how much that is.
func (b *behind) close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flush, b.stopped, b.cause = true, false, nil
	b.order, b.later = nil, nil
	for key := range b.queued {
		if !b.writing[key] { // else it follows the one being written
			b.order = append(b.order, key)
		}
	}
	b.start()
	if b.writers > 0 {
		settled := make(chan struct{})
		b.settled = settled
		b.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	b.stopped, b.settled = true, nil
	b.giveUp()
	missing := len(b.queued)
	for key := range b.writing {
		if b.queued[key] == nil {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	return fmt.Errorf("cache: %d values are not in the store: %w", missing, cmp.Or(ctx.Err(), b.cause, errStoreDown))
}

// has reports whether a value of the key is yet to be written.
func (b *behind) has(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued[key] != nil || b.writing[key]
}

// lost is how many values were given up, because too many waited or the Store refused them.
func (b *behind) lost() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}
