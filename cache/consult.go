package cache

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/fetch"
)

const (
	storeTimeout = 2 * time.Second // the default of Cache.StoreTimeout

	// A caller that waits for another process's result looks for it less and less often, and
	// for its lock even less: hundreds of origins may be waited for at once.
	pollFirst, pollLast = 50 * time.Millisecond, 500 * time.Millisecond
	lockFirst           = time.Second
	maxCrowded          = 15 * time.Second // a Store that is busy for longer is no help
)

// consultation is what the Store adds to what memory knows of an origin.
type consultation struct {
	own    *state        // what the Store has at the caller's own place, if that for all was asked for; nil: nothing
	state  *state        // the newer of both levels'; nil: none
	file   *fetch.Result // state.answer with its body, to be validated; nil: not there
	at     time.Time     // when the Store was last read
	enough bool          // state answers the question
	unlock func()        // to be called once the new state has been put; nil: no lock was taken
	unread bool          // there may be a better state that could not be had
	took   time.Duration // what it has cost the caller
	holds  bool          // the Store has a value, or may have one
}

// release gives the lock back behind the caller, if there is one.
func (f *consultation) release() {
	if f.unlock != nil {
		f.unlock()
	}
}

// consult asks the Store, and takes its lock for a fetch. If another process is fetching, it
// has maxCrowded to put a result; if it dies, its lock lapses.
//
// Waiting for a result is no fault of the Store. Nor is a long queue, as long as the Store
// answers: a Locker is there to save fetches.
func (c *Cache) consult(o place, s *state, start time.Time, src *Source) (found consultation) {
	defer func() { found.took = time.Since(start) }()
	end := start.Add(max(maxCrowded, c.patience))
	last := end.Add(-c.patience / 2) // a later look would have no fair chance
	p := poll{wait: pollFirst, lockWait: lockFirst}
	offered := false
	for now := start; ; {
		look := c.backing.Look(now, end)
		var err error
		if found, err = c.compare(o, s, look, src); found.enough {
			return found
		}
		if found.state != s && !offered && c.terms.bridge(found.state, found.at) != nil {
			// For callers whose flight may last. It is expired in memory, so each reader decides whether it will do.
			c.memory.put(o, found.state, found.state.answer, c.clock.at(found.at), 0, src.agent())
			offered = true
		}
		if err == nil && !found.at.Before(p.nextLock) {
			if found.unlock, err = look.Lock(o.key()); found.unlock != nil {
				return c.locked(o, found, look, end, src)
			}
			if err == nil {
				p.lockTaken(found.at)
			}
		}
		wait := p.next(found.at)
		if err != nil && !errors.Is(err, backing.ErrBusy) || found.at.Add(wait).After(last) {
			return found
		}
		select {
		case now = <-time.After(wait):
		case <-c.flights.closed.Done():
			return found
		}
	}
}

// poll decides when to look for another process's result, and for its lock. Its waits are
// random, so callers that came together do not stay together.
type poll struct {
	wait, lockWait time.Duration
	nextLock       time.Time // zero: no other process has had the lock
}

func (p *poll) lockTaken(now time.Time) {
	p.nextLock = now.Add(p.lockWait)
	p.lockWait = min(2*p.lockWait, backing.LockTTL/4)
}

func (p *poll) next(now time.Time) time.Duration {
	wait := time.Duration(float64(p.wait) * (0.8 + 0.4*rand.Float64()))
	p.wait = min(2*p.wait, pollLast)
	if left := p.nextLock.Sub(now); left > 0 {
		wait = min(wait, left)
	}
	return wait
}

// locked looks once more under the lock: its last holder may have put a result since.
func (c *Cache) locked(o place, found consultation, look backing.Look, end time.Time, src *Source) consultation {
	for ; ; look = c.backing.Look(found.at, end) {
		again, err := c.compare(o, found.state, look, src)
		if again.enough {
			found.release()
			return again
		}
		if !errors.Is(err, backing.ErrBusy) || !again.at.Before(end) {
			again.unlock = found.unlock
			return again
		}
		found.at = again.at
	}
}

// read returns the record of a place with its file; nil if there is none, or none to be
// trusted. stored reports whether there was any value. An error means that there may be one.
func (c *Cache) read(o place, look backing.Look) (rec *record, body []byte, stored bool, err error) {
	data, err := look.Get(o.key())
	if data == nil || err != nil {
		return nil, nil, false, err
	}
	if rec, body, err = decodeRecord(o.key(), data); err != nil {
		c.backing.Damaged()
	}
	return rec, body, true, nil // of a damaged value, nothing
}

// readOwn returns what the Store has of a User-Agent's place; nil if that is of no use.
func (c *Cache) readOwn(o place, look backing.Look, now time.Time) (*state, error) {
	rec, body, _, err := c.read(o, look)
	if rec == nil || !rec.usable(o, now) {
		return nil, err
	}
	s, _ := rec.state(&c.terms, body, o.kind, c.draw)
	return s, nil
}

// compare reads the Store and takes what is newer there. An error means that the Store could
// not be read.
func (c *Cache) compare(o place, s *state, look backing.Look, src *Source) (found consultation, err error) {
	rec, body, stored, err := c.read(o, look)
	found.at = time.Now()
	// What is damaged may have been rules, and a mark says that there were some.
	found.unread, found.holds = err != nil || stored && rec == nil, err != nil || stored
	found.unread = found.unread || rec != nil && found.at.Before(rec.Rules)
	if rec != nil && !rec.usable(o, found.at) {
		rec, found.unread = nil, true
	}
	if rec != nil && rec.adds(s) {
		theirs, whole := rec.state(&c.terms, body, o.kind, c.draw)
		s = s.merged(theirs)
		found.unread = found.unread || !whole // of use to others: a failure must not displace it
	}
	found.state = s
	if s != nil {
		_, _, due := c.terms.at(s, found.at)
		found.enough = due == notDue
	}
	// What the same User-Agent was told last, and is still fresh, need not be compared.
	same := found.enough && rec != nil && rec.Agent == src.agent() && rec.Failure == nil
	if o.agent == "" && !same && err == nil {
		if found.own, err = c.readOwn(o.of(src.agent()), look, found.at); found.own != nil {
			found.enough = true
			return found, nil
		}
		found.unread = found.unread || err != nil
	}
	if s == nil {
		return found, err
	}
	// The body belongs to this answer only if both are of one moment. What a policy has written
	// down is not given back as a file.
	if file := s.validatable(); file != nil && rec.isFileOf(s) {
		whole := *file
		whole.Body = body
		found.file = &whole
	}
	return found, err
}

// keep puts a state into the Store, behind the callers, after r has arrived in place of prev.
// Then it gives the lock back.
func (c *Cache) keep(o place, s *state, r, prev *fetch.Result, stored consultation, now time.Time, src *Source) {
	if r.OfTheMoment() || r.Err != nil && stored.unread {
		// What is in the Store goes on to hold. A failure must not displace a copy that just
		// could not be read.
		stored.release()
		return
	}
	file := r
	if r.Err != nil {
		file = stored.file // of the answer before, which the outage does not displace
	}
	key := o.key()
	data, err := encodeState(key, src.agent(), s, file)
	volatile := s.answer != nil && s.volatile
	if err != nil || volatile {
		// This state is not to be stored. The rules in the Store go on to hold, unless the
		// origin has replaced them since: a 304 only renews them.
		superseded := r.Err == nil && (volatile || prev == nil || r.Policy != prev.Policy)
		if !superseded || !isRules(r) && !stored.holds && !c.backing.Has(key) {
			stored.release()
			return
		}
		data = nil
	}
	if r.Err == nil && data == nil && isRules(r) {
		data, _ = encodeMark(key, src.agent(), s.at.Add(s.kept)) // times and a key: no error
	}
	c.backing.Put(key, data, s.retention(now), c.patience-stored.took, stored.release)
}
