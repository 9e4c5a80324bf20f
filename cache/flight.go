package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/unsent"
	"github.com/robotsgate/robotsgate/policy"
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
	closed   chan struct{}

	gate    sync.Mutex // keeps running from growing once closed
	running sync.WaitGroup
	loads   sync.WaitGroup // grows only in flights that run: a load may outlive its flight
	flying  atomic.Int64   // how many of the first there are, those that only give back their lock included,
	loading atomic.Int64   // and of the second
}

func (f *flights) init() {
	f.renewals = make(chan struct{}, maxRenewals)
	f.closed = make(chan struct{})
}

// enter reports whether a flight may start. If so, it must call leave.
func (f *flights) enter() bool {
	f.gate.Lock()
	defer f.gate.Unlock()
	if f.isClosed() {
		return false
	}
	f.running.Add(1)
	f.flying.Add(1)
	return true
}

func (f *flights) leave() {
	f.flying.Add(-1)
	f.running.Done()
}

// after runs unlock for a flight, behind its callers. A Locker may take its time.
func (f *flights) after(unlock func()) {
	f.flying.Add(1)
	f.running.Go(func() {
		defer f.flying.Add(-1)
		unlock()
	})
}

func (f *flights) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// close ends all flights.
func (f *flights) close() {
	f.gate.Lock()
	defer f.gate.Unlock()
	if !f.isClosed() {
		close(f.closed)
	}
}

// landed waits for the flights to end, which they soon do once closed. Like ended it waits no
// longer than ctx, and the error says how many are left.
func (f *flights) landed(ctx context.Context) error {
	if await(ctx, f.running.Wait) || f.flying.Load() == 0 {
		return nil
	}
	return f.left(ctx)
}

// ended waits for the flights and their loads to end.
func (f *flights) ended(ctx context.Context) error {
	if await(ctx, func() { f.running.Wait(); f.loads.Wait() }) || f.flying.Load()+f.loading.Load() == 0 {
		return nil
	}
	return f.left(ctx)
}

func (f *flights) left(ctx context.Context) error {
	n := max(f.flying.Load(), f.loading.Load())
	return fmt.Errorf("cache: robots.txt is still being read for %d origins: %w", n, ctx.Err())
}

// await waits for wait to return, no longer than ctx, and reports whether it has returned.
func await(ctx context.Context, wait func()) bool {
	returned := make(chan struct{})
	go func() {
		wait()
		close(returned)
	}()
	select {
	case <-returned:
		return true
	case <-ctx.Done():
		return false
	}
}

// wait joins the flight for o, or starts it, and waits no longer than ctx. If the last good copy
// would serve in an outage, it waits no longer than maxBridged. seen is what the caller found
// in memory, and was not enough; nil: nothing.
func (c *Cache) wait(ctx context.Context, o place, seen *state, src *Source) (*fetch.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	patience := time.NewTimer(maxBridged)
	defer patience.Stop()
	landed := c.fly(o, seen, src)
	var again <-chan time.Time // when to start another, if that had no turn
	for {
		select {
		case flown := <-landed:
			r, _ := flown.Val.(*fetch.Result)
			switch {
			case !o.suits(r, src):
				return c.getAt(ctx, place{o.Origin, src.agent(), o.dialect}, src)
			case flown.Err == errOthers: // not for the caller that led the flight, but for this one
				return c.getAt(ctx, o, src)
			case flown.Err != errNoTurn:
				return r, flown.Err
			}
			landed, again = nil, time.After(turnPause)
		case <-again:
			seen = nil
			if e := c.memory.find(o); e != nil {
				seen = e.state.Load()
			}
			landed = c.fly(o, seen, src)
		case now := <-patience.C:
			if r := c.bridge(o, landed, now); r != nil && o.suits(r, src) {
				return r, nil
			}
			patience.Reset(time.Second) // the flight may find a copy in the Store
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// bridge returns the copy of o that stands in for a refresh that has taken too long, or nil. No
// other caller then waits for the refresh until it has landed. A nil landed is a refresh that
// is still to be started.
func (c *Cache) bridge(o place, landed <-chan singleflight.Result, now time.Time) *fetch.Result {
	e := c.memory.find(o)
	if e == nil {
		return nil
	}
	r := c.terms.bridge(e.state.Load(), now)
	if r != nil && landed != nil && e.overdue.CompareAndSwap(false, true) {
		go func() {
			<-landed // it does: a flight has a deadline
			e.overdue.Store(false)
		}()
	}
	return r
}

// offer puts a copy from the Store into memory, for callers whose flight may last. It
// is expired there, so each reader decides whether it will do.
func (c *Cache) offer(o place, s *state, now time.Time) {
	if c.terms.bridge(s, now) != nil {
		c.memory.put(o, s, s.answer, c.clock.at(now), 0)
	}
}

// renew starts a flight for an entry behind its readers, unless the entry has one, or there are
// too many. An origin that hangs or has no turn, and is asked for again and again, must not take the
// places of others.
func (c *Cache) renew(e *entry, seen *state, src *Source) {
	if !e.renewing.CompareAndSwap(false, true) {
		return
	}
	select {
	case c.flights.renewals <- struct{}{}:
	default:
		e.renewing.Store(false)
		return
	}
	landed := c.fly(e.place(), seen, src)
	// Not in the flight: this may have joined one that was under way.
	go func() {
		flown := <-landed // it does: a flight has a deadline
		<-c.flights.renewals
		if flown.Err == errNoTurn {
			time.AfterFunc(turnPause, func() { e.renewing.Store(false) })
			return
		}
		e.renewing.Store(false)
	}()
}

func (c *Cache) fly(o place, seen *state, src *Source) <-chan singleflight.Result {
	return c.flights.group.DoChan(o.flight(), func() (landed any, err error) {
		if !c.flights.enter() {
			return nil, ErrClosed
		}
		defer c.flights.leave()
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
	now := time.Now()
	if e := c.memory.find(o); e != nil {
		if known := e.state.Load(); known != s {
			return c.terms.newest(known, now), nil
		}
	}
	// Another process may know what this one does not, or know it better. So the Store is asked
	// before every fetch, and memory is only a copy of some of it.
	var stored consultation
	if c.backing != nil {
		stored = c.consult(o, s, now)
		if s, now = stored.state, stored.at; stored.enough {
			c.publish(o, s, now)
			return c.terms.newest(s, now), nil
		}
	}
	if s.forOthers(o, src) {
		stored.release()
		c.publish(o, s, now)
		return s.own(), errOthers
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
	if ofAProxy(a.result) {
		c.flights.after(stored.release)
		return c.terms.newest(a.state, a.at), nil
	}
	c.publish(o, a.state, a.at)
	if c.backing != nil {
		c.keep(o, a.state, a.result, prev, stored, a.at)
	}
	return c.terms.newest(a.state, a.at), nil
}

// ofAProxy reports whether r is a 407 of a proxy (RFC 9110 §15.5.8). It says nothing about the
// origin: the callers that waited get it, and it is kept nowhere.
func ofAProxy(r *fetch.Result) bool {
	return r.Err != nil && r.StatusCode == http.StatusProxyAuthRequired
}

// arrival is a result, and what is known of its origin from then on.
type arrival struct {
	result *fetch.Result
	state  *state
	at     time.Time

	mistake error // of the caller: nothing was asked, and nothing is kept
}

// arrived returns r as it comes after s.
func (c *Cache) arrived(s *state, r *fetch.Result) *arrival {
	now := time.Now()
	return &arrival{result: r, state: c.next(s, r, now), at: now}
}

// next is the state after r has arrived.
func (c *Cache) next(s *state, r *fetch.Result, now time.Time) *state {
	if failed(r) {
		return s.failedWith(&c.terms, trim(r), now, c.draw)
	}
	s = c.terms.answeredWith(r, now, c.draw) // of the header as it came
	s.answer = trim(r)
	return s
}

func (c *Cache) publish(o place, s *state, now time.Time) {
	r, period, due := c.terms.at(s, now)
	if due == awaited {
		r = c.terms.newest(s, now) // only for the callers that waited
	}
	c.memory.put(o, s, r, c.until(s, now, period, due), c.clock.at(c.terms.until(s, now)))
}

// call runs Load with a context of its own: the end of one caller's must not fail the others,
// and its trace must not be called for them. If Load returns nothing, the result is
// unreachable. The error is ErrClosed or errNoTurn.
func (c *Cache) call(o fetch.Origin, s *state, prev *fetch.Result, src *Source) (*arrival, error) {
	if c.flights.isClosed() {
		return nil, ErrClosed
	}
	o = o.Clone() // which load may keep: this one may be part of an entry, or of a caller's URL
	ctx, cancel := context.WithTimeout(context.Background(), flightTimeout-returnTimeout)
	defer cancel()
	// A goroutine of its own, because a load may panic, exit, or not heed its context. It makes
	// the next state too, because its stack has grown already.
	loaded := make(chan *arrival, 1) // nil: the origin was not asked
	c.flights.loading.Add(1)
	c.flights.loads.Go(func() {
		defer c.flights.loading.Add(-1)
		c.load(ctx, o, s, prev, src, loaded)
	})
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
		return c.arrived(s, unreachable(src.Dialect, err)), nil
	case <-c.flights.closed:
		return nil, ErrClosed
	}
}

// load has src load, and sends what came of it to loaded, whatever Load does.
func (c *Cache) load(ctx context.Context, o fetch.Origin, s *state, prev *fetch.Result, src *Source,
	loaded chan<- *arrival,
) {
	var a *arrival
	why := errExited
	defer func() {
		if p := recover(); p != nil {
			why = fmt.Errorf("cache: load panicked: %v", p)
		}
		if why != nil {
			a = c.arrived(s, unreachable(src.Dialect, why))
		}
		loaded <- a
	}()
	res, err := src.Load(ctx, o, prev)
	switch {
	case errors.Is(err, fetch.ErrNoTurn):
	case errors.Is(err, unsent.ErrSign):
		a = &arrival{mistake: err}
	default:
		a = c.arrived(s, src.checked(res, err))
	}
	why = nil
}

// errExited is why there is no result, unless Load returns or panics.
var errExited = errors.New("cache: load ended its goroutine")

// checked holds Load to its contract.
func (src *Source) checked(r *fetch.Result, err error) *fetch.Result {
	switch {
	case err != nil:
		return unreachable(src.Dialect, errors.New(err.Error()))
	case r == nil || r.Policy == nil:
		return unreachable(src.Dialect, errors.New("cache: load returned neither a policy nor an error"))
	}
	if r.Err != nil {
		text := *r
		text.Err = errors.New(r.Err.Error()) // called here, where it may panic
		r = &text
	}
	return r.In(src.Dialect)
}

func unreachable(d policy.Dialect, err error) *fetch.Result {
	return &fetch.Result{Policy: policy.Unreachable(), Dialect: d, Err: err, Time: time.Now()}
}
