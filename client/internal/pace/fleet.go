package pace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

// fleet is what a Keeper knows of Turns.
type fleet struct {
	roundTrip time.Duration // of the latest question
	pause     time.Duration // how long failing lines leave Turns alone after a failure
	next      time.Time     // when one of them may ask again; the others wait for its answer
	worked    time.Time     // when a failing line last got an answer: those that failed before that may ask again
	told      chan struct{} // closed when Turns has been told of all pauses so far; nil if there were none
}

// reservation is a start that Turns gave to a line, for the first waiter when it comes.
type reservation struct {
	at    time.Time
	until time.Time // a start after that may be too close to another process's
	asked time.Time // when Turns was last asked, and there was no pause
}

const (
	// pauseKnown is how long, besides two round trips, the answer holds that there is no pause.
	pauseKnown = 100 * time.Millisecond

	// turnsTimeout bounds one question.
	turnsTimeout = 2500 * time.Millisecond

	// tellTimeout bounds the attempts to tell Turns of one pause.
	tellTimeout = 5 * time.Second

	// turnsSlack is how late a start may be, besides the time to ask.
	turnsSlack = 20 * time.Millisecond

	shortestFault, longestFault = 100 * time.Millisecond, 2 * time.Second
)

// holds reports whether there is a reservation that can be used, now or later.
func (r reservation) holds(now time.Time) bool { return !r.at.IsZero() && !now.After(r.until) }

// needsTurns reports whether Turns has to be asked before a start: for a reservation or, if that is older, for pauses.
func (l *line) needsTurns(now time.Time) bool {
	known := pauseKnown + 2*l.k.fleet.roundTrip
	return l.k.Turns != nil && (!l.reserved.holds(now) || now.Sub(l.reserved.asked) > known)
}

// asksAt returns when to ask Turns, for the answer to come by the time of a start.
func (l *line) asksAt(at, now time.Time) time.Time {
	if l.reserved.holds(now) && l.needsTurns(at) {
		return at.Add(-l.k.fleet.roundTrip)
	}
	return at
}

// askTurns asks Turns, unless another waiter does so. Of the lines whose latest question failed, one at a time finds
// out whether Turns works again. The other lines go on asking, since only a part of a cluster may be away.
func (l *line) askTurns(ctx context.Context, w *waiter, now time.Time) error {
	f := &l.k.fleet
	failing := l.failing() && now.Before(f.next)
	switch {
	case w.try && (l.asking || failing):
		return l.leftBy(w, l.late(w, later(f.next, now.Add(tryAgain)), 0, now))
	case l.asking:
		l.sleep(ctx, w, time.Time{})
		return nil
	case failing:
		l.sleep(ctx, w, f.next)
		return nil
	case l.failing():
		f.next = now.Add(turnsTimeout)
	}
	l.asking = true
	defer func() { l.asking = false; l.wakeFirst() }()
	if l.reserved.holds(now) || l.delay(now) == 0 {
		l.askForPauses(ctx, w, now)
	} else {
		l.reserve(ctx, w, now)
	}
	if ctx.Err() != nil {
		return l.waitErr(w, context.Cause(ctx))
	}
	return nil
}

// failing reports whether the latest question of the line failed, and no failing line has got an answer since.
func (l *line) failing() bool { return l.turnsErr != nil && l.turnsErrAt.After(l.k.fleet.worked) }

// reserve asks for a start. How long the answer says to wait counts from its arrival, so the start comes late by a
// part of the round trip, and by what the machine adds. The slack makes up for both: Turns counts the distance from its
// end, and a start later than that is not made.
func (l *line) reserve(ctx context.Context, w *waiter, now time.Time) {
	slack := l.slack(w)
	within := Day
	if deadline, ok := ctx.Deadline(); ok && !w.try {
		within = deadline.Sub(now)
	}
	var wait time.Duration
	var ok bool
	delay := l.delay(now)
	answered, err := l.question(ctx, now, func(ctx context.Context) (err error) {
		wait, ok, err = l.k.Turns.Reserve(ctx, l.key, delay, slack, within)
		return err
	})
	at := answered.Add(wait)
	switch {
	case err != nil:
	case ok:
		l.reserved = reservation{at: at, until: now.Add(wait + slack), asked: now}
	default:
		w.least = at
	}
}

// slack is how late a start may be. A Try comes back by its caller's timer, as does a caller with a place that is kept.
func (l *line) slack(w *waiter) time.Duration {
	d := turnsSlack + 2*l.k.fleet.roundTrip
	if w.try || w.Kept {
		d = max(d, tryGrace)
	}
	return d
}

// askForPauses asks whether another process was sent away: before the start of an old reservation, and where no
// distance is kept.
func (l *line) askForPauses(ctx context.Context, w *waiter, now time.Time) {
	var rest time.Duration
	answered, err := l.question(ctx, now, func(ctx context.Context) (err error) {
		rest, err = l.k.Turns.Pause(ctx, l.key, 0)
		return err
	})
	switch {
	case errors.Is(err, turns.ErrForgotten):
		l.reserved = reservation{}
	case err != nil:
	case rest > 0:
		l.resume = later(l.resume, answered.Add(rest))
		l.reserved = reservation{}
	case l.reserved.holds(now):
		l.reserved.asked = now
	default: // any time will do
		l.reserved = reservation{at: answered, until: now.Add(decisionHolds + l.slack(w)), asked: now}
	}
}

// question asks Turns, without the lock. It returns when the answer came, and notes the round trip or the failure.
func (l *line) question(ctx context.Context, now time.Time, ask func(context.Context) error) (time.Time, error) {
	f := &l.k.fleet
	l.k.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, turnsTimeout)
	err := ask(short)
	cancel()
	answered := time.Now()
	l.k.mu.Lock()
	again := l.failing()
	switch {
	case err == nil || errors.Is(err, turns.ErrForgotten):
		f.roundTrip = answered.Sub(now)
		l.turnsErr = nil
		if again {
			f.pause = 0
			f.worked = answered
		}
	case ctx.Err() == nil:
		if again {
			f.pause = min(2*f.pause, longestFault)
		}
		l.turnsErr, l.turnsErrAt = err, answered
		f.pause = max(f.pause, shortestFault)
		f.next = answered.Add(f.pause)
	case again: // the caller that asked has given up: another may
		f.next = answered
	}
	return answered, err
}

// tell tells Turns of a pause that has begun here, in the background.
func (k *Keeper) tell(key string, pause time.Duration) {
	if k.Turns == nil {
		return
	}
	ends := time.Now().Add(pause)
	before := k.fleet.told
	told := make(chan struct{})
	k.fleet.told = told
	go func() {
		defer close(told)
		ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
		defer cancel()
		for ctx.Err() == nil {
			short, cancel := context.WithTimeout(ctx, turnsTimeout)
			_, err := k.Turns.Pause(short, key, time.Until(ends))
			cancel()
			if err == nil || errors.Is(err, turns.ErrForgotten) {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(shortestFault):
			}
		}
		if before != nil {
			<-before
		}
	}()
}

// Shutdown waits until Turns knows of all pauses, or cannot be told of them, for five seconds at most. The error is
// that of ctx.
func (k *Keeper) Shutdown(ctx context.Context) error {
	k.mu.Lock()
	told := k.fleet.told
	k.mu.Unlock()
	if told == nil {
		return nil
	}
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("client: telling the store of turns of pauses: %w", context.Cause(ctx))
	}
}
