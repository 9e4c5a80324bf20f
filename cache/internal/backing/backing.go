// Package backing is what stands between a Cache and its Store: bounds, a breaker, and what the Store is owed.
package backing

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
	callTimeout  = 2 * time.Second // of what a caller waits for: less, and a busy machine would ask sites twice
	writeTimeout = 5 * time.Second // of one Put
	lockTTL      = 5 * time.Second // how long a lock outlives a process that dies

	maxCalls             = 64                 // of one kind at a time
	placeWait            = 15 * time.Second   // how long another waits for a place, while none fails
	breakAfter, breakFor = 5, 5 * time.Second // failures in a row, and the pause until the next attempt
)

// errDown is the error of a call that was not made: its part is left alone, or too many are under way. No call failed.
var errDown = errors.New("cache: the store is left alone")

// ErrMiss is cache.ErrMiss.
var ErrMiss = errors.New("cache: no value")

// Store is a cache.Store: package cache imports this one.
type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
}

// Locker is a cache.Locker.
type Locker interface {
	Lock(ctx context.Context, key string, ttl time.Duration) (unlock func(), ok bool, err error)
}

// Guard is a Store with bounds on the time and the number of its calls. A part that fails is left alone.
type Guard struct {
	HasLocks bool          // the Store is a cache.Locker
	Close    func() error  // closes the Store, once
	Errors   atomic.Uint64 // calls that failed, and damaged values
	Debts    debts         // marks that the Store is owed

	store  Store
	locker Locker
	run    func(func()) // see New

	reads, locks, writes part
}

// New returns the Guard of a Store. run begins what is done behind the callers.
func New(store Store, log *slog.Logger, run func(func())) *Guard {
	g := &Guard{store: store, run: run}
	g.locker, g.HasLocks = store.(Locker)
	g.reads.init("reading", log, &g.Errors)
	g.locks.init("locking", log, &g.Errors)
	g.writes.init("writing", log, &g.Errors)
	g.Debts.owed = make(map[string]*Debt)
	g.Close = sync.OnceValue(func() error {
		if c, ok := store.(io.Closer); ok {
			return c.Close()
		}
		return nil
	})
	return g
}

// Read returns the record of a key and its file, or nil if there is none. An error means that it is not known whether
// there is one. A mark that is owed takes the place of an older record.
func (g *Guard) Read(ctx context.Context, key string) (rec *Record, body []byte, err error) {
	data, found := []byte(nil), false
	err = g.reads.call(ctx, func(ctx context.Context) error {
		v, err := g.store.Get(ctx, key)
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
		if rec, body, err = decode(key, data); err != nil {
			g.Errors.Add(1)
			return nil, nil, err
		}
	}
	if m := g.Debts.Owes(key); m.Received.After(rec.received()) {
		return m.Record(key), nil, nil
	}
	return rec, body, nil
}

// Lock tries to take the lock of a key. unlock is nil if another process has it. After an error, going on without the
// lock can only cost a fetch.
func (g *Guard) Lock(ctx context.Context, key string) (unlock func(), err error) {
	err = g.locks.call(ctx, func(ctx context.Context) error {
		u, ok, err := g.locker.Lock(ctx, key, lockTTL)
		if err == nil && ok {
			unlock = u
		}
		return err
	})
	return unlock, err
}

// Put writes a value behind its caller, and then calls unlock. If all places are taken, the caller waits for one. o is
// owed until the value is written; it may be nil.
func (g *Guard) Put(key string, data []byte, ttl time.Duration, o *Debt, unlock func()) {
	ctx := context.Background() // Close waits for it
	if unlock == nil {
		unlock = func() {}
	}
	if !g.writes.enter(ctx) {
		g.Debts.paid(key, o, errDown)
		unlock()
		return
	}
	g.run(func() {
		defer unlock()
		defer g.writes.leave()
		err := g.writes.do(ctx, writeTimeout, func(ctx context.Context) error { return g.store.Put(ctx, key, data, ttl) })
		if g.Debts.paid(key, o, err) {
			g.run(func() { _ = g.Pay(ctx) })
		}
	})
}

// part bounds one kind of calls: it has places for those under way, and a breaker. Reading and writing have one each,
// because a replica that lost its master still answers but takes nothing.
type part struct {
	name   string
	log    *slog.Logger
	places chan struct{}
	errors *atomic.Uint64

	mu       sync.Mutex // guards what follows
	failures int        // in a row
	failed   time.Time  // when the latest of them was
	next     time.Time  // when to try again, while it is left alone
}

func (p *part) init(name string, log *slog.Logger, errors *atomic.Uint64) {
	*p = part{name: name, log: log, errors: errors, places: make(chan struct{}, maxCalls)}
}

// call waits for a place, and makes one call there for which a caller waits.
func (p *part) call(ctx context.Context, f func(context.Context) error) error {
	if !p.allows(time.Now(), false) || !p.enter(ctx) {
		return errDown
	}
	defer p.leave()
	return p.do(ctx, callTimeout, f)
}

// enter waits for a place: as long as for a call, or for up to placeWait if none fails. To be busy is no failure.
func (p *part) enter(ctx context.Context) bool {
	for waited := time.Duration(0); waited < placeWait; waited += callTimeout {
		select {
		case p.places <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(callTimeout):
		}
		p.mu.Lock()
		fails := p.failures > 0
		p.mu.Unlock()
		if fails {
			break
		}
	}
	return false
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
		p.errors.Add(1)
		if from < breakAfter && !began.Before(p.failed) { // calls that overlap a failure are part of it
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
