package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pacing"
	"github.com/robotsgate/robotsgate/client/turns"
)

const (
	// leaseTime is how long a place in Pacer.Turns outlives the process that took it.
	leaseTime = 5 * time.Second

	// renewTime is how often a place is renewed, and how long that may take: one call in a lease may hang.
	renewTime = leaseTime / 3

	// storePatience bounds each other call of Pacer.Turns.
	storePatience = leaseTime / 2

	// How long to wait after a call that failed: at first, and at most.
	firstStorePause = 50 * time.Millisecond
	lastStorePause  = time.Second
)

// place is a place at an origin that a request has taken, or is about to.
type place struct {
	*lane
	lease   *lease    // nil: in this process only
	began   time.Time // when its request started
	decided time.Time // when it was last decided on
}

// lease is a place in Pacer.Turns. Pacer.mu guards it.
type lease struct {
	ask    turns.Ask
	strain int           // what the store knew of when it gave the turn
	until  time.Time     // when it lapses, by the clock of this process: no later than in the store
	renew  *time.Timer   // nil: ended
	told   chan struct{} // closed when the store has been told what happened last; nil: nothing has
	gone   atomic.Bool   // lapsed before the request was sent
}

// after runs f behind the caller, when the store has been told what happened to l before. It is told what comes
// after f when f has returned.
func (p *Pacer) after(l *lease, f func()) {
	before := l.told
	l.told = p.behind(func() {
		if before != nil {
			<-before
		}
		f()
	})
}

// report tells the store what has happened to l, as after does, and then runs then with the lock.
func (p *Pacer) report(key string, l *lease, n turns.Report, then func(now time.Time)) {
	n.Ask = l.ask
	p.after(l, func() {
		p.tell(key, n)
		p.mu.Lock()
		defer p.mu.Unlock()
		then(p.now())
	})
}

// behind runs f, which tells the store something, behind the caller. It returns a channel that is closed then: each
// call of the store ends within leaseTime. Each f has a goroutine: a node that hangs must hold up no other origin.
func (p *Pacer) behind(f func()) chan struct{} {
	told := make(chan struct{})
	p.telling.Store(told, nil)
	go func() {
		defer close(told)
		defer p.telling.Delete(told)
		f()
	}()
	return told
}

// settle waits until the store has been told all that has happened so far, or ctx ends.
func (p *Pacer) settle(ctx context.Context) (err error) {
	p.telling.Range(func(told, _ any) bool {
		select {
		case <-told.(chan struct{}):
		case <-ctx.Done():
			err = fmt.Errorf("client: the store of turns has not been told of all that ended: %w", context.Cause(ctx))
		}
		return err == nil
	})
	return err
}

// ask asks Pacer.Turns for the turn of w, the first in line, and reports whether it came. Others of this process may
// have started or ended meanwhile, which the store did not know: look is asked once more.
func (p *Pacer) ask(ctx context.Context, w *waiter) bool {
	begin := p.now()
	call, cancel := context.WithTimeout(ctx, storePatience)
	a, err := p.Turns.Take(call, w.key, w.ask)
	cancel()
	now := p.now()
	if end, ok := ctx.Deadline(); err == nil || ctx.Err() == nil && !(ok && now.After(end)) {
		p.storeDid(err, begin, now) // a connection's deadline may be noticed before the context's
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.due, w.early = now.Add(a.Wait), a.Wake
	if err == nil || w.fault == nil || !errors.Is(err, context.DeadlineExceeded) {
		w.fault = err // what the store said before tells more than that it was too late this time
	}
	if err != nil {
		w.due, w.taken = now.Add(pacing.Jittered(max(p.storePause, firstStorePause))), time.Time{}
		if p.RunAlone {
			w.due = time.Time{}
		}
		return p.RunAlone
	}
	return p.given(w, a, begin, now)
}

// given takes note of what the store said to w, which asked at begin, and reports whether that is a turn. It is
// none if this process slept, and another may have the place, or if there is a new robots.txt.
func (p *Pacer) given(w *waiter, a turns.Reply, begin, now time.Time) bool {
	l := w.lane
	l.Strain, l.Resume = max(a.Strain, 0), pacing.Later(l.Resume, now.Add(a.Pause))
	if a.Taken {
		w.taken = begin
		return now.Before(begin.Add(leaseTime)) && !l.read.After(w.read)
	}
	if w.kind == turns.Robots { // which may keep the delay of others
		w.least = now.Add(a.Least)
	} else {
		l.Granted = pacing.Later(l.Granted, now.Add(a.Least-w.ask.Delay))
	}
	if change := l.nextChange(now); !change.IsZero() && change.Before(w.due) {
		w.due = change // of the delay
	}
	return false
}

// name says what w asks the store for. It has a name unless it was asked for before.
func (p *Pacer) name(w *waiter, now time.Time) {
	if w.ask.Turn == "" {
		// 40 bits, for the few turns at one origin at a time.
		w.ask = turns.Ask{Turn: rand.Text()[:8], Kind: w.kind, Places: p.places(), Lease: leaseTime}
		if w.kind == turns.Robots {
			w.ask.Keep = p.maxDelay() // as much as the file may ask for
		}
	}
	if w.key == "" {
		w.key = w.origin.String()
	}
	w.ask.Delay, w.read = p.delay(w.lane, now), w.lane.read
}

func (p *Pacer) hold(w *waiter, now time.Time) {
	if w.kind != turns.Visit {
		w.lease = &lease{ask: w.ask, strain: w.Strain, until: w.taken.Add(leaseTime)}
		pl := w.place
		pl.lease.renew = time.AfterFunc(w.taken.Add(renewTime).Sub(now), func() { p.renew(pl) })
	}
	w.ask.Turn = "" // nothing is left to give back
}

// drop gives back what the store has of w: it waits there, or was given a turn there, and may not know.
func (p *Pacer) drop(w *waiter) {
	if w.ask.Turn == "" {
		return
	}
	n := turns.Report{Ask: w.ask, Event: turns.Dropped}
	key := w.key
	p.behind(func() { p.tell(key, n) })
	w.ask.Turn, w.taken = "", time.Time{}
}

// because returns err, the end of a context, with the reason for waiting until then if that
// was Pacer.Turns.
func (w *waiter) because(err error) error {
	if w.fault == nil {
		return err
	}
	return &turnsError{err, w.fault}
}

// storeDid takes note of how a call of Pacer.Turns ended just now, and says so once.
// Calls that fail together are one failure. It says so without the lock: a log handler may use the Pacer.
func (p *Pacer) storeDid(err error, begin, now time.Time) {
	p.mu.Lock()
	before := p.storePause
	switch {
	case err == nil:
		p.storePause = 0
	case begin.Before(p.storeFailed):
	default:
		p.storePause, p.storeFailed = min(max(2*before, firstStorePause), lastStorePause), now
	}
	after := p.storePause
	p.mu.Unlock()
	switch {
	case before == 0 && after != 0:
		say(slog.LevelWarn, "client: the store of turns fails", "alone", p.RunAlone, "error", err)
	case before != 0 && after == 0:
		say(slog.LevelInfo, "client: the store of turns works again")
	}
}

// turnsError says that no turn came because Pacer.Turns fails.
type turnsError struct{ cause, store error }

func (e *turnsError) Error() string {
	return fmt.Sprintf("client: not sent: %v; the store of turns failed: %s", e.cause, cut(e.store.Error()))
}

func (e *turnsError) Unwrap() error { return e.cause }

// Timeout makes it a net.Error if the cause is one.
func (e *turnsError) Timeout() bool { return errors.Is(e.cause, context.DeadlineExceeded) }

// Temporary is the other method of a net.Error.
func (e *turnsError) Temporary() bool { return e.Timeout() }

// tell repeats Tell until the store has it, or the lease has lapsed anyway.
func (p *Pacer) tell(key string, n turns.Report) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	for pause := firstStorePause; ctx.Err() == nil; pause *= 2 {
		call, cancel := context.WithTimeout(ctx, storePatience)
		err := p.Turns.Tell(call, key, n)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-time.After(pacing.Jittered(pause)):
		case <-ctx.Done():
		}
	}
}

// renew says that a request goes on. A call that fails is repeated while the lease lasts and
// after: a place that is in use is taken. A place that lapsed before the request was sent stays lost:
// a process that was stopped renews first thing when it wakes. The end of the request is told after that,
// or the place would be taken again.
func (p *Pacer) renew(pl place) {
	p.mu.Lock()
	if pl.lease.renew == nil {
		p.mu.Unlock()
		return
	}
	told := make(chan struct{})
	defer close(told)
	p.after(pl.lease, func() { <-told })
	ask := pl.lease.ask
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	begin := p.now()
	err := p.Turns.Tell(ctx, pl.key, turns.Report{Ask: ask, Event: turns.Renewed})
	now := p.now()
	p.storeDid(err, begin, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	next := begin.Add(renewTime).Sub(now)
	if err != nil {
		next = pacing.Jittered(lastStorePause)
	} else if now.Before(pl.lease.until) { // else another may have had a turn in between
		pl.lease.until = begin.Add(leaseTime)
	}
	if pl.lease.renew != nil {
		pl.lease.renew.Reset(next)
	}
}

// errLost is why a request was not sent whose place lapsed while it was being connected.
var errLost = errors.New("client: turn lost: this process was stopped for longer than it lasts")

// lost reports whether the request was not sent because the place lapsed before.
func (pl place) lost() bool { return pl.lease != nil && pl.lease.gone.Load() }

// lapsed reports whether the place may have been given to another process meanwhile.
func (p *Pacer) lapsed(pl place) bool {
	if pl.lease == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.now().Before(pl.lease.until)
}
