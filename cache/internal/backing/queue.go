package backing

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	maxQueue      = 1024
	maxQueueBytes = 32 << 20 // as a thousand files of 500 KiB would be too much
	maxWriters    = 64       // a Store that commits in groups wants company
	writeTimeout  = 5 * time.Second

	// void replaces a value that was taken back. It reads as no value, until the Store has
	// forgotten it, too.
	void    = "void"
	voidTTL = time.Minute
)

// queue writes to a Store behind the callers, each value once. A value that could not be written
// is kept for its next refresh, and for Close. Its goroutines end when there is nothing left to
// write: 80 seconds after the last Put, if each of maxQueue values takes its writeTimeout.
type queue struct {
	put    func(ctx context.Context, key string, data []byte, ttl time.Duration) error // the Store's
	writes breaker
	slots  chan struct{} // holds one element for each call of a writer

	mu       sync.Mutex        // guards what follows
	waiting  map[string]*write // by key
	due      []string          // keys of the waiting that no failure holds back
	writing  map[string]*write // in the hands of writers
	bytes    int               // of all values
	writers  int
	flushing bool // closed: write even if the breaker is open, each value once
	stopped  bool // closed, and none of that is under way: write nothing
	dropped  uint64
	cause    error         // why a value could not be written since
	room     chan struct{} // closed when there may be room; nil unless a put waits for it
	settled  chan struct{} // closed when the last writer ends; nil unless a Flush waits for it
	over     []func()      // what unlock calls
}

// write is the latest value of a key that is yet to be written.
type write struct {
	key    string
	data   []byte
	ttl    time.Duration
	then   []func() // to be called when it is written, or will not be soon: see over
	failed bool     // not due before it is refreshed, or the queue flushed
}

// Put writes a value behind the caller, or if data is nil, takes back the one that is there. One
// of the same key that still waits gives way to it: only the latest matters. It waits for room no
// longer than wait; without room the value is dropped. It calls then once,
// when the value is written, or will not be soon.
func (q *queue) Put(key string, data []byte, ttl, wait time.Duration, then func()) {
	if data == nil {
		data, ttl = []byte(void), voidTTL // a Store has no Delete
	}
	room := q.add(key, data, ttl, then, wait <= 0)
	if room == nil {
		return
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	for over := false; room != nil; room = q.add(key, data, ttl, then, over) {
		select {
		case <-room:
		case <-enough.C:
			over = true
		}
	}
}

// add takes a value in. Without room for it, it returns a channel that is closed when there may
// be some. If the wait for that is over, or no room would come in time, the value is dropped.
func (q *queue) add(key string, data []byte, ttl time.Duration, then func(), over bool) (room <-chan struct{}) {
	q.mu.Lock()
	defer q.unlock()
	if q.makeRoom(key, len(data)); !q.fits(key, len(data)) {
		// Without a writer, or with a Store that fails, no room would come in time.
		if !over && q.writers > 0 && q.writes.ready(time.Now()) {
			if q.room == nil {
				q.room = make(chan struct{})
			}
			return q.room
		}
		q.dropped++
		if q.waiting[key] == nil {
			// The new value gives way, not the oldest: what waits longest is due next.
			q.over = append(q.over, then)
			return nil
		}
		data, ttl = []byte(void), voidTTL // what it replaces is out of date, too
	}
	w := q.waiting[key]
	if w == nil {
		w = &write{key: key, failed: true}
		q.waiting[key] = w
	}
	if w.failed {
		q.ready(w)
	}
	q.bytes += len(data) - len(w.data)
	w.data, w.ttl = data, ttl
	w.then = append(w.then, then)
	if q.start(); q.writers == 0 {
		q.giveUp()
	}
	return nil
}

// ready makes a write due; the lock is held. While another value of its key is being written
// it is not, or it might be overtaken.
func (q *queue) ready(w *write) {
	if w.failed = false; q.writing[w.key] == nil {
		q.due = append(q.due, w.key)
	}
}

// makeRoom gives up values that have failed, for one that has not; the lock is held.
func (q *queue) makeRoom(key string, size int) {
	for other, w := range q.waiting {
		if q.fits(key, size) {
			return
		}
		if w.failed && other != key {
			delete(q.waiting, other)
			q.bytes -= len(w.data)
			q.dropped++
		}
	}
}

// fits reports whether there is room for a value; the lock is held.
func (q *queue) fits(key string, size int) bool {
	w := q.waiting[key]
	if w == nil {
		return len(q.waiting) < maxQueue && q.bytes+size <= maxQueueBytes
	}
	return q.bytes+size-len(w.data) <= maxQueueBytes
}

// roomy wakes the puts that wait for room; the lock is held.
func (q *queue) roomy() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// giveUp has unlock call what was to be called after the writes that wait, since they may wait
// for long; the lock is held.
func (q *queue) giveUp() {
	for _, w := range q.waiting {
		q.over, w.then = append(q.over, w.then...), nil
	}
	q.roomy()
}

// unlock gives the lock back, and then calls what others wait for.
func (q *queue) unlock() {
	over := q.over
	q.over = nil
	q.mu.Unlock()
	for _, then := range over {
		then()
	}
}

// start sees to it that what is due is written, unless the Store is left alone; the lock is
// held.
func (q *queue) start() {
	for !q.stopped && q.writers < min(maxWriters, len(q.due)) && (q.flushing || q.writes.ready(time.Now())) {
		q.writers++
		go q.write()
	}
}

// write writes until nothing is due, or the Store is to be left alone.
func (q *queue) write() {
	for {
		now := time.Now()
		w := q.take(now)
		if w == nil {
			return
		}
		limit := window{length: writeTimeout, end: now.Add(writeTimeout)}
		_, err := within(q.slots, limit, 0, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, q.put(ctx, w.key, w.data, w.ttl)
		}, nil)
		// Each failure counts, even if others began with it: a silent Store is left alone after one
		// writeTimeout, not after five of them.
		ended := time.Now()
		q.writes.done(ended, ended, err)
		for _, then := range w.then {
			then()
		}
		q.done(w, err)
	}
}

// take returns the next write; nil if the writer is to end.
func (q *queue) take(now time.Time) *write {
	q.mu.Lock()
	defer q.unlock()
	if len(q.due) == 0 || q.stopped || !q.flushing && !q.writes.allow(now) {
		if q.writers--; q.writers == 0 {
			q.giveUp()
			if q.settled != nil {
				close(q.settled)
				q.settled = nil
			}
		}
		return nil
	}
	w := q.waiting[q.due[0]]
	q.due = q.due[1:]
	delete(q.waiting, w.key)
	q.writing[w.key] = w
	q.roomy()
	return w
}

// done takes note of a write's outcome. A value that failed is kept, unless there is a newer one.
func (q *queue) done(w *write, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.roomy()
	delete(q.writing, w.key)
	q.bytes -= len(w.data)
	switch newer := q.waiting[w.key]; {
	case newer != nil: // so it does not matter how this one fared
		q.ready(newer)
	case err == nil:
	case !q.flushing && !q.fits(w.key, len(w.data)):
		q.dropped++
	default:
		q.cause = err
		w.then, w.failed = nil, true
		q.waiting[w.key] = w
		q.bytes += len(w.data)
	}
}

// Flush writes what is queued, trying each value once, and waits no longer than ctx. What is
// not written then stays queued for another Flush; the error says how much that is.
func (q *queue) Flush(ctx context.Context) error {
	select {
	case <-q.flush():
	case <-ctx.Done():
	}
	missing, cause := q.stop()
	values := fmt.Sprint(missing, " values are")
	switch missing {
	case 0:
		return nil
	case 1:
		values = "1 value is"
	}
	return fmt.Errorf("cache: %s not in the store: %w", values, cmp.Or(ctx.Err(), cause, errDown))
}

// flush makes all that waits due, once: what has failed, and what was due before. The channel is
// closed when all of it was tried.
func (q *queue) flush() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flushing, q.stopped, q.cause, q.due = true, false, nil, nil
	for _, w := range q.waiting {
		q.ready(w)
	}
	settled := make(chan struct{})
	if q.start(); q.writers == 0 {
		close(settled)
		return settled
	}
	q.settled = settled
	return settled
}

// stop lets nothing more be written, and returns how many values are not, and the last error.
func (q *queue) stop() (missing int, cause error) {
	q.mu.Lock()
	defer q.unlock()
	q.stopped, q.settled = true, nil
	q.giveUp()
	missing = len(q.waiting)
	for key := range q.writing {
		if q.waiting[key] == nil {
			missing++
		}
	}
	return missing, q.cause
}

// Has reports whether a value of the key is yet to be written.
func (q *queue) Has(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[key] != nil || q.writing[key] != nil
}

// Drops returns how many values were given up because too many waited.
func (q *queue) Drops() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
