package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/fetch"
)

const (
	flightTimeout = 2 * time.Minute // ends a Load, which takes 30 seconds but may have to wait for its turn first
	unaskedPause  = 5 * time.Second // how long a copy serves after a Load that did not ask the site
	maxBridged    = 3 * time.Second // how long a caller waits for a refresh if the last good copy can stand in
	storeAgain    = 5 * time.Second // how long callers leave a Store alone that did not answer
	maxRenewals   = 32              // fetches without a waiting caller: more would delay those with one

	// maxUnawaited is how many flights may be under way for a caller that does not wait to start one. Nothing else bounds
	// how many origins it asks for, and a flight takes 12 KB for up to flightTimeout, also while it waits for a place to
	// fetch.
	maxUnawaited = 1000

	busy = "proxy_internal_error" // the cause of a Failure (RFC 9209 §2.3.22)

	// lockWait is how long another process may take to put a result. Those who wait for it poll less and less often,
	// because there may be hundreds of such origins at once.
	lockWait            = 15 * time.Second
	pollFirst, pollLast = 50 * time.Millisecond, 500 * time.Millisecond
	lockEvery           = time.Second
)

// flight is one fetch under way, for all who wait for it.
type flight struct {
	began  time.Time
	behind bool   // no caller waited when it began
	known  *state // what memory and the Store have, or nil
	unlock func() // gives the Store's lock back; nil if it was not taken
}

// landed is the outcome of a flight.
type landed struct {
	result *fetch.Result
	until  time.Time
}

// fly joins or starts the flight for k. s is what memory has, or nil. c.mu is held.
func (c *Cache) fly(k key, s *state, now time.Time, src *Source, behind bool) <-chan singleflight.Result {
	f := c.flights[k]
	if f == nil {
		k.Origin = k.Origin.Clone() // it may be part of a caller's URL
		f = &flight{began: now, behind: behind, known: s}
		c.flights[k] = f
		c.running.begin()
		if behind {
			c.renewals++
		}
	}
	return c.group.DoChan(k.flightKey(), func() (flown any, err error) {
		defer c.running.end()
		defer c.land(k, f)
		defer func() {
			// A flight works on a stranger's bytes. If they cause a panic, that is a failure like any other.
			if p := recover(); p != nil {
				now := time.Now()
				r := unreachable(src.Dialect, now, fmt.Sprintf("cache: the fetch panicked: %v", p))
				flown, err = c.publish(k, f.known.failedWith(&c.terms, c.terms.trim(r), now), now), nil
			}
		}()
		return c.find(k, f, src)
	})
}

// land ends a flight. Its result is in memory already.
func (c *Cache) land(k key, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.group.Forget(k.flightKey())
	delete(c.flights, k)
	if f.behind {
		c.renewals--
	}
	if f.unlock != nil {
		c.running.Go(f.unlock) // in the background
	}
}

// wait waits for a flight no longer than ctx. If the last good copy would serve in an outage, maxBridged at most.
func (c *Cache) wait(ctx context.Context, k key, flying <-chan singleflight.Result) (*fetch.Result, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	patience := time.NewTimer(maxBridged)
	defer patience.Stop()
	for {
		select {
		case flown := <-flying:
			l, _ := flown.Val.(landed)
			return l.result, l.until, flown.Err
		case <-patience.C:
			if l := c.bridge(k, 0); l.result != nil {
				return l.result, l.until, nil
			}
			patience.Reset(time.Second) // the flight may find a copy in the Store
		case <-ctx.Done():
			return nil, time.Time{}, ctx.Err()
		}
	}
}

// bridge returns what holds, or a copy that stands in for it and then serves all callers for a while; or no result.
func (c *Cache) bridge(k key, while time.Duration) (l landed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.memory.recent.Peek(k)
	if !ok {
		return l
	}
	now := time.Now()
	r, period, due := c.terms.at(e.state, now)
	if due == awaited {
		r, period = c.terms.bridge(e.state, now), while
	}
	l = landed{r, c.terms.until(e.state, now)}
	if r != nil && while > 0 {
		e.landed, e.look = l, now.Sub(c.start)+min(while, period)
	}
	return l
}

// find finds out what holds for k. It asks the Store, and then the site.
func (c *Cache) find(k key, f *flight, src *Source) (any, error) {
	var st stored
	if c.backing != nil {
		// Another process may know more. So the Store is asked before every fetch.
		if st = c.consult(k, f, f.known); st.enough {
			return c.publish(k, st.state, st.at), nil
		}
		f.known = st.state
	}
	ctx, cancel := context.WithTimeout(c.ctx, flightTimeout)
	defer cancel()
	r, err := src.Load(ctx, k.Origin, c.validator(f.known, st))
	if errors.Is(err, ctx.Err()) && err != nil { // it would look like the time-out of those who wait
		err = &fetch.Failure{Text: fmt.Sprintf("cache: robots.txt was not read within %v", flightTimeout), Cause: busy}
	}
	if err != nil {
		return c.unasked(k, err)
	}
	r = r.In(src.Dialect)
	if c.backing != nil && failed(r) && !st.unknown { // what another process has put meanwhile must not be displaced
		st, _ = c.takeNewer(k, f.known)
		f.known = st.state
	}
	now := time.Now()
	n := c.arrived(f.known, r, st, now)
	l := c.publish(k, n, now)
	if c.backing != nil {
		c.keep(k, f, n, r, st, now)
	}
	return l, nil
}

// unasked returns what callers get after a Load that did not ask the site. Nothing is kept.
func (c *Cache) unasked(k key, err error) (any, error) {
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if l := c.bridge(k, unaskedPause); l.result != nil {
		return l, nil
	}
	return nil, err
}

// validator returns the answer that Load may validate, or nil. With a Store it must have its file, which is stored
// again after a 304. Without one, the rules suffice.
func (c *Cache) validator(s *state, st stored) *fetch.Result {
	if st.file != nil {
		return st.file
	}
	if a := s.validatable(); a != nil && (a.Body != nil || !c.KeepBody && c.backing == nil) {
		return a
	}
	return nil
}

// arrived returns the state after a result. A failure permits nothing if the Store cannot say whether there are rules,
// or has a mark of some.
func (c *Cache) arrived(s *state, r *fetch.Result, st stored, now time.Time) *state {
	t := &c.terms
	if !failed(r) {
		n := t.answeredWith(r, now) // by the whole header
		n.answer = t.trim(r)
		return n
	}
	n := s.failedWith(t, t.trim(r), now)
	switch {
	case !st.doubt() || s.hasRules(now):
	case st.unknown:
		n = n.withheld(storeAgain)
	case r.Err != nil:
		n.assumed = nil
	case t.outage != Strict:
		n = n.withheld(st.rules.Sub(now))
	}
	return n
}

// consult asks the Store, and takes its lock for a fetch. If another process is fetching, it has lockWait to put a
// result; if it dies, its lock lapses.
func (c *Cache) consult(k key, f *flight, s *state) (st stored) {
	wait, nextLock, end := pollFirst, time.Time{}, f.began.Add(lockWait)
	for {
		var err error
		if st, err = c.takeNewer(k, s); st.enough || err != nil || !c.backing.HasLocks {
			return st
		}
		s = st.state
		if !st.at.Before(nextLock) {
			unlock, err := c.backing.Lock(c.ctx, k.storeKey())
			if unlock != nil {
				f.unlock = unlock
				st, _ = c.takeNewer(k, s) // its last holder may have put a result since
			}
			if unlock != nil || err != nil {
				return st
			}
			nextLock = st.at.Add(lockEvery)
		}
		pause := time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64())) // keeps processes out of step
		pause = min(pause, nextLock.Sub(st.at))
		if st.at.Add(pause).After(end) {
			return st
		}
		wait = min(2*wait, pollLast)
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return st
		}
	}
}

// takeNewer reads the Store, and publishes what is newer there. The error is that of reading.
func (c *Cache) takeNewer(k key, known *state) (st stored, err error) {
	rec, body, err := c.backing.Read(c.ctx, k.storeKey())
	st = c.terms.fromStore(known, rec, body, err != nil, k.dialect, time.Now())
	if st.state != nil && st.state != known {
		c.publish(k, st.state, st.at) // it may bridge the flight for those who wait
	}
	if errors.Is(err, backing.ErrDamaged) {
		err = nil // the Store did answer
	}
	return st, err
}

// keep puts a state into the Store and gives the lock back, behind the callers, once one of 64 places is free.
func (c *Cache) keep(k key, f *flight, n *state, r *fetch.Result, st stored, now time.Time) {
	name, owed := k.storeKey(), n.mark()
	data := n.toStore(name, r, st, c.backing.Debts.Owes(name) != backing.Mark{})
	if data == nil {
		owed = backing.Mark{} // what the Store has says as much
	}
	var o *backing.Debt
	if !failed(r) {
		o = c.backing.Debts.Owe(name, owed) // until it is written
	}
	if data != nil {
		c.backing.Put(name, data, n.retention(now), o, f.unlock)
		f.unlock = nil
	}
}
