package client

import (
	"container/list"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// asking is what somebody wants a turn for.
type asking uint8

const (
	asWait   asking = iota // for a request still to come: takes no place
	asPage                 // a request
	asHolder               // a request whose turn Wait has obtained
	asRobots               // robots.txt, without which the others may be for nothing
)

// ahead says who goes before those that merely came earlier.
func (a asking) ahead() bool { return a == asHolder || a == asRobots }

// holdTurn is how long a turn that Wait gave can be used. It bounds how long an unused
// one (the rules forbade the request after all) lets a later request go ahead of others.
const holdTurn = 10 * time.Second

// waiter is somebody in the queue of a lane.
type waiter struct {
	as   asking
	wake chan struct{} // holds one: things have changed, look again
	owed bool          // it keeps a delay that nothing asks for any more
}

// take is turn for what needs no second decision.
func (p *Pacer) take(ctx context.Context, o fetch.Origin, as asking) (l *lane, held time.Duration, err error) {
	return p.turn(ctx, o, as, recheck{})
}

// turn waits for a turn at o and says how long it was held back. Unless the turn was
// for Wait, a place is then taken, and has to be given back with end. The error is
// errAgain if the turn had come, but r does not hold any more.
func (p *Pacer) turn(ctx context.Context, o fetch.Origin, as asking, r recheck) (l *lane, held time.Duration, err error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	l = p.lane(o, now)
	if as != asRobots {
		if err := p.tooSlow(o, l, now); err != nil {
			return nil, 0, err
		}
	}
	if as == asPage && l.useGrant(now) {
		as = asHolder
	}
	if at, full := p.earliest(l, now, as); !full && !at.After(now) && (as.ahead() || l.waiting.Len() == 0) {
		l.start(as, now)
		return l, 0, nil
	}
	held, err = p.queue(ctx, o, l, as, r)
	return l, held, err
}

// queue is turn for the case that it has to wait. It is called and returns with p.mu
// held. Only the first in line has a timer; it wakes the next when it leaves, whether
// it goes or gives up.
func (p *Pacer) queue(ctx context.Context, o fetch.Origin, l *lane, as asking, r recheck) (held time.Duration, err error) {
	w := &waiter{as: as, wake: make(chan struct{}, 1)}
	e := l.join(w)
	defer l.leave(e)
	deadline, hasDeadline := ctx.Deadline()
	begin, checked, resume := time.Now(), false, time.Time{}
	for now := begin; ; now = time.Now() {
		at, full := p.earliest(l, now, as)
		mayGo := l.waiting.Front() == e && !full
		switch {
		case hasDeadline && at.After(deadline):
			return held, &lateError{o, at, l.resume.After(deadline)}
		case mayGo && !at.After(now) && checked:
			if as != asRobots {
				if err := p.tooSlow(o, l, now); err != nil {
					return held, err // learned since it joined
				}
			}
			l.start(as, now)
			return held, nil
		case mayGo && !at.After(now):
			// Without the lock, so that robots.txt can go ahead. What is learned of it
			// may put the turn off: then the answer is too old when the turn comes.
			newest := l.read
			if l.resume.After(resume) {
				newest = later(newest, l.resume) // a pause may be longer than what was looked up is good for
			}
			func() {
				p.mu.Unlock()
				defer p.mu.Lock()
				checked = r.holds(ctx, newest)
			}()
			resume = l.resume // what came of looking it up is no reason to do so again
			held = time.Since(begin)
			switch {
			case ctx.Err() != nil:
				return held, context.Cause(ctx)
			case !checked:
				return held, errAgain
			}
			continue
		}
		checked = false
		p.mu.Unlock()
		err := w.sleep(ctx, at.Sub(now), mayGo)
		held = time.Since(begin)
		p.mu.Lock()
		if err != nil {
			return held, err
		}
	}
}

// sleep returns when it is time to look again, for the first in line at the latest
// after d, or with the context's error.
func (w *waiter) sleep(ctx context.Context, d time.Duration, first bool) error {
	var due <-chan time.Time
	if first {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-w.wake:
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // of two that are ready, select picks any
		return context.Cause(ctx)
	}
	return nil
}

// lateError says that a turn cannot come before the deadline of whoever waits.
type lateError struct {
	origin fetch.Origin
	at     time.Time // the earliest
	paused bool      // because the site has asked for that, or suffers; not for a delay of ours
}

func (e *lateError) Error() string {
	return fmt.Sprintf("client: no turn at %s before %s, after the deadline of the request",
		e.origin, e.at.UTC().Format(time.RFC3339Nano))
}

// What it would be if we waited: the end of the caller's own deadline, which is a
// net.Error that says so.
func (e *lateError) Unwrap() error   { return context.DeadlineExceeded }
func (e *lateError) Timeout() bool   { return true }
func (e *lateError) Temporary() bool { return true }

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
	if l.waiting.Remove(e).(*waiter).owed {
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

// start gives a turn.
func (l *lane) start(as asking, now time.Time) {
	if as == asWait {
		if !l.granted.Add(holdTurn).After(now) {
			l.grants = 0
		}
		l.granted = now
		l.grants++
		return
	}
	l.last = now
	l.underway++
}

// useGrant says whether a request can go on a turn that Wait obtained. It does not
// matter which of several requests does, since each waits for the true distance.
func (l *lane) useGrant(now time.Time) bool {
	if l.grants == 0 || !l.granted.Add(holdTurn).After(now) {
		return false
	}
	l.grants--
	return true
}

// end gives a place back.
func (p *Pacer) end(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.last = time.Now()
	l.underway--
	l.wakeFirst()
}

// note hands an answer to the lane; those that wait learn at once of a new pause.
func (p *Pacer) note(l *lane, status int, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered(l, status, retryAfter, time.Now())
	l.wakeFirst()
}

// roundTrip is base.RoundTrip(req) at the pace of o. The request's body is closed
// whatever happens, as http.RoundTripper demands, unless the error is errAgain.
func (p *Pacer) roundTrip(base http.RoundTripper, req *http.Request, o fetch.Origin, r recheck, waited func(context.Context, Waited)) (*http.Response, error) {
	ctx := req.Context()
	l, held, err := p.turn(ctx, o, asPage, r)
	hasPlace := err == nil
	defer func() { // a panic in base must not keep it either
		if hasPlace {
			p.end(l)
		}
	}()
	again := err == errAgain
	if held > 0 && waited != nil {
		w := Waited{URL: req.URL, Err: err, Took: held}
		if again {
			w.Err = nil // the turn did come
		}
		waited(ctx, w)
	}
	switch {
	case again:
		return nil, err
	case err != nil:
		return refuse(req, err)
	}
	out, reading := watchBody(req)
	res, err := send(base, out)
	switch {
	case err == nil:
		p.note(l, res.StatusCode, fetch.RetryAfter(res.StatusCode, res.Header, time.Now()))
		if res.Body != nil && res.Body != http.NoBody {
			res.Body, hasPlace = p.holdPlace(ctx, l, res.Body), false
		}
	case blames(req, reading, err):
		p.note(l, 0, 0)
	}
	return res, err
}
