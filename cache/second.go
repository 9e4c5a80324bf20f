package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

const (
	readTimeout  = 100 * time.Millisecond // default of Cache.StoreTimeout
	writeTimeout = 5 * time.Second        // what it may cost a writer behind them
	maxReads     = 16                     // at a time; a burst of misses must not look like a slow Store
	lockTTL      = 5 * time.Second
	pollEvery    = 50 * time.Millisecond
)

// second is the level behind the memory. Without a Store it knows nothing and keeps
// nothing.
type second struct {
	store    Store
	patience time.Duration // what it may cost a caller, in all
	failures *watchers
	reads    breaker
	slots    chan struct{} // holds one element for each call of a reader
	behind   behind
}

func (s *second) init(store Store, patience time.Duration, log *slog.Logger, failures *watchers) {
	if log == nil {
		log = slog.Default()
	}
	if patience <= 0 {
		patience = readTimeout
	}
	s.store, s.patience, s.failures = store, patience, failures
	s.reads.init("reading", log)
	s.slots = make(chan struct{}, maxReads)
	s.behind.init(store, log, failures)
}

// errStoreBusy says nothing about the Store: it was not called.
var errStoreBusy = errors.New("cache: too many calls of the store are under way")

// within calls f and waits for it no longer than a timeout, whether or not it heeds its
// context: what a Store does must not become a caller's wait. The first half of the time
// may go by waiting for a slot, so that a call that is made has a fair chance. Calls that
// never return are few, because each keeps its slot. What a call returns too late goes to
// late.
func within[T any](slots chan struct{}, timeout time.Duration, f func(context.Context) (T, error), late func(T)) (T, error) {
	var none T
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	select {
	case slots <- struct{}{}:
	case <-time.After(timeout / 2):
		return none, errStoreBusy
	}
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
		return r.v, r.err
	case <-ctx.Done():
		close(left)
		return none, ctx.Err()
	}
}

// read returns the record of an origin with its file, before a time; nil if there is none
// that can be had and trusted. It also reports whether there was any value, and whether the
// Store could be read. Silence and errors are failures of the Store; a value that is no
// record is as good as none, but somebody may want to hear of it.
func (s *second) read(key string, before time.Time) (rec *record, body []byte, stored, up bool) {
	left := time.Until(before)
	if left <= 0 || !s.reads.allow() {
		return nil, nil, false, false
	}
	data, err := within(s.slots, left, func(ctx context.Context) ([]byte, error) {
		return s.store.Get(ctx, key)
	}, nil)
	if errors.Is(err, ErrMiss) {
		data, err = nil, nil
	}
	if errors.Is(err, errStoreBusy) {
		return nil, nil, false, false
	}
	s.failures.tell("get", key, err)
	if s.reads.record(err); err != nil {
		return nil, nil, false, false
	}
	if data == nil || string(data) == tombstone {
		return nil, nil, false, true
	}
	rec, body, err = decodeRecord(key, data)
	if err != nil {
		s.reads.note()
		s.failures.tell("get", key, err)
	}
	return rec, body, true, true
}

// lock tries to take the lock of an origin. Where there is none to be had, because the
// Store has no locks or fails, unlock is nil, and the lock as good as taken: that can
// only cost a fetch.
func (s *second) lock(key string, before time.Time) (unlock func(), taken bool) {
	locker, ok := s.store.(Locker)
	left := time.Until(before)
	if !ok || left <= 0 || !s.behind.writes.allow() {
		return nil, true
	}
	// A lock that is granted after we have left would be renewed for ever.
	release := func(unlock func()) {
		if unlock != nil {
			unlock()
		}
	}
	unlock, err := within(s.slots, left, func(ctx context.Context) (func(), error) {
		unlock, taken, err := locker.Lock(ctx, key, lockTTL)
		if !taken || unlock == nil {
			return nil, err
		}
		return calm(unlock), err
	}, release)
	if !errors.Is(err, errStoreBusy) {
		s.failures.tell("lock", key, err)
		s.behind.writes.record(err)
	}
	return unlock, err != nil || unlock != nil
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
// the time of a flight to put a result; if its process dies, its lock lapses.
func (c *Cache) consult(o fetch.Origin, s *state) consultation {
	key := o.String()
	patience := time.Now().Add(flightTimeout)
	for {
		before := time.Now().Add(c.second.patience) // in each turn: to wait for a result is no fault of the Store
		found, up := c.compare(key, s, before)
		if found.enough || !up || time.Now().After(patience) {
			return found
		}
		unlock, taken := c.second.lock(key, before)
		if taken && unlock == nil {
			return found
		}
		if taken {
			// Who had the lock before may have put a result since we looked.
			if found, _ = c.compare(key, found.state, before); found.enough {
				go unlock()
			}
			found.unlock = unlock
			return found
		}
		select {
		case <-time.After(pollEvery):
		case <-c.flights.closed:
			return found
		}
	}
}

// compare reads the Store and takes the newer state. It also reports whether the Store
// could be read.
func (c *Cache) compare(key string, s *state, before time.Time) (found consultation, up bool) {
	rec, body, stored, up := c.second.read(key, before)
	now := time.Now()
	found.unread, found.holds = !up, !up || stored
	if rec != nil && rec.latest().After(now.Add(clockSlack)) {
		// Nothing that its times could be measured by. But which clock is wrong is not
		// known: it may be good again once this one has been set.
		rec, found.unread = nil, true
	}
	if rec != nil && rec.adds(s) {
		s = s.merged(rec.state(&c.terms, body, c.draw))
	}
	found.state = s
	if s == nil {
		return found, up
	}
	_, _, due := c.terms.at(s, now)
	found.enough = due == notDue
	// The body belongs to this answer only if both are of one moment.
	if file := s.validatable(); file != nil && rec != nil && rec.Answer != nil && rec.Answer.Received.Equal(s.answered) {
		whole := *file
		whole.Body = body
		found.file = &whole
	}
	return found, up
}

// keep puts a state behind the memory, after r has arrived in place of prev, and then gives
// the lock back.
func (c *Cache) keep(o fetch.Origin, s *state, r, prev *fetch.Result, stored consultation, now time.Time) {
	unlock := stored.unlock
	if unlock == nil {
		unlock = func() {}
	}
	file := r
	if r.Err != nil {
		file = stored.file // of the answer before, which the outage does not displace
	}
	key := o.String()
	data, err := encodeState(key, s, fileOf(s, file))
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

// fileOf returns the octets to parse the answer's policy from. Memory has none: they come
// with a new answer, or from the Store, or the policy can write itself down, with its
// lines renumbered.
func fileOf(s *state, file *fetch.Result) []byte {
	switch {
	case s.answer == nil || !isRules(s.answer):
		return nil
	case file != nil && file.Body != nil:
		return file.Body
	}
	return []byte(s.answer.Policy.String())
}
