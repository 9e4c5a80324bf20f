package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

	// turnPause is how long to wait after a load that had no turn: it may have said so at once.
	turnPause = 5 * time.Second

	// maxBridged is how long a caller waits for a refresh if the last good copy can stand in.
	maxBridged = 3 * time.Second

	// maxRenewals bounds the fetches that no caller waits for, so they do not delay the others.
	maxRenewals = 32
)

// errNoTurn ends a flight whose Load did not get to ask the origin, mostly because of a queue.
var errNoTurn = errors.New("cache: no turn to fetch robots.txt")

// flights are the fetches under way, one per origin.
type flights struct {
	group    singleflight.Group
	renewals chan struct{} // holds one element for each fetch in the background
	closed   context.Context
	end      context.CancelFunc

	mu      sync.Mutex // keeps running from growing once closed
	running tally      // with those that only give back their lock
	loads   tally      // grows only in flights that run: a load may outlive its flight
}

func (f *flights) init() {
	f.renewals = make(chan struct{}, maxRenewals)
	f.closed, f.end = context.WithCancel(context.Background())
}

// enter reports whether a flight may start. If so, it must call running.done.
func (f *flights) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Err() != nil {
		return false
	}
	f.running.add()
	return true
}

func (f *flights) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
}

type tally struct {
	group sync.WaitGroup
	n     atomic.Int64
}

func (t *tally) add() {
	t.group.Add(1)
	t.n.Add(1)
}

func (t *tally) done() {
	t.n.Add(-1)
	t.group.Done()
}

// run runs f behind the callers.
func (t *tally) run(f func()) {
	t.add()
	go func() {
		defer t.done()
		f()
	}()
}

// wait waits until nothing is under way, no longer than ctx. The error says how much is left.
func (t *tally) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		t.group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		if n := t.n.Load(); n > 0 {
			return fmt.Errorf("cache: robots.txt is still being read for %d origins: %w", n, ctx.Err())
		}
	}
	return nil
}

// wait joins the flight for o, or starts it, and waits no longer than ctx. If the last good copy
// would serve in an outage, it waits no longer than maxBridged. seen is what the caller found
// in memory, and was not enough; nil: nothing.
func (c *Cache) wait(ctx context.Context, o place, seen *state, src *Source) (*fetch.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	start, patience := time.Now(), time.NewTimer(maxBridged)
	defer patience.Stop()
	landed := c.fly(o, seen, src)
	var again <-chan time.Time // when to start another, if that had no turn
	for {
		select {
		case flown := <-landed:
			r, _ := flown.Val.(*fetch.Result)
			agent, apart := flown.Err.(elsewhere)
			switch e := c.memory.find(o); {
			case apart && (r == nil || string(agent) != src.agent()):
				o = o.of(src.agent())
				if e = c.memory.find(o); e != nil {
					return c.look(ctx, e, src)
				}
				return c.wait(ctx, o, nil, src)
			case apart:
				return r, nil
			case flown.Err == nil && e != nil && !e.isFor(src.agent()): // whose own place was not looked at
				landed = c.fly(o, e.seen(), src)
			case flown.Err != errNoTurn:
				return r, flown.Err
			default:
				landed, again = nil, time.After(turnPause)
			}
		case <-again:
			landed = c.fly(o, c.memory.find(o).seen(), src)
		case now := <-patience.C:
			if r := c.bridge(o, landed, now, src); r != nil {
				return r, nil
			}
			patience.Reset(time.Second) // the flight may find a copy in the Store
		case <-ctx.Done():
			if landed != nil { // the copy is for all who come later, even if no one has waited so long
				time.AfterFunc(maxBridged-time.Since(start), func() { c.bridge(o, landed, time.Now(), src) })
			}
			return nil, ctx.Err()
		}
	}
}

// bridge returns the copy of o that stands in for a refresh that has taken too long, or nil. No
// other caller then waits for the refresh until it has landed. A nil landed is a refresh that
// is still to be started.
func (c *Cache) bridge(o place, landed <-chan singleflight.Result, now time.Time, src *Source) *fetch.Result {
	e := c.memory.find(o)
	if e == nil || !e.isFor(src.agent()) {
		return nil
	}
	r := c.terms.bridge(e.state.Load(), now)
	if r != nil && landed != nil && e.flags.Or(overdue)&overdue == 0 {
		go func() {
			<-landed // it does: a flight has a deadline
			e.flags.And(^uint32(overdue))
		}()
	}
	return r
}

// renew starts a flight for an entry behind its readers, unless the entry has one, or there are
// too many. An origin that hangs or has no turn, and is asked for again and again, must not take the
// places of others.
func (c *Cache) renew(e *entry, seen *state, src *Source) {
	if e.flags.Or(renewing)&renewing != 0 {
		return
	}
	select {
	case c.flights.renewals <- struct{}{}:
	default:
		e.flags.And(^uint32(renewing))
		return
	}
	landed := c.fly(e.place(), seen, src)
	// Not in the flight: this may have joined one that was under way.
	go func() {
		flown := <-landed // it does: a flight has a deadline
		<-c.flights.renewals
		if flown.Err == errNoTurn {
			time.AfterFunc(turnPause, func() { e.flags.And(^uint32(renewing)) })
			return
		}
		e.flags.And(^uint32(renewing))
	}()
}

func (c *Cache) fly(o place, seen *state, src *Source) <-chan singleflight.Result {
	return c.flights.group.DoChan(o.flight(), func() (landed any, err error) {
		if !c.flights.enter() {
			return nil, ErrClosed
		}
		defer c.flights.running.done()
		defer func() {
			// The group would repeat the panic where nothing can recover it.
			if p := recover(); p != nil {
				landed, err = unreachable(src.Dialect, fmt.Errorf("cache: the fetch panicked: %v", p)), nil
			}
		}()
		return c.flight(o, seen, src)
	})
}

// flight determines what holds for o and publishes it before it lands, so callers that arrive
// later find it in memory. A caller that just missed the last flight gets its result here.
func (c *Cache) flight(o place, s *state, src *Source) (*fetch.Result, error) {
	now, own := time.Now(), o.of(src.agent())
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
		if s, now = stored.state, stored.at; stored.enough {
			c.publish(o, s, now, src)
			return c.terms.newest(s, now), nil
		}
	}
	return c.fetch(o, s, src, stored)
}

// fetch is flight for an origin that has to be asked.
func (c *Cache) fetch(o place, s *state, src *Source, stored consultation) (*fetch.Result, error) {
	// With the file itself, a 304 gives it back to be stored again; without, only the rules.
	prev := stored.file
	if prev == nil {
		prev = s.validatable()
	}
	a, err := c.call(o.Origin, s, prev, src)
	if err != nil {
		stored.release()
		return nil, err
	}
	if unasked(a.result) {
		stored.release()
		return c.terms.newest(a.state, a.at), nil
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

// arrival is a result, and what is known of its origin from then on.
type arrival struct {
	result *fetch.Result
	state  *state
	at     time.Time

	mistake error // of the caller: nothing was asked, and nothing is kept
}

// arrived returns r as it comes after s.
func (c *Cache) arrived(s *state, r *fetch.Result, now time.Time) *arrival {
	if failed(r) {
		s = s.failedWith(&c.terms, trim(r), now, c.draw)
	} else {
		s = c.terms.answeredWith(r, now, c.draw) // of the header as it came
		s.answer = trim(r)
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
// unreachable. The error is ErrClosed or errNoTurn.
func (c *Cache) call(o fetch.Origin, s *state, prev *fetch.Result, src *Source) (*arrival, error) {
	if c.flights.closed.Err() != nil {
		return nil, ErrClosed
	}
	o = o.Clone() // which load may keep: this one may be part of an entry, or of a caller's URL
	ctx, cancel := context.WithTimeout(context.Background(), flightTimeout-returnTimeout)
	defer cancel()
	// A goroutine of its own, because a load may panic, exit, or not heed its context. It makes
	// the next state too, because its stack has grown already.
	loaded := make(chan *arrival, 1) // nil: the origin was not asked
	c.flights.loads.run(func() { c.load(ctx, o, s, prev, src, loaded) })
	hangs := time.NewTimer(flightTimeout)
	defer hangs.Stop()
	select {
	case a := <-loaded:
		if a == nil {
			return nil, errNoTurn
		}
		return a, a.mistake
	case <-hangs.C:
		err := fmt.Errorf("cache: no robots.txt within %v", flightTimeout)
		return c.arrived(s, unreachable(src.Dialect, err), time.Now()), nil
	case <-c.flights.closed.Done():
		return nil, ErrClosed
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
		if why != nil {
			a = c.arrived(s, unreachable(src.Dialect, why), time.Now())
		}
		loaded <- a
	}()
	res, err := src.Load(ctx, o, prev)
	switch {
	case errors.Is(err, fetch.ErrBusy):
	case errors.Is(err, fetch.ErrSign):
		a = &arrival{mistake: err}
	default:
		a = c.arrived(s, src.checked(res, err), time.Now())
	}
	why = nil
}
