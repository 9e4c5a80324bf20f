package client

import (
	"container/list"
	"context"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/fetch"
)

// lane is what a Pacer knows of one origin. Pacer.mu guards it.
//
// A rate.Limiter (golang.org/x/time) does not do. Its bucket fills from the start of a
// request, while the delay has to run from the end too. A reservation, once made, keeps
// its time, whether a pause comes in between or a caller ahead gives up. And it does not
// count what is in flight.
type lane struct {
	lessons  []lesson  // what robots.txt asks for
	past     pace      // what it asked for when those who still owe began to wait
	read     time.Time // when the newest robots.txt was read that a Transport has decided by
	last     time.Time // the latest start or end of a request
	granted  time.Time // when Wait last gave a turn, or other processes had theirs
	grants   []grant   // turns that Wait gave and no request has used, the latest last
	resume   time.Time // no start before: the site asked for a pause, or suffers
	strain   int       // failures, less the good answers since
	underway int
	waiting  list.List // of *waiter; the first is the next to go
	owing    int       // how many of waiting owe the past delay
	key      string    // the origin, for Pacer.Turns; empty: not yet asked for
}

// mostLanes is how many origins are remembered, besides those that are busy.
const mostLanes = 50_000

// lane returns the lane of o. It makes one if there is none.
func (p *Pacer) lane(o fetch.Origin, now time.Time) *lane {
	if p.lanes == nil {
		// Bounded by forget, which knows what may go; the LRU does not.
		p.lanes, _ = simplelru.NewLRU[fetch.Origin, *lane](math.MaxInt, nil)
	}
	if l, ok := p.lanes.Get(o); ok {
		return l
	}
	p.forget(now)
	l := new(lane)
	p.lanes.Add(o.Clone(), l) // a key must not keep the text of a whole URL
	return l
}

// forget makes room for one more lane, in constant time. It looks at the longest unused
// lanes, and gives those that may not go a second chance at the other end.
//
// Forgetting a lane whose delay has passed breaks no spacing: the next decision teaches
// what was learned again. Forgetting a pause is the lesser evil against a million origins
// that all answer "come back tomorrow".
func (p *Pacer) forget(now time.Time) {
	const looks = 16
	most := p.most
	if most == 0 {
		most = mostLanes
	}
	var paused fetch.Origin // no lane has the zero Origin
	for range looks {
		if p.lanes.Len() < most {
			return
		}
		o, l, _ := p.lanes.GetOldest()
		idle := l.underway == 0 && l.waiting.Len() == 0 && !p.spaced(l, l.latest(), now).After(now)
		if idle && !l.resume.After(now) {
			p.lanes.Remove(o)
			continue
		}
		if idle && paused == (fetch.Origin{}) {
			paused = o
		}
		p.lanes.Get(o) // moves it to the other end
	}
	p.lanes.Remove(paused)
}

// asking is what a caller wants a turn for.
type asking uint8

const (
	asWait   asking = iota // a request still to come: takes no place
	asPage                 // a request
	asHolder               // a request whose turn Wait has obtained
	asRobots               // robots.txt, without which the others may be for nothing
)

// ahead reports whether a goes before those that merely came earlier.
func (a asking) ahead() bool { return a == asHolder || a == asRobots }

// holdTurn is how long a turn that Wait gave can be used. It bounds how long an unused
// turn (the rules forbade the request after all) lets a later request go ahead of others.
const holdTurn = 10 * time.Second

// waiter is a caller in the queue of a lane.
type waiter struct {
	as    asking
	visit uint64        // the target, for asWait
	wake  chan struct{} // holds one: things have changed, look again
	owes  bool          // has to keep lane.past

	// With Pacer.Turns:
	ask   turns.Ask       // what the store may have of this waiter, if it has a name
	least time.Time       // the turn comes no sooner, says the store
	due   time.Time       // when to ask the store again,
	early <-chan struct{} // or sooner, when this is closed
	fault error           // why it could not be asked
	lease *lease          // the place that it gave
}

// grant is a turn that Wait gave. It is for a request with the same target, and for no other.
type grant struct {
	target uint64 // of the target, its hash: a lane keeps no text of URLs
	at     int64  // in Unix time: nanoseconds
}

// mostGrants bounds what is kept of Waits whose requests do not come, at an origin without a delay.
const mostGrants = 256

var targetSeed = maphash.MakeSeed()

// hashTarget tells the request targets of an origin apart. What has none is sent by no Transport.
func hashTarget(u *url.URL) uint64 {
	var buf [targetBuffer]byte
	target, _ := requestTarget(buf[:0], u)
	return maphash.String(targetSeed, target)
}

// take is turn for what needs no second decision.
func (p *Pacer) take(ctx context.Context, o fetch.Origin, as asking) (pl place, held time.Duration, err error) {
	return p.turn(ctx, o, as, recheck{})
}

// turn waits for a turn at o and returns how long that took. Unless the turn was for
// Wait, it then takes a place, which has to be given back with end. The error is errAgain
// if the turn came, but r does not hold any more.
func (p *Pacer) turn(ctx context.Context, o fetch.Origin, as asking, r recheck,
) (pl place, held time.Duration, err error) {
	if ctx.Err() != nil {
		return pl, 0, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	l := p.lane(o, now)
	if as != asRobots {
		if err := p.tooSlow(o, l, now); err != nil {
			return pl, 0, err
		}
	}
	if as == asPage && len(l.grants) > 0 && r.req != nil && l.useGrant(hashTarget(r.req.URL), now) {
		as = asHolder
	}
	if at, full := p.earliest(l, now, as); p.Turns == nil && !full && !at.After(now) &&
		(as.ahead() || l.waiting.Len() == 0) {
		l.start(as, r.visit, now)
		return place{lane: l, began: now}, 0, nil
	}
	return p.queue(ctx, o, l, as, r, now)
}

// queue is turn if it has to wait, from begin on. It is called and returns with p.mu held.
// Only the first in line has a timer. It wakes the next when it leaves, with a turn or
// without.
func (p *Pacer) queue(ctx context.Context, o fetch.Origin, l *lane, as asking, r recheck, begin time.Time,
) (pl place, held time.Duration, err error) {
	w := &waiter{as: as, visit: r.visit, wake: make(chan struct{}, 1)}
	e := l.join(w)
	defer func() {
		p.withdraw(l, w)
		l.leave(e)
	}()
	deadline, hasDeadline := ctx.Deadline()
	checked := p.Turns != nil // it was decided on just now, and may not have to wait
	for now := begin; ; now = time.Now() {
		held = now.Sub(begin)
		at, full := p.earliest(l, now, as)
		at = later(at, w.least)
		mayGo := l.waiting.Front() == e && !full
		switch {
		case r.try && (!mayGo || later(at, w.due).After(now)):
			if !at.After(now) {
				at = w.due
			}
			return pl, held, w.because(lateAt(o, p.next(l, at, l.waiting.Len()-1), now, l.resume.After(now)))
		case hasDeadline && at.After(deadline):
			if !at.After(now) { // ctx has ended, and does not say so yet
				return pl, held, w.because(context.DeadlineExceeded)
			}
			return pl, held, lateAt(o, at, now, l.resume.After(deadline))
		case !mayGo || later(at, w.due).After(now):
			checked = false
			if err := p.sleep(ctx, w, later(at, w.due).Sub(now), mayGo); err != nil {
				return pl, time.Since(begin), w.because(err)
			}
		case !checked:
			if checked = p.recheck(ctx, l, &r); ctx.Err() != nil {
				return pl, time.Since(begin), w.because(context.Cause(ctx))
			}
			if !checked {
				return pl, time.Since(begin), errAgain
			}
		default:
			if started, err := p.start(ctx, o, l, w, now); started || err != nil {
				return place{l, w.lease, l.last}, held, err
			}
			checked = false
		}
	}
}

// start takes the turn of w, the first in line, and reports whether it could: Turns may know
// better. The error is that of tooSlow, or the end of ctx.
func (p *Pacer) start(ctx context.Context, o fetch.Origin, l *lane, w *waiter, now time.Time) (bool, error) {
	if w.as != asRobots {
		if err := p.tooSlow(o, l, now); err != nil {
			return false, err // learned since w joined
		}
	}
	if p.Turns != nil {
		if ok, err := p.ask(ctx, o, l, w); !ok {
			return false, err
		}
		now = time.Now()
	}
	l.start(w.as, w.visit, now)
	return true, nil
}

// recheck is r.holds, without the lock: robots.txt may go ahead meanwhile. What is learned
// of it may put the turn off, and then the answer is too old when the turn comes.
func (p *Pacer) recheck(ctx context.Context, l *lane, r *recheck) bool {
	newest := l.read
	if l.resume.After(r.resume) {
		newest = later(newest, l.resume) // a pause may outlast what was looked up
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		r.resume = l.resume // a pause that the look-up itself led to is no reason for another
	}()
	return r.holds(ctx, newest)
}

// sleep returns, without the lock meanwhile, when it is time to look again: for the first in
// line after d at the latest. The error is the context's cause.
func (p *Pacer) sleep(ctx context.Context, w *waiter, d time.Duration, first bool) error {
	p.mu.Unlock()
	defer p.mu.Lock()
	var due <-chan time.Time
	if first {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-w.wake:
	case <-w.early:
		w.due, w.least, w.early = time.Time{}, time.Time{}, nil
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // of two that are ready, select picks any
		return context.Cause(ctx)
	}
	return nil
}

// begin makes now the start of a request that has waited for its connection: others keep their distance
// from that. If others have started since its turn came, it first keeps its distance from them. The error is
// errAgain if a pause has begun, or the context's cause.
func (p *Pacer) begin(ctx context.Context, pl *place) error {
	for {
		p.mu.Lock()
		now := time.Now()
		at := now
		if pl.last.After(pl.began) {
			at = p.spaced(pl.lane, pl.last, now)
		}
		paused := pl.resume.After(now)
		if !paused && !at.After(now) {
			pl.last, pl.began = now, now
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
		if paused {
			return errAgain
		}
		select {
		case <-time.After(at.Sub(now)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end gives a place back.
func (p *Pacer) end(l place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.lease != nil {
		p.endShared(l)
		return
	}
	l.last = time.Now()
	l.underway--
	l.wakeFirst()
}

// note hands an answer to the lane. Those who wait learn at once of a new pause.
func (p *Pacer) note(l place, status int, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failed := status == 0 || status == http.StatusTooManyRequests || status >= 500
	p.answered(l.lane, failed, retryAfter, time.Now())
	if l.lease != nil {
		p.noteShared(l, failed, retryAfter)
	}
	l.wakeFirst()
}

// join puts w behind the last of those that it may not go ahead of. Robots.txt goes first
// of all: the first in line may be waiting for what it says.
func (l *lane) join(w *waiter) *list.Element {
	if !w.as.ahead() {
		return l.waiting.PushBack(w)
	}
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		other := e.Value.(*waiter).as
		if !other.ahead() || w.as == asRobots && other != asRobots {
			return l.waiting.InsertBefore(w, e)
		}
	}
	return l.waiting.PushBack(w)
}

func (l *lane) leave(e *list.Element) {
	if l.waiting.Remove(e).(*waiter).owes {
		l.paid()
	}
	l.wakeFirst()
}

// wakeFirst lets the first in line look again.
func (l *lane) wakeFirst() {
	e := l.waiting.Front()
	if e == nil {
		return
	}
	select {
	case e.Value.(*waiter).wake <- struct{}{}:
	default: // is awake already, or will be
	}
}

// start gives a turn. visit is the target that it is for, if that is a request to come.
func (l *lane) start(as asking, visit uint64, now time.Time) {
	if as == asWait {
		l.lapse(now)
		l.granted = now
		l.grants = append(l.grants, grant{visit, now.UnixNano()})
		return
	}
	l.last = now
	l.underway++
}

// lapse drops the turns of Wait that came too long ago, or are too many.
func (l *lane) lapse(now time.Time) {
	n := 0
	for n < len(l.grants) && (len(l.grants)-n >= mostGrants || now.UnixNano()-l.grants[n].at >= int64(holdTurn)) {
		n++
	}
	l.grants = slices.Delete(l.grants, 0, n)
}

// useGrant reports whether a request can go on a turn that Wait obtained for its target, and uses it.
func (l *lane) useGrant(target uint64, now time.Time) bool {
	l.lapse(now)
	i := slices.IndexFunc(l.grants, func(g grant) bool { return g.target == target })
	if i >= 0 {
		l.grants = slices.Delete(l.grants, i, i+1)
	}
	return i >= 0
}

// earliest is when a request may start, as far as is known at now; never before now. If
// every place is taken (full), it is a lower bound: a request has to end first.
// Robots.txt waits for no place: a body that the caller leaves open must not make the
// origin unreachable.
func (p *Pacer) earliest(l *lane, now time.Time, as asking) (at time.Time, full bool) {
	from := l.last
	if as != asHolder {
		from = l.latest()
	}
	if full = as != asRobots && l.underway >= p.maxUnderway(); full {
		from = now
	}
	return later(p.spaced(l, from, now), l.resume), full
}

// latest is the last start or end, turns that Wait gave included.
func (l *lane) latest() time.Time { return later(l.last, l.granted) }

// spaced is the first time, not before now, that lies the delay after from. The delay may
// change with the hour (Request-rate with a window), so spaced goes from one change to
// the next.
func (p *Pacer) spaced(l *lane, from, now time.Time) time.Time {
	if from.IsZero() {
		return now
	}
	for t := now; ; {
		at := from.Add(p.delay(l, t))
		if !at.After(t) {
			return t
		}
		change := l.nextChange(t)
		if change.IsZero() || at.Before(change) {
			return at
		}
		t = change
	}
}

// delay is the distance to keep at time t: the largest of all tokens.
func (p *Pacer) delay(l *lane, t time.Time) time.Duration {
	d, _ := l.past.at(t)
	d = min(d, p.maxDelay())
	if len(l.lessons) == 0 && l.owing == 0 {
		return p.defaultDelay()
	}
	for i := range l.lessons {
		if asked, ok := l.lessons[i].pace.at(t); ok {
			d = max(d, min(asked, p.maxDelay()))
		} else {
			d = max(d, p.defaultDelay())
		}
	}
	return d
}

// tooSlow returns the refusal of an origin that asks for more than the cap, or nil.
func (p *Pacer) tooSlow(o fetch.Origin, l *lane, now time.Time) error {
	if !p.Refuse {
		return nil
	}
	if asked := l.asked(now); asked > p.maxDelay() {
		return &DelayError{Origin: o, Delay: asked, Max: p.maxDelay()}
	}
	return nil
}

// answered notes how the origin does. retryAfter is 0 if its answer has none.
func (p *Pacer) answered(l *lane, failed bool, retryAfter time.Duration, now time.Time) {
	switch {
	case failed && retryAfter > 0: // the site knows best
		l.resume = later(l.resume, now.Add(min(retryAfter, day)))
		return
	case failed && p.pause(l, now) < longestPause:
		l.strain++
	case !failed && l.strain > 0:
		l.strain--
	}
	if l.strain > 0 {
		l.resume = later(l.resume, now.Add(jittered(p.pause(l, now))))
	}
}

// longestPause bounds the pauses that the site did not ask for.
const longestPause = time.Hour

// pause is how long to stay away under the present strain. Each failure doubles it, and
// each good answer halves it: a site that comes back does not meet the full load at once.
func (p *Pacer) pause(l *lane, now time.Time) time.Duration {
	unit := min(max(p.delay(l, now), time.Second), longestPause)
	return min(unit<<l.strain, longestPause) // strain stays below 13, since pause stops its growth
}

// jittered is d give or take a fifth. The origins of one failing server, and the crawlers
// of one failing site, then do not come back together.
func jittered(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
