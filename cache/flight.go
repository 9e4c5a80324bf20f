package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/fetch"
)

const (
	// flightTimeout ends a flight. A Fetcher needs 30 seconds, but may have to queue for its
	// turn first. Callers that still wait after a flight start another. So our own queue is no
	// failure of the origin, and a fetch that no caller waits for leaves the queue.
	flightTimeout = 2 * time.Minute

	// returnTimeout is how long before that a load is told that its time is over.
	returnTimeout = time.Second

	// busyPause is how long to wait after a load that had no turn: it may have said so at once.
	busyPause = 5 * time.Second

	// maxBridged is how long a caller waits for a refresh if the last good copy can stand in.
	maxBridged = 3 * time.Second

	// maxRenewals bounds the fetches that no caller waits for, so they do not delay the others.
	maxRenewals = 32
)

// errBusy ends a flight whose Load did not get to ask the origin, mostly because of a queue.
var errBusy = errors.New("cache: no turn to fetch robots.txt")

// flights are the fetches under way, one for each place.
type flights struct {
	group  singleflight.Group
	closed context.Context
	end    context.CancelFunc

	mu       sync.Mutex          // guards what follows
	ended    sync.Cond           // a flight or a load has
	running  map[place]time.Time // when the first caller began to wait that has given up on it; zero: none has
	renewals map[place]bool      // those of them that began behind their callers

	// Loads are counted apart: one that hangs outlives its flight, and must not keep open the
	// Store, which the flights use.
	loads int
}

func (f *flights) init() {
	f.closed, f.end = context.WithCancel(context.Background())
	f.ended.L = &f.mu
	f.running, f.renewals = make(map[place]time.Time), make(map[place]bool)
}

// begin reports whether a flight may start, which is to call land.
func (f *flights) begin(o place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Err() != nil {
		return false
	}
	f.running[o] = time.Time{}
	return true
}

// land ends a flight: under the lock, so who finds it here may still join it.
func (f *flights) land(o place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.group.Forget(o.flight())
	delete(f.running, o)
	delete(f.renewals, o)
	f.ended.Broadcast()
}

// loading counts the loads under way.
func (f *flights) loading(more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads += more
	f.ended.Broadcast()
}

// giveUp notes that a caller who has waited for a flight since a moment does so no more.
func (f *flights) giveUp(o place, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, flies := f.running[o]; flies && (first.IsZero() || since.Before(first)) {
		f.running[o] = since
	}
}

// isOverdue reports whether a flight is under way that callers have waited for long enough.
func (f *flights) isOverdue(o place, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.running[o]
	return !first.IsZero() && now.Sub(first) >= maxBridged
}

// wait waits until none of what count counts is under way, no longer than ctx. The error says
// how much is left.
func (f *flights) wait(ctx context.Context, count func() int) error {
	defer context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended.Broadcast()
	})()
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := count(); n > 0; n = count() {
		if ctx.Err() != nil {
			return fmt.Errorf("cache: robots.txt is still being read for %d origins: %w", n, ctx.Err())
		}
		f.ended.Wait()
	}
	return nil
}

// wait joins the flight for o, or starts it, and waits no longer than ctx. If the last good copy
// would serve in an outage, it waits no longer than maxBridged. seen is what the caller found
// in memory, and was not enough; nil: nothing.
func (c *Cache) wait(ctx context.Context, o place, seen *state, start time.Time, src *Source) (*fetch.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	patience := time.NewTimer(maxBridged)
	defer patience.Stop()
	landed := c.fly(o, seen, start, src)
	var again <-chan time.Time // when to start another, if that had no turn
	for {
		select {
		case flown := <-landed:
			now := time.Now() // not of the flight's: it may have waited since, for room in the queue of the Store
			r, _ := flown.Val.(*fetch.Result)
			agent, apart := flown.Err.(elsewhere)
			switch e := c.memory.find(o); {
			case apart && (r == nil || string(agent) != src.agent()):
				o = o.of(src.agent())
				if e = c.memory.find(o); e != nil {
					return c.look(ctx, e, now, src)
				}
				return c.wait(ctx, o, nil, now, src)
			case apart:
				return r, nil
			case flown.Err == nil && e != nil && !e.isFor(src.agent()): // whose own place was not looked at
				landed = c.fly(o, e.seen(), now, src)
			case flown.Err != errBusy:
				return r, flown.Err
			default:
				landed, again = nil, time.After(busyPause)
			}
		case now := <-again:
			landed = c.fly(o, c.memory.find(o).seen(), now, src)
		case now := <-patience.C:
			e := c.memory.find(o)
			if r := c.terms.bridge(e.seen(), now); r != nil && e.isFor(src.agent()) {
				if landed != nil { // else another caller's may be under way, which began later
					c.flights.giveUp(o, start) // no other caller waits for it so long
				}
				return r, nil
			}
			patience.Reset(time.Second) // the flight may find a copy in the Store
		case <-ctx.Done():
			if landed != nil {
				c.flights.giveUp(o, start) // the copy is for all who come later, even if no one has waited so long
			}
			return nil, ctx.Err()
		}
	}
}

// renew starts a flight for an entry behind its readers, unless there is one, or there are
// too many. An origin that hangs, and is asked for again and again, must not take the places of
// others.
func (c *Cache) renew(e *entry, seen *state, now time.Time, src *Source) {
	o, f := e.place(), &c.flights
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, flies := f.running[o]; !flies && !f.renewals[o] && len(f.renewals) < maxRenewals {
		f.renewals[o] = true
		c.fly(o, seen, now, src)
	}
}

func (p place) flight() string { return p.key() + " in " + p.dialect.String() }

// fly joins the flight for o, or starts it now.
func (c *Cache) fly(o place, seen *state, now time.Time, src *Source) <-chan singleflight.Result {
	return c.flights.group.DoChan(o.flight(), func() (landed any, err error) {
		if !c.flights.begin(o) {
			return nil, ErrClosed
		}
		defer c.flights.land(o)
		defer func() {
			// The group would repeat the panic where nothing can recover it.
			if p := recover(); p != nil {
				landed, err = unreachable(src.Dialect, now, fmt.Errorf("cache: the fetch panicked: %v", p)), nil
			}
		}()
		return c.flight(o, seen, now, src)
	})
}

// flight determines what holds for o and publishes it before it lands, so callers that arrive
// later find it in memory. A caller that just missed the last flight gets its result here.
func (c *Cache) flight(o place, s *state, now time.Time, src *Source) (*fetch.Result, error) {
	own := o.of(src.agent())
	if o != own && c.memory.find(own) != nil {
		return nil, elsewhere(own.agent)
	}
	if e := c.memory.find(o); e != nil {
		known := e.state.Load()
		if known != s && e.isFor(own.agent) {
			return c.terms.newest(known, now), nil
		}
		s = known
	}
	// Another process may know what this one does not, or know it better. So the Store is asked
	// before every fetch, and memory is only a copy of some of it.
	var stored consultation
	if c.backing != nil {
		stored = c.consult(o, s, now, src)
		if stored.own != nil {
			c.publish(own, stored.own, stored.at, src)
			return nil, elsewhere(own.agent)
		}
		if s = stored.state; stored.enough {
			c.publish(o, s, stored.at, src)
			return c.terms.newest(s, stored.at), nil
		}
		if held := c.held(s, stored); held != nil {
			stored.release()
			c.publish(o, held, stored.at, src)
			return c.terms.newest(held, stored.at), nil
		}
	}
	return c.fetch(o, s, src, stored)
}

// held is what holds of a state that was withheld, after the Store was asked again; nil: the site has to be asked.
func (c *Cache) held(s *state, stored consultation) *state {
	switch {
	case s == nil || s.moment == nil:
		return nil
	case stored.unread:
		return s.stillWithheld(stored.at)
	}
	s = s.released()
	if _, _, due := c.terms.at(s, stored.at); due != notDue {
		return nil
	}
	return s
}

// fetch is flight for an origin that has to be asked.
func (c *Cache) fetch(o place, s *state, src *Source, stored consultation) (*fetch.Result, error) {
	// With the file itself, a 304 gives it back to be stored again; without, only the rules.
	prev := stored.file
	if prev == nil {
		prev = s.validatable()
	}
	if c.KeepBody && prev != nil && prev.Body == nil {
		prev = nil // or a 304 would never bring the file
	}
	a := c.call(o.Origin, s, prev, src)
	switch {
	case a.err != nil:
		stored.release()
		if a.err == errBusy {
			c.rest(o, a.at)
		}
		return nil, a.err
	case unasked(a.result):
		stored.release()
		if s != nil {
			c.publish(o, s, a.at, src) // that the Store was asked for this User-Agent is new, or its callers would fly again at once
		}
		return c.terms.newest(a.state, a.at), nil
	}
	if stored.unread && !s.hasRules(a.at) {
		if a.state.assumed = nil; a.result.OfTheMoment() {
			a.state = a.state.withheld()
		}
	}
	var landed error
	if own := o.of(src.agent()); a.result.UserAgent != "" && o != own {
		o, landed = own, elsewhere(own.agent)
	}
	c.publish(o, a.state, a.at, src)
	if c.backing != nil {
		c.keep(o, a.state, a.result, prev, stored, a.at, src)
	}
	return c.terms.newest(a.state, a.at), landed
}

// rest puts off the next refresh of o that no caller waits for: it would have no turn either.
func (c *Cache) rest(o place, now time.Time) {
	if e := c.memory.find(o); e != nil {
		s := e.state.Load()
		if r, period, due := c.terms.at(s, now); due == inBackground {
			c.memory.putOff(e, s, r, c.clock.at(now)+min(period, busyPause))
		}
	}
}

// arrival is a result, and what is known of its origin from then on.
type arrival struct {
	result *fetch.Result
	state  *state
	at     time.Time
	err    error // ErrClosed, errBusy or the caller's mistake: there is no result, and nothing is kept
}

// arrived returns r as it comes after s.
func (c *Cache) arrived(s *state, r *fetch.Result, now time.Time) *arrival {
	if failed(r) {
		s = s.failedWith(&c.terms, c.terms.trim(r), now, c.draw)
	} else {
		s = c.terms.answeredWith(r, now, c.draw) // of the header as it came
		s.answer = c.terms.trim(r)
	}
	return &arrival{result: r, state: s, at: now}
}

func (c *Cache) publish(o place, s *state, now time.Time, src *Source) {
	r, period, due := c.terms.at(s, now)
	if due == awaited {
		r = c.terms.newest(s, now) // only for the callers that waited
	}
	c.memory.put(o, s, r, c.until(s, now, period, due), c.clock.at(c.terms.until(s, now)), src.agent())
}

// call runs Load with a context of its own: the end of one caller's must not fail the others,
// and its trace must not be called for them. If Load returns nothing, the result is
// unreachable.
func (c *Cache) call(o fetch.Origin, s *state, prev *fetch.Result, src *Source) *arrival {
	if c.flights.closed.Err() != nil {
		return &arrival{err: ErrClosed}
	}
	o = o.Clone() // which load may keep: this one may be part of an entry, or of a caller's URL
	ctx, cancel := context.WithTimeout(context.Background(), flightTimeout-returnTimeout)
	defer cancel()
	// A goroutine of its own, because a load may panic, exit, or not heed its context. It makes
	// the next state too, because its stack has grown already.
	loaded := make(chan *arrival, 1)
	c.flights.loading(1)
	go func() {
		defer c.flights.loading(-1)
		c.load(ctx, o, s, prev, src, loaded)
	}()
	hangs := time.NewTimer(flightTimeout)
	defer hangs.Stop()
	select {
	case a := <-loaded:
		return a
	case now := <-hangs.C:
		err := fmt.Errorf("cache: no robots.txt within %v", flightTimeout)
		return c.arrived(s, unreachable(src.Dialect, now, err), now)
	case <-c.flights.closed.Done():
		return &arrival{err: ErrClosed}
	}
}

// load has src load, and sends what came of it to loaded, whatever Load does.
func (c *Cache) load(ctx context.Context, o fetch.Origin, s *state, prev *fetch.Result, src *Source,
	loaded chan<- *arrival,
) {
	var a *arrival
	why := errors.New("cache: load ended its goroutine") // unless it returns or panics
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Errorf("cache: load panicked: %v", p)
		}
		if a == nil {
			now := time.Now()
			a = c.arrived(s, unreachable(src.Dialect, now, why), now)
		}
		loaded <- a
	}()
	if src.Load == nil {
		why = errors.New("cache: Source.Load is nil: set it to the Fetch of a fetch.Fetcher")
		return
	}
	res, err := src.Load(ctx, o, prev)
	now := time.Now()
	switch {
	case errors.Is(err, fetch.ErrBusy):
		a = &arrival{at: now, err: errBusy}
	case errors.Is(err, fetch.ErrSign):
		a = &arrival{at: now, err: err}
	default:
		a = c.arrived(s, src.checked(res, err, now), now)
	}
}
