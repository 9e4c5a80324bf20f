package pace

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"
)

// line is what a Keeper knows of one origin, and its waiters. Keeper.mu guards it: its methods are called with the
// lock held, and those that wait (sleep, recheck, question) release it meanwhile.
//
// A rate.Limiter (golang.org/x/time) would not do. Its bucket fills from the start of a request, while the delay has to
// run from the end too. A reservation keeps its time even if a pause comes in between or a caller ahead gives up. And
// it does not count what is under way.
type line struct {
	k   *Keeper
	key string // of Turns

	last     time.Time // the latest start or end of a request
	header   time.Time // the latest answer
	underway int       // places that are taken
	silent   int       // of them, requests that were handed on and have no answer yet

	resume       time.Time // no start before: the site asked for a pause, or needs one
	failures     int       // less the good answers since
	failed       time.Time // the latest failure that made its own pause
	robotsFailed bool      // the latest robots.txt failed

	lessons   []lesson  // what robots.txt asks for
	waiting   list.List // of *waiter: robots.txt, then a place that is held, then the others, each as they came
	leftPlace *waiter   // the place in line that a Try has left, or nil

	asking     bool      // somebody is asking Turns
	turnsErr   error     // why the latest question failed, or nil
	turnsErrAt time.Time // when
	reserved   reservation
}

// waiter is a caller that waits in a line.
type waiter struct {
	Ask
	try     bool
	elem    *list.Element // of line.waiting
	decided time.Time     // when it was last decided on
	since   time.Time     // when it became the first, or the first Try of its place came; zero: decide by nothing older
	due     time.Time     // when its time first came, but it had to wait for a header; zero if not yet
	least   time.Time     // the earliest turn, as Turns has it
	told    time.Time     // At of the Try that left this place
	full    bool          // when it last went to sleep, a request had to end first
	wake    chan struct{} // holds one: things have changed, look again
}

func (k *Keeper) take(ctx context.Context, a Ask, try bool) (*Place, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	l := k.line(a.Origin, now)
	if a.Held != nil && a.Held.ended {
		a.Held = nil
	}
	if a.Held.isFresh(now) {
		a.Held.began = now
		l.last = now
		a.Held.markSilent()
		return a.Held, nil
	}
	w := l.enter(a, try, now)
	defer l.leave(w)
	for ; ; now = time.Now() {
		p, err := l.step(ctx, w, now)
		if p != nil || err != nil {
			return p, err
		}
	}
}

// step takes one step towards the turn: it waits, decides once more, or asks Turns. It returns the place or an error,
// or neither if there is another step to take.
func (l *line) step(ctx context.Context, w *waiter, now time.Time) (*Place, error) {
	l.lapse(now)
	at := l.earliest(w, now)
	deadline, hasDeadline := ctx.Deadline()
	first := l.first() == w
	if first && w.since.IsZero() {
		w.since = now
	}
	switch {
	case ctx.Err() != nil:
		return nil, l.waitErr(w, context.Cause(ctx))
	case hasDeadline && now.After(deadline): // ctx does not say so yet
		return nil, l.waitErr(w, context.DeadlineExceeded)
	case w.try && (!first || l.isFull(w) || at.After(now)):
		return nil, l.leftBy(w, l.late(w, at, l.ahead(w), now))
	case hasDeadline && at.After(deadline):
		late := l.late(w, at, 0, now)
		late.Paused = l.resume.After(deadline)
		return nil, late
	case !first || l.isFull(w):
		l.sleep(ctx, w, time.Time{})
		return nil, nil
	}
	soon := l.asksAt(at, now)
	switch {
	case soon.After(now):
		l.sleep(ctx, w, soon)
	case l.patience(w, now).After(now):
		l.sleep(ctx, w, w.due.Add(headerPatience))
	case l.needsTurns(now):
		return nil, l.askTurns(ctx, w, now)
	case at.After(now):
		l.sleep(ctx, w, at)
	case w.Recheck != nil && now.Sub(w.decided) > decisionHolds:
		return nil, l.recheck(ctx, w)
	default:
		return l.start(w, now), nil
	}
	return nil, nil
}

// earliest returns when w can start, as far as is known; never before now. It does not consider those who go first, nor
// a request that has to end.
func (l *line) earliest(w *waiter, now time.Time) time.Time {
	from := l.last
	if w.Robots {
		from = later(from, l.header)
	}
	at := later(l.spaced(from, now), l.resume)
	at = later(at, w.least)
	if l.reserved.holds(now) {
		at = later(at, l.reserved.at)
	}
	if l.takesFromTry(w, at) {
		at = later(at, l.leftPlace.told.Add(tryGrace))
	}
	return at
}

// takesFromTry reports whether a start of w at a time would take the one that the Try before it was told of.
func (l *line) takesFromTry(w *waiter, at time.Time) bool {
	t := l.leftPlace
	if t == nil || t == w || l.waiting.Front() != t.elem || w.rank() > 0 {
		return false
	}
	return at.Add(max(l.delay(at), tryAgain)).After(t.told)
}

// isFull reports whether a request has to end before w can start. Robots.txt waits for none: a body that the caller
// leaves open must not make the origin unreachable.
func (l *line) isFull(w *waiter) bool {
	return !w.Robots && w.Held == nil && l.k.MaxUnderway > 0 && l.underway >= l.k.MaxUnderway
}

// patience returns until when w, a robots.txt whose time has come, waits for the header of another request: over a slow
// connection, what was handed on long ago may reach the site only now.
func (l *line) patience(w *waiter, now time.Time) time.Time {
	if !w.Robots || l.silent == 0 {
		return now
	}
	if w.due.IsZero() {
		w.due = now
	}
	return w.due.Add(headerPatience)
}

func (l *line) start(w *waiter, now time.Time) *Place {
	p := w.Held
	if p == nil || p.ended { // it may have ended while this waited
		p = &Place{line: l, robots: w.Robots}
		l.underway++
	}
	p.began = now
	p.until = l.reserved.until
	l.last = now
	l.reserved = reservation{}
	if !w.try && !w.Kept { // it is sent at once, and the next in line may look before its Start
		p.markSilent()
	}
	return p
}

// recheck decides on w once more, without the lock. A reservation may be too old after that, and is then made anew.
func (l *line) recheck(ctx context.Context, w *waiter) error {
	l.k.mu.Unlock()
	defer l.k.mu.Lock()
	err := w.Recheck(ctx, w.since)
	w.decided = time.Now()
	return err
}

// enter puts a caller into the line, behind all of the same or a higher rank. A Try takes the place that an earlier one
// has left.
func (l *line) enter(a Ask, try bool, now time.Time) *waiter {
	l.lapse(now)
	w := &waiter{Ask: a, try: try, decided: now}
	if left := l.leftPlace; try && left != nil {
		w.since = left.since
		w.elem = left.elem
		w.elem.Value = w
		l.leftPlace = nil
		return w
	} else if try {
		w.since = now
	}
	for e := l.waiting.Front(); e != nil && w.rank() > 0; e = e.Next() {
		if e.Value.(*waiter).rank() < w.rank() {
			w.elem = l.waiting.InsertBefore(w, e)
			return w
		}
	}
	w.elem = l.waiting.PushBack(w)
	return w
}

// rank is higher for what goes first: robots.txt, because others may be waiting for what it says, and then a holder of
// a place, because others may be waiting for that.
func (w *waiter) rank() int {
	switch {
	case w.Robots:
		return 2
	case w.Held != nil:
		return 1
	}
	return 0
}

// first returns the first waiter, or nil. The place that a Try has left does not count.
func (l *line) first() *waiter {
	e := l.waiting.Front()
	if e != nil && e.Value == l.leftPlace {
		e = e.Next()
	}
	if e == nil {
		return nil
	}
	return e.Value.(*waiter)
}

// ahead returns how many go before w.
func (l *line) ahead(w *waiter) (n int) {
	for e := w.elem.Prev(); e != nil; e = e.Prev() {
		n++
	}
	return n
}

// leave takes w out of the line, unless it is the place that a Try leaves.
func (l *line) leave(w *waiter) {
	if l.leftPlace != w {
		l.waiting.Remove(w.elem)
	}
	l.wakeFirst()
}

// leftBy keeps the place in line of a Try that is late, for another: not what that one asked. An origin has one such
// place.
func (l *line) leftBy(w *waiter, late *LateError) error {
	if l.leftPlace == nil {
		w.Ask = Ask{}
		w.told = late.At
		l.leftPlace = w
	}
	return late
}

// lapse drops the place that a Try has left, if no Try came for it.
func (l *line) lapse(now time.Time) {
	if t := l.leftPlace; t != nil && !now.Before(t.told.Add(tryGrace)) {
		l.waiting.Remove(t.elem)
		l.leftPlace = nil
	}
}

// late says when w can start if so many go before it, of whom the first can start at a time.
func (l *line) late(w *waiter, at time.Time, ahead int, now time.Time) *LateError {
	d := l.delay(at)
	if l.isFull(w) { // a request has to end, and then comes a delay
		at = later(at, now.Add(max(d, tryAgain)))
	}
	if ahead > 0 {
		at = later(at, now.Add(tryAgain))
	}
	ahead = min(ahead, 10_000) // keeps the product in range
	return &LateError{At: at.Add(time.Duration(ahead) * d), Delay: d, Paused: l.resume.After(now),
		Full: w.full || l.isFull(w), Err: l.turnsErr}
}

// waitErr wraps why the wait of w has ended together with what it waited for: Turns, and why it could not be asked, or a
// body that is still open.
func (l *line) waitErr(w *waiter, cause error) error {
	switch {
	case l.turnsErr != nil:
		return fmt.Errorf("%w (waiting for the store of turns: %w)", cause, l.turnsErr)
	case l.asking:
		return fmt.Errorf("%w (waiting for the store of turns)", cause)
	case errors.Is(cause, context.DeadlineExceeded) && l.isFull(w):
		return fmt.Errorf("%w (waiting for another request to the site to end)", cause)
	}
	return cause
}

// sleep waits, without the lock, until at, if that is not zero, or until w is woken or ctx ends.
func (l *line) sleep(ctx context.Context, w *waiter, at time.Time) {
	if w.wake == nil {
		w.wake = make(chan struct{}, 1)
	}
	w.full = l.isFull(w)
	l.k.mu.Unlock()
	defer l.k.mu.Lock()
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-w.wake:
	case <-ctx.Done():
	}
}

// wakeFirst wakes the first in line. Without a channel, or with a full one, it is about to look again anyway.
func (l *line) wakeFirst() {
	if w := l.first(); w != nil && w.wake != nil {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
