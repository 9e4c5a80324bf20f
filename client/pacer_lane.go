package client

import (
	"cmp"
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

// waiter is a caller in the queue of a lane. Pacer.mu guards owes; the rest is the caller's own.
type waiter struct {
	recheck
	as      asking
	origin  fetch.Origin
	lane    *lane
	at      *list.Element // of lane.waiting
	wake    chan struct{} // holds one: things have changed, look again
	owes    bool          // has to keep lane.past
	checked bool          // what it asks for was decided on just now
	newest  time.Time     // what recheck.holds is told
	began   time.Time     // when its turn came
	decided time.Time     // see place

	// With Pacer.Turns:
	ask   turns.Ask       // what the store may have of this waiter, if it has a name
	read  time.Time       // lane.read when that was asked for
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

// hashTarget tells the request targets of an origin apart: the path and the query, each as it is sent.
func hashTarget(u *url.URL) uint64 {
	h := maphash.String(targetSeed, cmp.Or(u.EscapedPath(), "/"))
	if u.ForceQuery || u.RawQuery != "" {
		h = 31*h + maphash.String(targetSeed, u.RawQuery)
	}
	return h
}

// turn waits for a turn at o and returns how long that took. Unless the turn was for
// Wait, it then takes a place, which has to be given back with end. The error is errAgain
// if the turn came, but r does not hold any more.
func (p *Pacer) turn(ctx context.Context, o fetch.Origin, as asking, r recheck,
) (pl place, held time.Duration, err error) {
	if ctx.Err() != nil {
		return pl, 0, context.Cause(ctx)
	}
	begin := time.Now()
	l, w, err := p.enter(o, as, &r, begin)
	if w != nil {
		return p.queue(ctx, w, begin)
	}
	return place{lane: l, began: begin}, 0, err
}

// enter takes a turn that can be had at once. For any other it puts the caller in line.
func (p *Pacer) enter(o fetch.Origin, as asking, r *recheck, now time.Time) (*lane, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lane(o, now)
	if as != asRobots {
		if err := p.tooSlow(o, l, now); err != nil {
			return nil, nil, err
		}
	}
	if as == asPage && len(l.grants) > 0 && r.req != nil && l.useGrant(hashTarget(r.req.URL), now) {
		as = asHolder
	}
	if p.Turns == nil && p.free(l, as, now) && (as.ahead() || l.waiting.Len() == 0) {
		l.start(as, r.visit, now)
		return l, nil, nil
	}
	w := &waiter{as: as, origin: o, lane: l, recheck: *r, wake: make(chan struct{}, 1)}
	w.checked = p.Turns != nil // it was decided on just now, and may not have to wait
	w.at = l.join(w)
	return l, w, nil
}

// step is what a waiter does next.
type step uint8

const (
	toSleep step = iota
	toCheck      // decides once more
	toAsk        // asks Pacer.Turns
	toGo         // has its turn
)

// queue waits for the turn of w, from begin on. Only the first in line has a timer. It wakes the next when it
// leaves, with a turn or without.
func (p *Pacer) queue(ctx context.Context, w *waiter, begin time.Time) (pl place, held time.Duration, err error) {
	defer p.leave(w)
	for now := begin; ; now = time.Now() {
		next, d, err := p.look(ctx, w, now)
		held = now.Sub(begin)
		switch {
		case err != nil:
			return pl, held, err
		case next == toSleep:
			w.sleep(ctx, d)
			w.checked = false
		case next == toCheck:
			w.decided = now
			if w.checked = w.holds(ctx, w.newest); !w.checked && ctx.Err() == nil {
				return pl, time.Since(begin), errAgain
			}
			p.mu.Lock()
			w.resume = w.lane.resume // a pause that the look-up itself led to is no reason for another
			p.mu.Unlock()
		case next == toAsk && !p.ask(ctx, w):
			w.checked = false
		default:
			return place{w.lane, w.lease, w.began, w.decided}, held, nil
		}
	}
}

// look returns what w does next, and how long it sleeps: 0, until it is woken. The error is that of tooSlow, or
// says that the turn cannot come in time.
func (p *Pacer) look(ctx context.Context, w *waiter, now time.Time) (step, time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return 0, 0, w.because(context.Cause(ctx))
	}
	l, o := w.lane, w.origin
	at, full := p.earliest(l, now, w.as)
	at = later(at, w.least)
	due := later(at, w.due)
	deadline, hasDeadline := ctx.Deadline()
	mayGo := l.waiting.Front() == w.at && !full
	switch {
	case w.try && (!mayGo || due.After(now)):
		if !at.After(now) {
			at = w.due
		}
		return 0, 0, w.because(lateAt(o, p.next(l, at, l.waiting.Len()-1), now, l.resume.After(now)))
	case hasDeadline && at.After(deadline) && !at.After(now): // ctx has ended, and does not say so yet
		return 0, 0, w.because(context.DeadlineExceeded)
	case hasDeadline && at.After(deadline):
		return 0, 0, lateAt(o, at, now, l.resume.After(deadline))
	case !mayGo:
		return toSleep, 0, nil
	case due.After(now):
		return toSleep, due.Sub(now), nil
	case !w.checked:
		w.newest = l.read
		if l.resume.After(w.resume) {
			w.newest = later(l.read, l.resume) // a pause may outlast what was looked up
		}
		return toCheck, 0, nil
	}
	if w.as != asRobots {
		if err := p.tooSlow(o, l, now); err != nil {
			return 0, 0, err // learned since w joined
		}
	}
	if p.Turns != nil {
		p.name(w, now)
		return toAsk, 0, nil
	}
	w.start(now)
	return toGo, 0, nil
}

// sleep returns when it is time to look again: after d at the latest, if that is not 0.
func (w *waiter) sleep(ctx context.Context, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
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

// leave takes w out of the queue.
func (p *Pacer) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.withdraw(w)
	w.lane.waiting.Remove(w.at)
	if w.owes {
		w.lane.paid()
	}
	w.lane.wakeFirst()
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

// start gives w its turn.
func (w *waiter) start(now time.Time) {
	w.lane.start(w.as, w.visit, now)
	w.began = now
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
	l.grants = l.grants[n:]
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
	if !p.RefuseLongDelays {
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
