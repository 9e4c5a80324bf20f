package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

const (
	readTimeout  = 100 * time.Millisecond // default of Cache.StoreTimeout
	writeTimeout = 5 * time.Second        // what it may cost a writer behind them
	maxReads     = 32                     // at a time, and as many locks; a burst of misses must not look like a slow Store
	lockTTL      = 5 * time.Second

	// Who waits for another's result looks for it less and less often, and for its lock
	// more rarely still: hundreds of origins may be waited for at once.
	pollFirst, pollLast = 50 * time.Millisecond, 500 * time.Millisecond
	lockFirst           = 500 * time.Millisecond
	maxCrowded          = 15 * time.Second // a Store that never has a turn for it, or a free lock, is no help
)

// second is the level behind the memory. Without a Store it knows nothing and keeps
// nothing.
type second struct {
	store    Store
	patience time.Duration // what it may cost a caller, in all
	reads    breaker
	slots    chan struct{} // holds one element for each call of a reader
	locks    breaker       // its own: that values are read and written says nothing about locks
	locking  chan struct{} // holds one element for each call for a lock
	behind   behind
}

func (s *second) init(store Store, patience time.Duration, log *slog.Logger) {
	if log == nil {
		log = slog.Default()
	}
	s.store, s.patience = store, patience
	s.reads.init("reading", log)
	s.slots = make(chan struct{}, maxReads)
	s.locks.init("locking", log)
	s.locking = make(chan struct{}, maxReads)
	s.behind.init(store, log)
}

var (
	// errStoreBusy says nothing about the Store: it was not called, or too late.
	errStoreBusy = errors.New("cache: too many calls of the store are under way")
	errStoreDown = errors.New("cache: the store fails, or has no locks")
)

// busy reports whether err is only that many wait for a Store with locks, which has answered
// some of them since it had answered so many. One that is silent is not waited for again.
func (s *second) busy(err error, part *breaker, answers uint64) bool {
	_, shared := s.store.(Locker)
	return shared && errors.Is(err, errStoreBusy) && part.answers() > answers
}

// within calls f and waits for it no longer than a timeout, whether or not it heeds its
// context: what a Store does must not become a caller's wait. A part of the time may go by
// waiting for a slot; a call that was left less than the least, and failed, had no fair chance,
// and that is no failure of the Store. Calls that never return are few, because each keeps
// its slot. What a call returns too late goes to late.
func within[T any](slots chan struct{}, timeout, least time.Duration, f func(context.Context) (T, error), late func(T)) (T, error) {
	var none T
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return none, errStoreBusy
	}
	fair := timeout-time.Since(start) >= least
	type result struct {
		v   T
		err error
	}
	returned, left := make(chan result), make(chan struct{})
	go func() {
		r := result{err: errors.New("cache: the store ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("cache: the store panicked: %v", p)
			}
			<-slots
			select {
			case returned <- r:
			case <-left:
				if late != nil && r.err == nil {
					late(r.v)
				}
			}
		}()
		r.v, r.err = f(ctx)
	}()
	select {
	case r := <-returned:
		if r.err != nil && !fair {
			r.err = errStoreBusy
		}
		return r.v, r.err
	case <-ctx.Done():
		close(left)
		if !fair {
			return none, errStoreBusy
		}
		return none, ctx.Err()
	}
}

// read returns the record of an origin with its file, before a time; nil if there is none
// that can be had and trusted. It also reports whether there was any value; an error means
// that there may be. Silence and errors are failures of the Store; a value that is no record is as
// good as none, but counts.
func (s *second) read(key string, before time.Time) (rec *record, body []byte, stored bool, err error) {
	left := time.Until(before)
	if left <= 0 {
		return nil, nil, false, errStoreBusy
	}
	if !s.reads.allow() {
		return nil, nil, false, errStoreDown
	}
	data, err := within(s.slots, left, s.patience/2, func(ctx context.Context) ([]byte, error) {
		return s.store.Get(ctx, key)
	}, nil)
	if errors.Is(err, ErrMiss) {
		data, err = nil, nil
	}
	if errors.Is(err, errStoreBusy) {
		return nil, nil, false, err
	}
	if s.reads.record(err); err != nil {
		return nil, nil, false, err
	}
	if data == nil || string(data) == tombstone {
		return nil, nil, false, nil
	}
	rec, body, err = decodeRecord(key, data)
	if err != nil {
		s.reads.note()
	}
	return rec, body, true, nil
}

// lock tries to take the lock of an origin; unlock is nil if somebody else has it. An error
// means that there is none to be had, because the Store has no locks, fails, or is busy: to
// go on without can only cost a fetch.
func (s *second) lock(key string, before time.Time) (unlock func(), err error) {
	locker, ok := s.store.(Locker)
	left := time.Until(before)
	switch {
	case !ok:
		return nil, errStoreDown
	case left <= 0:
		return nil, errStoreBusy
	case !s.locks.allow():
		return nil, errStoreDown
	}
	// A lock that is granted after we have left would be renewed for ever.
	release := func(unlock func()) {
		if unlock != nil {
			unlock()
		}
	}
	unlock, err = within(s.locking, left, s.patience/2, func(ctx context.Context) (func(), error) {
		unlock, taken, err := locker.Lock(ctx, key, lockTTL)
		if !taken || unlock == nil {
			return nil, err
		}
		return calm(unlock), err
	}, release)
	if !errors.Is(err, errStoreBusy) {
		s.locks.record(err)
	}
	return unlock, err
}

// calm returns unlock without its panics: it runs where one would end the process.
func calm(unlock func()) func() {
	return func() {
		defer func() { _ = recover() }()
		unlock()
	}
}

// consultation is what the second level adds to what the first knows of an origin.
type consultation struct {
	state  *state        // the newer of both levels'; nil: none
	file   *fetch.Result // state.answer with its body, to be validated; nil: not there
	enough bool          // state will do
	unlock func()        // otherwise: to be called once the new state has been put; nil: no lock
	unread bool          // there may be a state that is better, but could not be had
	holds  bool          // there is, or may be, a value
}

// consult asks the Store, and sees to it that nobody else is fetching. Whoever is, gets
// maxCrowded to put a result; if its process dies, its lock lapses.
//
// To wait for a result is no fault of the Store. Nor is it one if many wait for it, as long
// as it answers them: with a Locker a fetch is what all of this is to avoid.
func (c *Cache) consult(o place, s *state) consultation {
	key, start := o.key(), time.Now()
	end := start.Add(max(maxCrowded, c.second.patience))
	last := end.Add(-c.second.patience / 2) // a later look would have no fair chance
	offered := false
	poll, pause := pollFirst, lockFirst
	var nextLock time.Time
	for {
		before, reads, locks := c.second.before(end), c.second.reads.answers(), c.second.locks.answers()
		found, err := c.compare(o, s, before)
		if found.enough {
			return found
		}
		if found.state != s && !offered {
			c.offer(o, found.state)
			offered = true
		}
		goesOn := err == nil || c.second.busy(err, &c.second.reads, reads)
		if err == nil && !time.Now().Before(nextLock) {
			var unlock func()
			unlock, err = c.second.lock(key, before)
			if unlock != nil {
				return c.locked(o, found, unlock, before, end)
			}
			if goesOn = err == nil || c.second.busy(err, &c.second.locks, locks); err == nil {
				nextLock = time.Now().Add(pause)
				pause = min(2*pause, lockTTL/4)
			}
		}
		wait := time.Duration(float64(poll) * (0.8 + 0.4*rand.Float64())) // those who came together need not stay so
		if poll = min(2*poll, pollLast); !nextLock.IsZero() {
			wait = min(wait, max(pollFirst/2, time.Until(nextLock)))
		}
		if !goesOn || time.Now().Add(wait).After(last) {
			return found
		}
		select {
		case <-time.After(wait):
		case <-c.flights.closed:
			return found
		}
	}
}

// locked looks once more under the lock: who had it before may have put a result since.
func (c *Cache) locked(o place, found consultation, unlock func(), before, end time.Time) consultation {
	for ; ; before = c.second.before(end) {
		reads := c.second.reads.answers()
		again, err := c.compare(o, found.state, before)
		if again.enough {
			go unlock()
			return again
		}
		if !c.second.busy(err, &c.second.reads, reads) || !time.Now().Before(end) {
			again.unlock = unlock
			return again
		}
	}
}

// before is when a look at the Store has to be over.
func (s *second) before(end time.Time) time.Time {
	if t := time.Now().Add(s.patience); t.Before(end) {
		return t
	}
	return end
}

// compare reads the Store and takes what is newer there. An error means that it could not be
// read.
func (c *Cache) compare(o place, s *state, before time.Time) (found consultation, err error) {
	rec, body, stored, err := c.second.read(o.key(), before)
	now := time.Now()
	found.unread, found.holds = err != nil, err != nil || stored
	if rec != nil && rec.Answer != nil && rec.Failure != nil && rec.Failure.Received.After(now.Add(clockSlack)) {
		// Stamped by another clock than the answer, as a fast one does that meets an outage:
		// it takes nothing away from the copy.
		rec.Failure = nil
	}
	if rec != nil && rec.latest().After(now.Add(clockSlack)) {
		// Nothing that its times could be measured by. But which clock is wrong is not
		// known: it may be good again once this one has been set.
		rec, found.unread = nil, true
	}
	if rec != nil && rec.Answer != nil && s != nil && s.answer != nil &&
		rec.Answer.UserAgent != "" && s.answer.UserAgent != "" && rec.Answer.UserAgent != s.answer.UserAgent {
		rec, found.unread = nil, true // for others, who put it when ours was not there
	}
	if rec != nil && rec.adds(s) {
		theirs, whole := rec.state(&c.terms, body, o.dialect, c.draw)
		s = s.merged(theirs)
		found.unread = found.unread || !whole // of use to others: a failure must not displace it
	}
	found.state = s
	if s == nil {
		return found, err
	}
	_, _, due := c.terms.at(s, now)
	found.enough = due == notDue
	// The body belongs to this answer only if both are of one moment. One that a policy has
	// written down is not given back as a file.
	if file := s.validatable(); file != nil && rec != nil && rec.Answer != nil && rec.Answer.Received.Equal(s.at) && rec.Answer.isFile() {
		whole := *file
		whole.Body = body
		found.file = &whole
	}
	return found, err
}

// keep puts a state behind the memory, after r has arrived in place of prev, and then gives
// the lock back.
func (c *Cache) keep(o place, s *state, r, prev *fetch.Result, stored consultation, now time.Time) {
	unlock := stored.unlock
	if unlock == nil {
		unlock = func() {}
	}
	if ofTheMoment(r) {
		go unlock() // what is in the Store goes on to hold
		return
	}
	file := r
	if r.Err != nil {
		file = stored.file // of the answer before, which the outage does not displace
	}
	key := o.key()
	data, err := encodeState(key, s, file)
	ttl := s.retention(now)
	volatile := s.answer != nil && s.volatile
	superseded := r.Err == nil && (volatile || prev == nil || r.Policy != prev.Policy) // else a 304 renews what is there
	switch {
	case r.Err != nil && stored.unread:
		go unlock() // a failure must not displace a copy that just could not be read
		return
	case err == nil && !volatile:
	case superseded && (stored.holds || c.second.behind.has(key)):
		data, ttl = []byte(tombstone), time.Minute
	default:
		go unlock() // what is there, if anything, are still the last rules to be stored
		return
	}
	c.second.behind.put(key, data, ttl, unlock)
}

// fileOf returns the file of a result, which has none if it was renewed without it.
func fileOf(r *fetch.Result) []byte {
	if r == nil {
		return nil
	}
	return r.Body
}
