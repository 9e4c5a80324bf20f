package client

import (
	"cmp"
	"container/list"
	"context"
	"hash/maphash"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/client/internal/pacing"
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
	pacing.Origin               // its requests; with Pacer.Turns, those of this process, and what the store said of others
	lessons       []lesson      // what robots.txt asks for
	past          pace          // what it asked for when those up to owing began to wait
	read          time.Time     // when the newest robots.txt was read that a Transport has decided by
	grants        []grant       // turns that Wait gave and no request has used, the latest last
	key           string        // the origin, for Pacer.Turns; empty: not yet asked for
	robots        *lease        // had the robots.txt that was read here last, and not learned from; nil: none
	waiting       list.List     // of *waiter; the first is the next to go
	owing         *list.Element // the last of waiting that has to keep past
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
	var paused fetch.Origin // no lane has the zero Origin
	for range looks {
		if p.lanes.Len() < cmp.Or(p.most, mostLanes) {
			return
		}
		o, l, _ := p.lanes.GetOldest()
		from, _ := l.From(turns.Page, 0, now)
		idle := l.Underway == 0 && l.waiting.Len() == 0 && !p.spaced(l, from, now).After(now)
		if idle && !l.Resume.After(now) {
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

// holdTurn is how long a turn that Wait gave can be used. It bounds how long an unused
// turn (the rules forbade the request after all) lets a later request go ahead of others.
const holdTurn = 10 * time.Second

// waiter is a caller in the queue of a lane.
type waiter struct {
	recheck
	place   // that it gets
	kind    turns.Kind
	origin  fetch.Origin
	at      *list.Element // of lane.waiting
	wake    chan struct{} // holds one: things have changed, look again
	checked bool          // what it asks for was decided on just now
	newest  time.Time     // when robots.txt was last read, at the last look
	looked  time.Time     // when robots.txt was looked up again, or zero
	pause   time.Time     // that was known after that: its end

	// With Pacer.Turns:
	ask   turns.Ask       // what the store may have of this waiter, if it has a name
	read  time.Time       // lane.read when that was asked for
	least time.Time       // the turn comes no sooner, says the store
	due   time.Time       // when to ask the store again,
	early <-chan struct{} // or sooner, when this is closed
	fault error           // why it could not be asked
	given bool            // the turn is there: it gave it, or this process runs alone
	taken time.Time       // when the turn was asked for that the store gave; zero: it has given none
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

// turn waits for a turn at o and returns how long that took. Unless the turn is a Visit, it
// then takes a place, which has to be given back with end. The error is errAgain
// if the turn came, but r does not hold any more.
func (p *Pacer) turn(ctx context.Context, o fetch.Origin, k turns.Kind, r recheck,
) (pl place, waited time.Duration, err error) {
	if ctx.Err() != nil {
		return pl, 0, context.Cause(ctx)
	}
	begin := p.now()
	l, w, err := p.enter(o, k, &r, begin)
	if w != nil {
		return p.queue(ctx, w, begin)
	}
	return place{lane: l, began: begin, decided: begin}, 0, err
}

// enter takes a turn that can be had at once. For any other it puts the caller in line.
func (p *Pacer) enter(o fetch.Origin, k turns.Kind, r *recheck, now time.Time) (*lane, *waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lane(o, now)
	if err := p.tooSlow(o, l, k, now); err != nil {
		return nil, nil, err
	}
	if k == turns.Page && len(l.grants) > 0 && r.req != nil && l.useGrant(hashTarget(r.req.URL), now) {
		k = turns.Visitor
	}
	at, full := p.earliest(l, now, k)
	if first := l.waiting.Front(); p.Turns == nil && !full && !at.After(now) &&
		(first == nil || pacing.Rank(k) > pacing.Rank(first.Value.(*waiter).kind)) {
		l.start(k, r.visit, now)
		return l, nil, nil
	}
	w := &waiter{recheck: *r, place: place{lane: l, decided: now}, kind: k, origin: o, wake: make(chan struct{}, 1)}
	w.checked = p.Turns != nil // it was decided on just now, and may not have to wait
	w.at = l.join(w)
	return l, w, nil
}

type step uint8

const (
	toSleep step = iota
	toCheck      // decides once more
	toAsk        // asks Pacer.Turns
	toGo         // has its turn
)

// queue waits for the turn of w, from begin on. Only the first in line has a timer. It wakes the next when it
// leaves, with a turn or without.
func (p *Pacer) queue(ctx context.Context, w *waiter, begin time.Time) (pl place, waited time.Duration, err error) {
	defer p.leave(w)
	for now := begin; ; now = p.now() {
		next, d, err := p.look(ctx, w, now)
		waited = now.Sub(begin)
		switch {
		case err != nil:
			return pl, waited, err
		case next == toSleep:
			if !w.taken.IsZero() || d == 0 && w.fault != nil {
				p.drop(w) // the turn that came, or whose answer was lost: others wait for its place
			}
			w.sleep(ctx, d)
			w.checked, w.given = false, false
		case next == toCheck:
			w.decided = now
			if w.checked = p.holds(ctx, w); !w.checked && ctx.Err() == nil {
				return pl, p.now().Sub(begin), errAgain
			}
			p.mu.Lock()
			w.pause = w.Resume // a pause that the look-up itself led to is no reason for another
			p.mu.Unlock()
		case next == toAsk:
			w.given = p.ask(ctx, w)
			w.checked = w.given
		default:
			return w.place, waited, nil
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
	at, full := p.earliest(l, now, w.kind)
	if !w.taken.IsZero() { // the store knows of all Visits, not of what of this process began or ended meanwhile
		at = pacing.Later(p.spaced(l, l.Last, now), l.Resume)
	}
	at = pacing.Later(at, w.least)
	due := pacing.Later(at, w.due)
	deadline, hasDeadline := ctx.Deadline()
	mayGo := (l.waiting.Front() == w.at || w.given) && !full // robots.txt may have come first while the store was asked
	switch {
	case w.try && (!mayGo || due.After(now)):
		if !at.After(now) {
			at = w.due
		}
		return 0, 0, w.because(lateAt(o, p.next(l, at, l.waiting.Len()-1), now, l.Resume.After(now)))
	case hasDeadline && at.After(deadline) && !at.After(now): // ctx has ended, and does not say so yet
		return 0, 0, w.because(context.DeadlineExceeded)
	case hasDeadline && at.After(deadline):
		return 0, 0, lateAt(o, at, now, l.Resume.After(deadline))
	case !mayGo:
		return toSleep, 0, nil
	case due.After(now):
		return toSleep, due.Sub(now), nil
	case !w.checked:
		w.newest = l.read
		if l.Resume.After(w.pause) {
			w.newest = pacing.Later(l.read, l.Resume) // a pause may outlast what was looked up
		}
		return toCheck, 0, nil
	}
	if err := p.tooSlow(o, l, w.kind, now); err != nil {
		return 0, 0, err // learned since w joined
	}
	if p.Turns != nil && !w.given {
		p.name(w, now)
		return toAsk, 0, nil
	}
	l.start(w.kind, w.visit, now)
	w.began = now
	if !w.taken.IsZero() {
		p.hold(w, now)
	}
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
// from that. If others have started since its turn came, it first keeps its distance from them. It returns the time
// of the start. The error is errAgain if a pause has begun, or the context's cause.
func (p *Pacer) begin(ctx context.Context, pl *place) (time.Time, error) {
	for {
		p.mu.Lock()
		now := p.now()
		at := now
		if pl.Last.After(pl.began) {
			at = p.spaced(pl.lane, pl.Last, now)
		}
		paused := pl.Resume.After(now)
		if !paused && !at.After(now) {
			pl.Last, pl.began = now, now
			p.mu.Unlock()
			return now, nil
		}
		p.mu.Unlock()
		if paused {
			return now, errAgain
		}
		select {
		case <-time.After(at.Sub(now)):
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

// end gives a place back; in a fleet, once the store has been told: until then it would refuse the next who
// asks.
func (p *Pacer) end(pl place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if pl.lease == nil {
		pl.End(now)
		pl.wakeFirst()
		return
	}
	pl.lease.renew.Stop()
	pl.lease.renew = nil
	pl.Last = now
	pl.lease.ask.Delay = max(pl.lease.ask.Delay, p.delay(pl.lane, now)) // what was learned since counts too
	if pl.lease.ask.Kind == turns.Robots {
		pl.robots = pl.lease
	}
	p.report(pl.key, pl.lease, turns.Report{Event: turns.Ended}, func(now time.Time) {
		pl.End(now)
		pl.wakeFirst()
	})
}

// learned tells Pacer.Turns of the delay that a robots.txt asks for, if its reader had asked for a turn with a
// shorter one. Otherwise another process might read robots.txt again too soon.
func (p *Pacer) learned(l *lane, now time.Time) {
	read, d := l.robots, p.delay(l, now)
	l.robots = nil
	if read == nil || d <= read.ask.Delay {
		return
	}
	read.ask.Delay = d
	p.report(l.key, read, turns.Report{Event: turns.Ended}, func(now time.Time) {
		l.Last = pacing.Later(l.Last, now) // as the store has it now
	})
}

// note hands an answer to the lane, and to Pacer.Turns if that can change anything there. Those who wait learn at
// once of a new pause.
func (p *Pacer) note(pl place, status int, retryAfter time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failed := status == 0 || status == http.StatusTooManyRequests || status >= 500
	if failed || pl.Strain > 0 {
		pl.Answered(failed, retryAfter, p.delay(pl.lane, now), now)
		pl.wakeFirst()
	}
	if pl.lease == nil || !failed && pl.lease.strain == 0 {
		return
	}
	n := turns.Report{Event: turns.Answered, Pause: retryAfter}
	if failed {
		n.Event = turns.Failed
	}
	p.report(pl.key, pl.lease, n, func(time.Time) {})
}

// join puts w behind the last of those that it may not go ahead of.
func (l *lane) join(w *waiter) *list.Element {
	rank := pacing.Rank(w.kind)
	for e := l.waiting.Front(); e != nil && rank > 0; e = e.Next() {
		if rank > pacing.Rank(e.Value.(*waiter).kind) {
			return l.waiting.InsertBefore(w, e)
		}
	}
	return l.waiting.PushBack(w)
}

func (p *Pacer) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(w)
	if w.at == w.owing {
		if w.owing = w.at.Prev(); w.owing == nil {
			w.past = pace{}
		}
	}
	w.waiting.Remove(w.at)
	w.wakeFirst()
}

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
func (l *lane) start(k turns.Kind, visit uint64, now time.Time) {
	if k == turns.Visit {
		l.lapse(now)
		l.grants = append(l.grants, grant{visit, now.UnixNano()})
	}
	l.Start(k, now)
}

// lapse drops the turns of Wait that came too long ago, and the older half if they are too many.
func (l *lane) lapse(now time.Time) {
	n := 0
	if len(l.grants) >= mostGrants {
		n = mostGrants / 2
	}
	for n < len(l.grants) && now.UnixNano()-l.grants[n].at >= int64(holdTurn) {
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
func (p *Pacer) earliest(l *lane, now time.Time, k turns.Kind) (at time.Time, full bool) {
	from, full := l.From(k, p.places(), now)
	return pacing.Later(p.spaced(l, from, now), l.Resume), full
}

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
	if len(l.lessons) == 0 && l.owing == nil {
		return p.defaultDelay()
	}
	most := p.maxDelay()
	d, _ := l.past.at(t)
	d = min(d, most)
	for i := range l.lessons {
		if asked, ok := l.lessons[i].pace.at(t); ok {
			d = max(d, min(asked, most))
		} else {
			d = max(d, p.defaultDelay())
		}
	}
	return d
}

// tooSlow returns the refusal of an origin that asks for more than the cap, or nil. Its robots.txt is read.
func (p *Pacer) tooSlow(o fetch.Origin, l *lane, k turns.Kind, now time.Time) error {
	if !p.RefuseLongDelays || k == turns.Robots {
		return nil
	}
	if asked := l.asked(now); asked > p.maxDelay() {
		return &DelayError{Origin: o, Delay: asked, Max: p.maxDelay()}
	}
	return nil
}

// recheck asks about a request once more when its turn has come: robots.txt may have
// changed, or be unreachable, since it was let through. The zero recheck lets all pass.
type recheck struct {
	allows allows
	req    *http.Request
	by     *Agreement // that let it through, or nil
	visit  uint64     // the target that Pacer.Wait waits for; with try, the only one of these
	try    bool       // of Pacer.Try
}

// holds reports whether the request is still allowed, by what the cache holds. It is
// called for the first in line when its time has come, before it takes a place: so it
// does not hold up the reading of robots.txt, which goes first.
//
// If the cache holds nothing usable, holds looks robots.txt up anew, and the request has
// to keep its distance to that. If robots.txt expires sooner than the delay, that could
// go on for ever. So a request causes one such look-up, and another only if robots.txt
// was read for another request since (newest).
func (p *Pacer) holds(ctx context.Context, w *waiter) bool {
	if w.allows == nil {
		return true
	}
	allowed, known := w.allows(ctx, w.req, w.by, true)
	if !known && (w.looked.IsZero() || w.newest.After(w.looked)) {
		allowed, _ = w.allows(ctx, w.req, w.by, false)
		w.looked = p.now()
	}
	return allowed
}

// allows is all that a Pacer knows of a gate. The request is allowed if nothing is known that forbids it; with
// cachedOnly, what the cache holds is all that is known.
type allows func(ctx context.Context, req *http.Request, by *Agreement, cachedOnly bool) (allowed, known bool)
