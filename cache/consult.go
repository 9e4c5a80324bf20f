package cache

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/fetch"
)

const (
	readTimeout = 100 * time.Millisecond // default of Cache.StoreTimeout

	// A caller that waits for another process's result looks for it less and less often, and
	// for its lock more rarely still: hundreds of origins may be waited for at once.
	pollFirst, pollLast = 50 * time.Millisecond, 500 * time.Millisecond
	lockFirst           = 500 * time.Millisecond
	maxCrowded          = 15 * time.Second // a Store that never has a turn for it, or a free lock, is no help
)

// consultation is what the second level adds to what the first knows of an origin.
type consultation struct {
	state  *state        // the newer of both levels'; nil: none
	file   *fetch.Result // state.answer with its body, to be validated; nil: not there
	enough bool          // state will do
	unlock func()        // otherwise: to be called once the new state has been put; nil: no lock
	unread bool          // there may be a state that is better, but could not be had
	took   time.Duration // what it has cost the caller
	holds  bool          // there is, or may be, a value
}

// consult asks the Store, and takes its lock for a fetch. Another process that is fetching gets
// maxCrowded to put a result; if it dies, its lock lapses.
//
// Waiting for a result is no fault of the Store. Nor is a long queue, as long as the Store
// answers: a Locker is there to save fetches.
func (c *Cache) consult(o place, s *state) (found consultation) {
	start := time.Now()
	defer func() { found.took = time.Since(start) }()
	end := start.Add(max(maxCrowded, c.patience))
	last := end.Add(-c.patience / 2) // a later look would have no fair chance
	p := poll{wait: pollFirst, lockWait: lockFirst}
	for offered := false; ; {
		turn := c.backing.Turn(end)
		var err error
		if found, err = c.compare(o, s, turn); found.enough {
			return found
		}
		if found.state != s && !offered {
			c.offer(o, found.state)
			offered = true
		}
		if err == nil && p.lockDue() {
			var unlock func()
			if unlock, err = turn.Lock(o.key()); unlock != nil {
				return c.locked(o, found, unlock, turn, end)
			}
			if err == nil {
				p.lockTaken()
			}
		}
		wait := p.next()
		if err != nil && !errors.Is(err, backing.ErrBusy) || time.Now().Add(wait).After(last) {
			return found
		}
		select {
		case <-time.After(wait):
		case <-c.flights.closed:
			return found
		}
	}
}

// poll says when to look for another process's result, and for its lock. Callers that came
// together need not stay together.
type poll struct {
	wait, lockWait time.Duration
	nextLock       time.Time // zero: no other process has had the lock
}

func (p *poll) lockDue() bool { return !time.Now().Before(p.nextLock) }

func (p *poll) lockTaken() {
	p.nextLock = time.Now().Add(p.lockWait)
	p.lockWait = min(2*p.lockWait, backing.LockTTL/4)
}

func (p *poll) next() time.Duration {
	wait := time.Duration(float64(p.wait) * (0.8 + 0.4*rand.Float64()))
	if p.wait = min(2*p.wait, pollLast); !p.nextLock.IsZero() {
		wait = min(wait, max(pollFirst/2, time.Until(p.nextLock)))
	}
	return wait
}

// locked looks once more under the lock: its last holder may have put a result since.
func (c *Cache) locked(o place, found consultation, unlock func(), turn backing.Turn, end time.Time) consultation {
	for ; ; turn = c.backing.Turn(end) {
		again, err := c.compare(o, found.state, turn)
		if again.enough {
			go unlock()
			return again
		}
		if !errors.Is(err, backing.ErrBusy) || !time.Now().Before(end) {
			again.unlock = unlock
			return again
		}
	}
}

// read returns the record of a place with its file; nil if there is none that can be had and
// trusted. stored reports whether there was any value; an error means that there may be.
func (c *Cache) read(o place, turn backing.Turn) (rec *record, body []byte, stored bool, err error) {
	data, err := turn.Get(o.key())
	if data == nil || err != nil {
		return nil, nil, false, err
	}
	if rec, body, err = decodeRecord(o.key(), data); err != nil {
		c.backing.Damaged()
	}
	return rec, body, true, nil // a damaged value is as good as none
}

// compare reads the Store and takes what is newer there. An error means that it could not be
// read.
func (c *Cache) compare(o place, s *state, turn backing.Turn) (found consultation, err error) {
	rec, body, stored, err := c.read(o, turn)
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
		rec, found.unread = nil, true // for others, put when ours was not there
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
	case superseded && (stored.holds || c.backing.Has(key)):
		data = nil
	default:
		go unlock() // what is there, if anything, are still the last rules to be stored
		return
	}
	c.backing.Put(key, data, ttl, c.patience-stored.took, unlock)
}

// fileOf returns the file of a result, which has none if it was renewed without it.
func fileOf(r *fetch.Result) []byte {
	if r == nil {
		return nil
	}
	return r.Body
}
