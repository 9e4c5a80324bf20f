package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

type loadFunc = func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)

const (
	// flightTimeout ends a flight whose load does not end by itself. A Fetcher needs
	// 30 seconds, but may have to queue for its turn first.
	flightTimeout = 2 * time.Minute

	// maxRenewals bounds the fetches that nobody waits for, so that they do not stand
	// in the way of those that somebody does.
	maxRenewals = 32
)

// flights are the fetches under way, one per origin.
type flights struct {
	group    singleflight.Group
	renewals chan struct{} // holds one element for each fetch in the background
	closed   chan struct{}

	gate    sync.Mutex // keeps running from growing once closed
	running sync.WaitGroup
}

func (f *flights) init() {
	f.renewals = make(chan struct{}, maxRenewals)
	f.closed = make(chan struct{})
}

// enter reports whether a flight may start. If so, it must call running.Done.
func (f *flights) enter() bool {
	f.gate.Lock()
	defer f.gate.Unlock()
	select {
	case <-f.closed:
		return false
	default:
		f.running.Add(1)
		return true
	}
}

// close ends all flights and reports whether they were open.
func (f *flights) close() bool {
	f.gate.Lock()
	defer f.gate.Unlock()
	select {
	case <-f.closed:
		return false
	default:
		close(f.closed)
		return true
	}
}

// end waits for the flights to end, no longer than ctx.
func (f *flights) end(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		f.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait joins the flight for o, or starts it, and waits no longer than ctx. What the
// caller has seen in memory, if anything, was not enough.
func (c *Cache) wait(ctx context.Context, o fetch.Origin, seen *state, load loadFunc) (*fetch.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case landed := <-c.fly(o, seen, load):
		r, _ := landed.Val.(*fetch.Result)
		return r, landed.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// renew lets a flight for an entry run behind its readers, unless one does or too many do:
// an origin that hangs, and is asked about again and again, must not take the places of all.
func (c *Cache) renew(e *entry, seen *state, load loadFunc) {
	if !e.renewing.CompareAndSwap(false, true) {
		return
	}
	select {
	case c.flights.renewals <- struct{}{}:
	default:
		e.renewing.Store(false)
		return
	}
	landed := c.fly(e.origin, seen, load)
	// Not in the flight: this may have joined one that was under way.
	go func() {
		<-landed // it does: a flight has a deadline
		e.renewing.Store(false)
		<-c.flights.renewals
	}()
}

func (c *Cache) fly(o fetch.Origin, seen *state, load loadFunc) <-chan singleflight.Result {
	return c.flights.group.DoChan(o.String(), func() (landed any, err error) {
		if !c.flights.enter() {
			return nil, ErrClosed
		}
		defer c.flights.running.Done()
		defer func() {
			// The group would end the process.
			if p := recover(); p != nil {
				landed, err = unreachable(fmt.Errorf("cache: the fetch panicked: %v", p)), nil
			}
		}()
		return c.flight(o, seen, load)
	})
}

// flight finds out what holds for o and remembers it before it lands: who comes later
// finds it in memory, and who came too late to see the last flight sees its result here.
func (c *Cache) flight(o fetch.Origin, s *state, load loadFunc) (*fetch.Result, error) {
	if e := c.lookup(o); e != nil {
		if known := e.state.Load(); known != s {
			return c.terms.newest(known, time.Now()), nil
		}
	}
	// Another process may know what this one does not, or know it better: with a Store
	// that is asked before every fetch, memory is just a copy of some of it.
	var stored consultation
	if c.second.store != nil {
		stored = c.consult(o, s)
		if s = stored.state; stored.enough {
			now := time.Now()
			c.publish(o, s, now)
			return c.terms.newest(s, now), nil
		}
	}
	// With the file itself, a 304 gives it back to be stored again; without, the rules.
	prev := stored.file
	if prev == nil {
		prev = s.validatable()
	}
	r := c.call(o, prev, load)
	if r == nil {
		if stored.unlock != nil {
			stored.unlock()
		}
		return nil, ErrClosed
	}
	if r.Err == nil {
		c.dialect.Store(int32(r.Dialect) + 1)
	}
	now := time.Now()
	if _, ok := r.Err.(unasked); ok { // nothing to keep; who waits gets what an outage would leave
		if stored.unlock != nil {
			go stored.unlock()
		}
		return c.terms.newest(s.failedWith(&c.terms, r, now, c.draw), now), nil
	}
	s = c.next(s, r, now)
	c.publish(o, s, now)
	if c.second.store != nil {
		c.keep(o, s, r, prev, stored, now)
	}
	return c.terms.newest(s, now), nil
}

// next is the state after r has arrived.
func (c *Cache) next(s *state, r *fetch.Result, now time.Time) *state {
	if r.Err != nil {
		return s.failedWith(&c.terms, slim(r), now, c.draw)
	}
	s = c.terms.answeredWith(r, now, c.draw) // of the header as it came
	s.answer = slim(r)
	return s
}

func (c *Cache) publish(o fetch.Origin, s *state, now time.Time) {
	r, period, due := c.terms.at(s, now)
	if due == awaited {
		r = c.terms.newest(s, now) // for nobody but those who waited
	}
	c.put(o, s, r, c.until(s, now, period, due))
}

// call runs load for nobody in particular: with no context of a caller, whose end must
// not fail the others and whose trace would be called for them. It returns nil if the
// cache was closed, and an unreachable result whenever load does not give one.
func (c *Cache) call(o fetch.Origin, prev *fetch.Result, load loadFunc) *fetch.Result {
	ctx, cancel := context.WithTimeout(context.Background(), flightTimeout)
	defer cancel()
	o = o.Clone() // which load may keep: this one may be part of an entry, or of a caller's URL
	// A goroutine of its own, because a load may panic, exit, or not heed its context.
	loaded := make(chan *fetch.Result, 1)
	c.flights.running.Go(func() { // which the flight keeps above zero
		r := unreachable(errors.New("cache: load ended its goroutine"))
		defer func() {
			if p := recover(); p != nil {
				r = unreachable(fmt.Errorf("cache: load panicked: %v", p))
			}
			loaded <- r
		}()
		res, err := load(ctx, o, prev)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			r = unreachable(unasked(err.Error()))
			return
		}
		r = checked(res, err)
	})
	select {
	case r := <-loaded:
		return r
	case <-ctx.Done():
		return unreachable(fmt.Errorf("cache: no robots.txt within %v", flightTimeout))
	case <-c.flights.closed:
		return nil
	}
}

// checked holds a load to its contract.
func checked(r *fetch.Result, err error) *fetch.Result {
	switch {
	case err != nil:
		return unreachable(errors.New(err.Error()))
	case r == nil || r.Policy == nil:
		return unreachable(errors.New("cache: load returned neither a policy nor an error"))
	case r.Err != nil:
		text := *r
		text.Err = errors.New(r.Err.Error()) // called here, where it may panic
		return &text
	}
	return r
}

// unasked is the Err of a load that ran out of time before the flight has: it was still
// waiting for something of ours, and the origin has not been asked.
type unasked string

func (e unasked) Error() string { return string(e) }

func unreachable(err error) *fetch.Result {
	return &fetch.Result{Policy: policy.Unreachable(), Err: err, Time: time.Now()}
}
