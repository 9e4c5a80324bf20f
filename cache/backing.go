package cache

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	callTimeout  = 2 * time.Second // of what a caller waits for; a busy machine takes less, and asks no site twice
	writeTimeout = 5 * time.Second // of one Put
	lockTTL      = 5 * time.Second // how long a lock outlives a process that dies
	storeAgain   = 5 * time.Second // how long callers leave a Store alone that did not answer

	maxCalls             = 64                 // of one kind at a time
	placeWait            = 15 * time.Second   // how long another waits for a place, while none fails
	breakAfter, breakFor = 5, 5 * time.Second // failures in a row, and the pause until the next attempt
)

// errDown is the error of a call that was not made: its part is left alone, or too many are under way. No call failed.
var errDown = errors.New("cache: the store is left alone")

// backing is a Store with bounds on the time and the number of its calls. A part that fails is left alone.
type backing struct {
	store   Store
	locker  Locker       // nil if it has no locks
	running *tasks       // includes what is written behind the callers
	closed  func() error // closes the Store, once

	reads, locks, writes part
	debts                debts
}

func (b *backing) init(store Store, log *slog.Logger, running *tasks) {
	b.store, b.running = store, running
	b.locker, _ = store.(Locker)
	b.reads.init("reading", log)
	b.locks.init("locking", log)
	b.writes.init("writing", log)
	b.debts.owed = make(map[string]*debt)
	b.closed = sync.OnceValue(func() error {
		if c, ok := store.(io.Closer); ok {
			return c.Close()
		}
		return nil
	})
}

// read returns the record of a key and its file, or nil if there is none. An error means that it is not known whether
// there is one. A mark that is owed takes the place of an older record.
func (b *backing) read(ctx context.Context, key string) (rec *record, body []byte, err error) {
	data, found := []byte(nil), false
	err = b.reads.call(ctx, callTimeout, func(ctx context.Context) error {
		v, err := b.store.Get(ctx, key)
		if errors.Is(err, ErrMiss) {
			return nil
		}
		data, found = v, true
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if found {
		if rec, body, err = decodeRecord(key, data); err != nil {
			b.reads.errors.Add(1)
			return nil, nil, err
		}
	}
	if m := b.debts.owes(key); m.Received.After(rec.received()) {
		return m.record(key), nil, nil
	}
	return rec, body, nil
}

// lock tries to take the lock of a key. unlock is nil if another process has it. After an error, going on without the
// lock can only cost a fetch.
func (b *backing) lock(ctx context.Context, key string) (unlock func(), err error) {
	err = b.locks.call(ctx, callTimeout, func(ctx context.Context) error {
		u, ok, err := b.locker.Lock(ctx, key, lockTTL)
		if err == nil && ok {
			unlock = u
		}
		return err
	})
	return unlock, err
}

// put writes a value behind its caller, and then calls unlock. If all places are taken, the caller waits for one. o is
// owed until the value is written; it may be nil.
func (b *backing) put(key string, data []byte, ttl time.Duration, o *debt, unlock func()) {
	ctx := context.Background() // Close waits for it
	if !b.writes.enter(ctx, callTimeout) {
		b.debts.paid(key, o, errDown)
		release(unlock)
		return
	}
	b.running.Go(func() {
		defer release(unlock)
		defer b.writes.leave()
		err := b.writes.do(ctx, writeTimeout, func(ctx context.Context) error { return b.store.Put(ctx, key, data, ttl) })
		if b.debts.paid(key, o, err) {
			b.running.Go(func() { _ = b.pay(ctx) })
		}
	})
}

// part bounds one kind of calls: it has places for those under way, and a breaker. Reading and writing have one each,
// because a replica that lost its master still answers but takes nothing.
type part struct {
	name   string
	log    *slog.Logger
	places chan struct{}
	errors atomic.Uint64 // calls that failed, and damaged values

	mu       sync.Mutex // guards what follows
	failures int        // in a row
	failed   time.Time  // when the latest of them was
	next     time.Time  // when to try again, while it is left alone
}

func (p *part) init(name string, log *slog.Logger) {
	p.name, p.log, p.places = name, log, make(chan struct{}, maxCalls)
}

// call waits for a place, and makes one call there that takes limit at most.
func (p *part) call(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	if !p.allows(time.Now(), false) || !p.enter(ctx, limit) {
		return errDown
	}
	defer p.leave()
	return p.do(ctx, limit, f)
}

// enter waits for a place: for limit, or for up to placeWait if no call fails. To be busy is no failure.
func (p *part) enter(ctx context.Context, limit time.Duration) bool {
	for waited := time.Duration(0); waited < max(limit, placeWait); waited += limit {
		select {
		case p.places <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(limit):
		}
		if p.fails() {
			break
		}
	}
	return false
}

func (p *part) fails() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures > 0
}

func (p *part) leave() { <-p.places }

// do makes one call that takes limit at most. Its caller has a place.
func (p *part) do(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	began := time.Now()
	if !p.allows(began, true) {
		return errDown
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(bounded)
	if ctx.Err() == nil || err == nil { // a call that Close ended counts for nothing
		p.done(began, err)
	}
	return err
}

// allows reports whether to make a call: while the part is left alone, one in five seconds, which this one is if taken.
func (p *part) allows(now time.Time, taken bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	down := p.failures >= breakAfter
	if down && now.Before(p.next) {
		return false
	}
	if down && taken {
		p.next = now.Add(breakFor) // before the call, or others would try too
	}
	return true
}

// done counts the outcome of a call. It logs without the lock: a handler may use the Cache.
func (p *part) done(began time.Time, err error) {
	p.mu.Lock()
	from, now := p.failures, time.Now()
	if err == nil {
		p.failures = 0
	} else {
		if p.errors.Add(1); from < breakAfter && !began.Before(p.failed) { // calls that overlap a failure are part of it
			p.failures++
			p.failed = now
		}
		p.next = now.Add(breakFor)
	}
	to := p.failures
	p.mu.Unlock()
	if from < breakAfter && to == breakAfter {
		p.log.Warn("cache: the store fails and is left alone for now", "part", p.name, "error", err)
	} else if from == breakAfter && to == 0 {
		p.log.Info("cache: the store works again", "part", p.name)
	}
}

func release(unlock func()) {
	if unlock != nil {
		unlock()
	}
}
