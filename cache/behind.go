package cache

import (
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
)

// behind writes to a Store without anybody waiting. Its goroutines end when there is
// nothing left to write.
type behind struct {
	store    Store
	failures *watchers
	writes   breaker
	slots    chan struct{} // holds one element for each call of a writer

	mu      sync.Mutex        // guards what follows
	queued  map[string]*write // waiting, by key
	order   []string          // their keys, but for those being written just now
	writing map[string]bool
	bytes   int // of queued
	writers int
	flush   bool // write even if the breaker is open
	dropped uint64
	settled chan struct{} // closed when the last writer ends; nil unless somebody waits for that
}

// write is the latest value of a key that is yet to be written.
type write struct {
	key  string
	data []byte
	ttl  time.Duration
	then []func() // to be called when it is written, or is not going to be soon
}

func (b *behind) init(store Store, log *slog.Logger, failures *watchers) {
	b.store, b.failures = store, failures
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
	b.bytes += len(data) - len(w.data)
	w.data, w.ttl = data, ttl
	w.then = append(w.then, then)
	if b.start(); b.writers == 0 {
		b.giveUp()
	}
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
}

// start sees to it that somebody writes; the lock is held. While the Store is left alone
// nobody does, and there is no timer: the next put after that starts again.
func (b *behind) start() {
	for b.writers < min(maxWriters, len(b.order)) && (b.flush || b.writes.ready()) {
		b.writers++
		go b.write()
	}
}

// write writes until nothing is left, or the Store is to be left alone.
func (b *behind) write() {
	for w := b.take(); w != nil; w = b.take() {
		_, err := within(b.slots, writeTimeout, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, b.store.Put(ctx, w.key, w.data, w.ttl)
		}, nil)
		b.failures.tell("put", w.key, err)
		b.writes.record(err)
		for _, then := range w.then {
			then()
		}
		b.done(w.key)
	}
}

// take returns the next write; nil if the writer is to end.
func (b *behind) take() *write {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.order) == 0 || !b.flush && !b.writes.allow() {
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

func (b *behind) done(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.writing, key)
	if b.queued[key] != nil {
		b.order = append(b.order, key)
	}
}

// close writes what is queued, trying each value once, and waits no longer than ctx.
func (b *behind) close(ctx context.Context) error {
	b.mu.Lock()
	b.flush = true
	b.start()
	settled := make(chan struct{})
	if b.writers == 0 {
		close(settled)
	} else {
		b.settled = settled
	}
	b.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		missing := len(b.queued) + len(b.writing)
		b.giveUp()
		b.order, b.bytes = nil, 0 // the writers end with what they have
		clear(b.queued)
		return fmt.Errorf("cache: %d values are not in the store: %w", missing, ctx.Err())
	}
}

// has reports whether a value of the key is yet to be written.
func (b *behind) has(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued[key] != nil || b.writing[key]
}

// lost is how many values were not written, because too many waited.
func (b *behind) lost() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}
