package pace

import (
	"container/list"
	"context"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace/rules"
	"github.com/robotsgate/robotsgate/client/internal/target"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/fetch"
)

// lane is what a Keeper knows of one origin. Keeper.mu guards it: its methods, and those of Keeper that are handed one,
// are called with the lock held.
//
// A rate.Limiter (golang.org/x/time) does not do. Its bucket fills from the start of a
// request, while the delay has to run from the end too. A reservation, once made, keeps
// its time, whether a pause comes in between or a caller ahead gives up. And it does not
// count what is in flight.
type lane struct {
	// The fields of a turn that comes at once fill the first three cache lines: with many origins, each is a miss.
	rules.Origin           // its requests; with Keeper.Turns, those of this process, and what the store said of others
	newer, older *lane     // used next after this one, and next before it
	grants       []grant   // turns that Wait gave and no request has used, the latest last
	waiting      list.List // of *waiter; the first is the next to go
	lessons      []lesson  // what robots.txt asks for

	owing  *debt        // of those who wait; nil: none
	room   [2]grant     // for the first of grants: mostly there are no more
	read   time.Time    // when the newest robots.txt was read that a Transport has decided by
	failed time.Time    // when the latest failure came that made its own pause
	origin fetch.Origin // whose requests they are
	key    string       // the origin, for Keeper.Turns; empty: not yet asked for
	robots *lease       // had the robots.txt that was read here last, and not learned from; nil: none
}

// debt is what robots.txt asked for when some began to wait, and asks for no more.
type debt struct {
	pace
	last *list.Element // of lane.waiting, that has to keep it
}

// holdTurn is how long a turn that Wait gave can be used. It bounds how long an unused
// turn (the rules forbade the request after all) lets a later request go ahead of others.
const holdTurn = 10 * time.Second

// tryAgain is when Try is worth another call if a request has to end first, and no delay follows it.
const tryAgain = 100 * time.Millisecond

// caller is who asks for a turn.
type caller struct {
	kind  turns.Kind
	req   Request // decided on again at its turn; zero: not
	visit uint64  // the target that Visit waits for
	try   bool    // it does not wait for it
}

// Request is a request that waits for its turn. Robots.txt may have changed, or be unreachable, since it was let
// through, so it is decided on again. How, is for package client to say, which imports this one.
type Request struct {
	HTTP *http.Request // a turn that Visit obtained is for its URL
	Ends time.Time     // of what let it through; zero: never

	// Allowed decides on HTTP once more. What is not known forbids nothing that has not ended. With cachedOnly, nothing
	// is known but what the cache holds. One function serves all requests: to make one for each would cost more.
	Allowed func(_ context.Context, _ *http.Request, ends time.Time, cachedOnly bool) (allowed, known bool)
}

// waiter is a caller in the queue of a lane.
type waiter struct {
	caller
	Place                 // that it gets
	at      *list.Element // of lane.waiting
	wake    chan struct{} // holds one: things have changed, look again
	checked bool          // what it asks for was decided on just now
	newest  time.Time     // when robots.txt was last read, at the last look
	looked  time.Time     // when robots.txt was looked up again, or zero
	pause   time.Time     // that was known after that: its end

	// With Keeper.Turns:
	ask   turns.Ask       // what the store may have of this waiter, if it has a name
	read  time.Time       // lane.read when that was asked for
	least time.Time       // the turn comes no sooner, says the store
	due   time.Time       // when to ask the store again,
	early <-chan struct{} // or sooner, when this is closed
	fault error           // why it could not be asked
	given bool            // the turn is there: it gave it, or this process runs alone
	taken time.Time       // when the turn was asked for that the store gave; zero: it has given none
}

// grant is a turn that Wait gave. It is for a request with the same target. Another with the same hash may use it: the
// site sees its pace all the same, and who called Wait waits once more.
type grant struct {
	target uint32 // of the target, its hash: a lane keeps no text of URLs
	at     uint32 // when: Unix time in milliseconds, as far as 49 days fit
}

// mostGrants bounds what is kept of Waits whose requests do not come. With a delay of a sixth of a second no more of
// them fit into holdTurn.
const mostGrants = 64

var targetSeed = maphash.MakeSeed()

// hashTarget tells the request targets of an origin apart: the path and the query, each as it is sent.
func hashTarget(u *url.URL) uint64 {
	path := target.Path(u)
	if path == "" {
		path = u.EscapedPath()
	}
	h := maphash.String(targetSeed, path)
	if u.ForceQuery || u.RawQuery != "" {
		h = 31*h + maphash.String(targetSeed, u.RawQuery)
	}
	return h
}

// turn waits for a turn at o and returns how long that took. Unless the turn is a Visit, it
// then takes a place, which has to be given back with End. The error is ErrAgain
// if the turn came, but the request is not allowed any more.
func (k *Keeper) turn(ctx context.Context, o fetch.Origin, c caller) (pl Place, waited time.Duration, err error) {
	if ctx.Err() != nil {
		return pl, 0, context.Cause(ctx)
	}
	begin := k.Now()
	l, w, err := k.enter(o, &c, begin)
	switch {
	case w != nil:
		return k.queue(ctx, w, begin)
	case c.kind == turns.Visit: // takes no place
		return pl, 0, err
	}
	return Place{lane: l, Began: begin, Decided: begin}, 0, err
}

// enter takes a turn that can be had at once. For any other it puts the caller in line.
func (k *Keeper) enter(o fetch.Origin, c *caller, now time.Time) (*lane, *waiter, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lane(o, now)
	if err := k.tooSlow(l, c.kind, now); err != nil {
		return nil, nil, err
	}
	if c.kind == turns.Page && len(l.grants) > 0 && l.useGrant(hashTarget(c.req.HTTP.URL), now) {
		c.kind = turns.Visitor
	}
	at, full := k.earliest(l, now, c.kind)
	if first := l.waiting.Front(); k.Turns == nil && !full && !at.After(now) &&
		(first == nil || rules.Rank(c.kind) > rules.Rank(first.Value.(*waiter).kind)) {
		l.start(c.kind, c.visit, now)
		return l, nil, nil
	}
	w := &waiter{caller: *c, Place: Place{lane: l, Decided: now}, wake: make(chan struct{}, 1)}
	w.checked = k.Turns != nil // it was decided on just now, and may not have to wait
	w.at = l.join(w)
	return l, w, nil
}

type step uint8

const (
	toSleep step = iota
	toCheck      // decides once more
	toAsk        // asks Turns
	toGo         // has its turn
)

// queue waits for the turn of w, from begin on. Only the first in line has a timer. It wakes the next when it
// leaves, with a turn or without.
func (k *Keeper) queue(ctx context.Context, w *waiter, begin time.Time) (pl Place, waited time.Duration, err error) {
	defer k.leave(w)
	for now := begin; ; now = k.Now() {
		next, d, err := k.look(ctx, w, now)
		waited = now.Sub(begin)
		switch {
		case err != nil:
			return pl, waited, err
		case next == toSleep:
			if !w.taken.IsZero() {
				k.drop(w) // the turn that came: others wait for its place
			}
			w.sleep(ctx, d)
			w.checked, w.given = false, false
		case next == toCheck:
			w.Decided = now
			if w.checked = k.holds(ctx, w); !w.checked && ctx.Err() == nil {
				return pl, k.Now().Sub(begin), ErrAgain
			}
			k.mu.Lock()
			w.pause = w.lane.Resume // a pause that the look-up itself led to is no reason for another
			k.mu.Unlock()
		case next == toAsk:
			w.given = k.ask(ctx, w)
			w.checked = w.given
		default:
			return w.Place, waited, nil
		}
	}
}

// look returns what w does next, and how long it sleeps: 0, until it is woken. The error is that of tooSlow, or
// says that the turn cannot come in time.
func (k *Keeper) look(ctx context.Context, w *waiter, now time.Time) (step, time.Duration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return 0, 0, w.because(context.Cause(ctx))
	}
	l, o := w.lane, w.lane.origin
	at, full := k.earliest(l, now, w.kind)
	if !w.taken.IsZero() { // the store knows of all Visits, not of what of this process began or ended meanwhile
		at = rules.Later(k.spaced(l, l.Last, now), l.Resume)
	}
	at = rules.Later(at, w.least)
	due := rules.Later(at, w.due)
	deadline, hasDeadline := ctx.Deadline()
	mayGo := (l.waiting.Front() == w.at || w.given) && !full // robots.txt may have come first while the store was asked
	switch {
	case w.try && (!mayGo || due.After(now)):
		if !at.After(now) {
			at = rules.Later(w.due, now.Add(tryAgain))
		}
		return 0, 0, w.because(k.Late(o, k.next(l, at, l.waiting.Len()-1), now, l.Resume.After(now)))
	case hasDeadline && at.After(deadline) && !at.After(now): // ctx has ended, and does not say so yet
		return 0, 0, w.because(context.DeadlineExceeded)
	case hasDeadline && at.After(deadline):
		return 0, 0, k.Late(o, at, now, l.Resume.After(deadline))
	case !mayGo:
		if w.fault != nil {
			k.drop(w) // the turn whose answer was lost
		}
		return toSleep, 0, nil
	case due.After(now):
		return toSleep, due.Sub(now), nil
	case !w.checked:
		w.newest = l.read
		if l.Resume.After(w.pause) {
			w.newest = rules.Later(l.read, l.Resume) // a pause may outlast what was looked up
		}
		return toCheck, 0, nil
	}
	if err := k.tooSlow(l, w.kind, now); err != nil {
		return 0, 0, err // learned since w joined
	}
	if k.Turns != nil && !w.given && !k.goesOn(now) {
		k.name(w, now)
		return toAsk, 0, nil
	}
	l.start(w.kind, w.visit, now)
	w.Began = now
	if !w.taken.IsZero() {
		k.hold(w, now)
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

// Begin makes now the start of a request that has waited for its connection: others keep their distance
// from that. If others have started since its turn came, it first keeps its distance from them. It returns the time
// of the start. The error is ErrAgain if a pause has begun, or the context's cause.
func (k *Keeper) Begin(ctx context.Context, pl *Place) (time.Time, error) {
	for {
		k.mu.Lock()
		now := k.Now()
		at := now
		if pl.lane.Last.After(pl.Began) {
			at = k.spaced(pl.lane, pl.lane.Last, now)
		}
		paused := pl.lane.Resume.After(now)
		if !paused && !at.After(now) {
			pl.lane.Last, pl.Began = now, now
			k.mu.Unlock()
			return now, nil
		}
		k.mu.Unlock()
		if paused {
			return now, ErrAgain
		}
		select {
		case <-time.After(at.Sub(now)):
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

// End gives a place back; in a fleet, once the store has been told: until then it would refuse the next who
// asks.
func (k *Keeper) End(pl Place, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if pl.lease == nil {
		pl.lane.End(now)
		pl.lane.wakeFirst()
		return
	}
	pl.lease.renew.Stop()
	pl.lease.renew = nil
	pl.lane.Last = rules.Later(pl.lane.Last, now)
	pl.lease.ask.Delay = max(pl.lease.ask.Delay, k.delay(pl.lane, now)) // what was learned since counts too
	if pl.lease.ask.Kind == turns.Robots {
		pl.lane.robots = pl.lease
	}
	k.report(pl.lane.key, pl.lease, turns.Report{Event: turns.Ended}, func(now time.Time) {
		pl.lane.End(now)
		pl.lane.wakeFirst()
	})
}

// learned tells Keeper.Turns of the delay that a robots.txt asks for, if its reader had asked for a turn with a
// shorter one. Otherwise another process might read robots.txt again too soon.
func (k *Keeper) learned(l *lane, now time.Time) {
	read, d := l.robots, k.delay(l, now)
	l.robots = nil
	if read == nil || d <= read.ask.Delay {
		return
	}
	read.ask.Delay = d
	k.report(l.key, read, turns.Report{Event: turns.Ended}, func(now time.Time) {
		l.Last = rules.Later(l.Last, now) // as the store has it now
	})
}

// Answered hands an answer to the lane, and to Keeper.Turns if that can change anything there. Those who wait learn at
// once of a new pause.
func (k *Keeper) Answered(pl Place, status int, retryAfter time.Duration, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	failed := status == 0 || status == http.StatusTooManyRequests || status >= 500
	if failed && retryAfter == 0 {
		if pl.Began.Before(pl.lane.failed) {
			return // requests that fail together, as those on one connection do, tell of one trouble
		}
		pl.lane.failed = now
	}
	if failed || pl.lane.Strain > 0 {
		pl.lane.Answered(failed, retryAfter, k.delay(pl.lane, now), now)
		pl.lane.wakeFirst()
	}
	if pl.lease == nil || !failed && pl.lease.strain == 0 {
		return
	}
	n := turns.Report{Event: turns.Answered, Pause: retryAfter}
	if failed {
		n.Event = turns.Failed
	}
	k.report(pl.lane.key, pl.lease, n, func(time.Time) {})
}

// join puts w behind the last of those that it may not go ahead of.
func (l *lane) join(w *waiter) *list.Element {
	rank := rules.Rank(w.kind)
	for e := l.waiting.Front(); e != nil && rank > 0; e = e.Next() {
		if rank > rules.Rank(e.Value.(*waiter).kind) {
			return l.waiting.InsertBefore(w, e)
		}
	}
	return l.waiting.PushBack(w)
}

func (k *Keeper) leave(w *waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(w)
	if owing := w.lane.owing; owing != nil && owing.last == w.at {
		if owing.last = w.at.Prev(); owing.last == nil {
			w.lane.owing = nil
		}
	}
	if next := w.at.Next(); next != nil && w.fault != nil {
		next.Value.(*waiter).fault = w.fault // until it has asked the store itself
	}
	w.lane.waiting.Remove(w.at)
	w.lane.wakeFirst()
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
		if l.grants == nil {
			l.grants = l.room[:0]
		}
		if len(l.grants) == mostGrants {
			l.lapse(now)
		}
		if len(l.grants) == mostGrants { // those that can be used are too many
			l.grants = slices.Delete(l.grants, 0, mostGrants/2)
		}
		l.grants = append(l.grants, grant{uint32(visit), uint32(now.UnixMilli())})
	}
	l.Start(k, now)
}

// lapse drops the turns of Wait that came too long ago.
func (l *lane) lapse(now time.Time) {
	n := 0
	for n < len(l.grants) && uint32(now.UnixMilli())-l.grants[n].at >= uint32(holdTurn.Milliseconds()) {
		n++
	}
	l.grants = slices.Delete(l.grants, 0, n)
}

// useGrant reports whether a request can go on a turn that Wait obtained for its target, and uses it.
func (l *lane) useGrant(target uint64, now time.Time) bool {
	l.lapse(now)
	i := slices.IndexFunc(l.grants, func(g grant) bool { return g.target == uint32(target) })
	if i >= 0 {
		l.grants = slices.Delete(l.grants, i, i+1)
	}
	return i >= 0
}

// earliest is when a request may start, as far as is known at now; never before now. If
// every place is taken (full), it is a lower bound: a request has to end first.
func (k *Keeper) earliest(l *lane, now time.Time, kind turns.Kind) (at time.Time, full bool) {
	from, full := l.From(kind, k.Places, now)
	return rules.Later(k.spaced(l, from, now), l.Resume), full
}

// spaced is the first time, not before now, that lies the delay after from. The delay may
// change with the hour (Request-rate with a window), so spaced goes from one change to
// the next.
func (k *Keeper) spaced(l *lane, from, now time.Time) time.Time {
	if from.IsZero() {
		return now
	}
	for t := now; ; {
		d := k.delay(l, t)
		if t.Sub(from) >= d {
			return t
		}
		at := from.Add(d)
		change := l.nextChange(t)
		if change.IsZero() || at.Before(change) {
			return at
		}
		t = change
	}
}

// delay is the distance to keep at time t: the largest of all tokens.
func (k *Keeper) delay(l *lane, t time.Time) time.Duration {
	if len(l.lessons) == 0 && (l.waiting.Len() == 0 || l.owing == nil) {
		return k.Delay
	}
	d := min(l.owed(t), k.MaxDelay)
	for i := range l.lessons {
		if asked, ok := l.lessons[i].pace.at(t); ok {
			d = max(d, min(asked, k.MaxDelay))
		} else {
			d = max(d, k.Delay)
		}
	}
	return d
}

// tooSlow returns the refusal of an origin that asks for more than the cap, or nil. Its robots.txt is read.
func (k *Keeper) tooSlow(l *lane, kind turns.Kind, now time.Time) error {
	if !k.Refuse || kind == turns.Robots {
		return nil
	}
	if asked := l.asked(now); asked > k.MaxDelay {
		return k.Slow(l.origin, asked, k.MaxDelay)
	}
	return nil
}

// holds reports whether the request is still allowed, by what the cache holds. It is
// called for the first in line when its time has come, before it takes a place: so it
// does not hold up the reading of robots.txt, which goes first.
//
// If the cache holds nothing usable, holds looks robots.txt up anew, and the request has
// to keep its distance to that. If robots.txt expires sooner than the delay, that could
// go on for ever. So a request causes one such look-up, and another only if robots.txt
// was read for another request since (newest).
func (k *Keeper) holds(ctx context.Context, w *waiter) bool {
	r := &w.req
	if r.Allowed == nil {
		return true
	}
	allowed, known := r.Allowed(ctx, r.HTTP, r.Ends, true)
	if !known && (w.looked.IsZero() || w.newest.After(w.looked)) {
		allowed, _ = r.Allowed(ctx, r.HTTP, r.Ends, false)
		w.looked = k.Now()
	}
	return allowed
}
