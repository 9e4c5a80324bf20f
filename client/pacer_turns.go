package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

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
	decided time.Time // when it was decided on again; zero: it did not wait
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

// ask asks Pacer.Turns for the turn of w, the first in line, and reports whether it came.
func (p *Pacer) ask(ctx context.Context, w *waiter) bool {
	begin := time.Now()
	call, cancel := context.WithTimeout(ctx, storePatience)
	a, err := p.Turns.Take(call, w.lane.key, w.ask)
	cancel()
	if end, ok := ctx.Deadline(); err == nil || ctx.Err() == nil && !(ok && time.Now().After(end)) {
		p.storeDid(err, begin) // a connection's deadline may be noticed before the context's
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	w.due, w.early = now.Add(a.Wait), a.Wake
	if err == nil || w.fault == nil || !errors.Is(err, context.DeadlineExceeded) {
		w.fault = err // what the store said before tells more than that it was too late this time
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && !p.RunAlone:
		w.due = now.Add(jittered(max(p.storePause, firstStorePause))) // it may work again for others by now
		return false
	case err != nil:
		w.due = time.Time{}
	case !p.given(w, a, begin, now):
		return false
	}
	if !p.free(w.lane, w.as, now) {
		// Others of this process have started or ended meanwhile, which the store did not know. The turn is
		// asked for again.
		return false
	}
	if err == nil {
		p.hold(w, begin)
	}
	w.start(now)
	return true
}

// given takes note of what the store said to w, which asked at begin, and reports whether that is a turn. It is
// none if this process slept, and another may have the place, or if there is a new robots.txt.
func (p *Pacer) given(w *waiter, a turns.Reply, begin, now time.Time) bool {
	l := w.lane
	l.strain, l.resume = a.Strain, later(l.resume, now.Add(a.Pause))
	if a.Taken {
		return now.Before(begin.Add(leaseTime)) && !l.read.After(w.read)
	}
	if w.as == asRobots { // which may keep the delay of others
		w.least = now.Add(a.Least)
	} else {
		l.granted = later(l.granted, now.Add(a.Least-w.ask.Delay))
	}
	if change := l.nextChange(now); !change.IsZero() && change.Before(w.due) {
		w.due = change // of the delay
	}
	return false
}

// free reports whether a request may start, as far as this process knows.
func (p *Pacer) free(l *lane, as asking, now time.Time) bool {
	at, full := p.earliest(l, now, as)
	return !full && !at.After(now)
}

// name says what w asks the store for. It has a name unless it was asked for before.
func (p *Pacer) name(w *waiter, now time.Time) {
	l := w.lane
	if w.ask.Turn == "" {
		w.ask = turns.Ask{Turn: rand.Text()[:turnLetters], Kind: w.as.kind(), Lease: leaseTime}
		if n := p.maxUnderway(); n < math.MaxInt {
			w.ask.Places = n
		}
		if w.as == asRobots {
			w.ask.Keep = p.maxDelay() // as much as the file may ask for
		}
	}
	if l.key == "" {
		l.key = w.origin.String()
	}
	w.ask.Delay, w.read = p.delay(l, now), l.read
}

// hold keeps the turn that w was given, after asking for it at begin.
func (p *Pacer) hold(w *waiter, begin time.Time) {
	if w.as != asWait {
		pl := place{lane: w.lane, lease: &lease{ask: w.ask, strain: w.lane.strain, until: begin.Add(leaseTime)}, began: begin}
		pl.lease.renew = time.AfterFunc(time.Until(begin.Add(renewTime)), func() { p.renew(pl) })
		w.lease = pl.lease
	}
	w.ask.Turn = "" // nothing is left to give back
}

// turnLetters is the length of the name of a turn: 40 bits, for the few turns at one origin
// at a time.
const turnLetters = 8

// because returns err, the end of a context, with the reason for waiting until then if that
// was Pacer.Turns.
func (w *waiter) because(err error) error {
	if w.fault == nil {
		return err
	}
	return &turnsError{err, w.fault}
}

func (a asking) kind() turns.Kind {
	switch a {
	case asWait:
		return turns.Visit
	case asHolder:
		return turns.Visitor
	case asRobots:
		return turns.Robots
	}
	return turns.Page
}

// storeDid takes note of how a call of Pacer.Turns that began at some time ended, and says so once.
// Calls that fail together are one failure. It says so without the lock: a log handler may use the Pacer.
func (p *Pacer) storeDid(err error, begin time.Time) {
	p.mu.Lock()
	before := p.storePause
	switch {
	case err == nil:
		p.storePause = 0
	case begin.Before(p.storeFailed):
	default:
		p.storePause, p.storeFailed = min(max(2*before, firstStorePause), lastStorePause), time.Now()
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

// tell is Tell behind the caller, after what came before. It is repeated until the store has it
// or the lease has lapsed anyway. Then it calls then.
func (p *Pacer) tell(key string, n turns.Report, before <-chan struct{}, then func()) {
	go func() {
		defer then()
		if before != nil {
			<-before
		}
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
			case <-time.After(jittered(pause)):
			case <-ctx.Done():
			}
		}
	}()
}

// withdraw gives back what a waiter that leaves has in the store: it waits there, or was given
// a turn that it never heard of.
func (p *Pacer) withdraw(w *waiter) {
	if w.ask.Turn != "" {
		p.tell(w.lane.key, turns.Report{Ask: w.ask, Event: turns.Dropped}, nil, func() {})
	}
}

// endShared is end for a place in Pacer.Turns. In this process, too, it is given back when the
// store has it: the next who asks is told no more than the store knows.
func (p *Pacer) endShared(pl place) {
	if pl.lease.renew == nil {
		return
	}
	pl.lease.renew.Stop()
	pl.lease.renew = nil
	pl.last = time.Now()
	pl.lease.ask.Delay = max(pl.lease.ask.Delay, p.delay(pl.lane, pl.last)) // what was learned since counts too
	p.tell(pl.key, turns.Report{Ask: pl.lease.ask, Event: turns.Ended}, pl.lease.told, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		pl.last = time.Now()
		pl.underway--
		pl.wakeFirst()
	})
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
	ask, before, told := pl.lease.ask, pl.lease.told, make(chan struct{})
	pl.lease.told = told
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	begin := time.Now()
	err := p.Turns.Tell(ctx, pl.key, turns.Report{Ask: ask, Event: turns.Renewed})
	p.renewed(pl, begin, err)
	if before != nil {
		<-before
	}
	close(told)
}

// renewed takes note of how renew ended, which began at some time, and sees to the next.
func (p *Pacer) renewed(pl place, begin time.Time, err error) {
	p.storeDid(err, begin)
	p.mu.Lock()
	defer p.mu.Unlock()
	next := time.Until(begin.Add(renewTime))
	if err != nil {
		next = jittered(lastStorePause)
	} else if time.Now().Before(pl.lease.until) { // else another may have had a turn in between
		pl.lease.until = begin.Add(leaseTime)
	}
	if pl.lease.renew != nil {
		pl.lease.renew.Reset(next)
	}
}

// noteShared hands an answer to Pacer.Turns, if that can change anything there.
func (p *Pacer) noteShared(pl place, failed bool, retryAfter time.Duration) {
	n := turns.Report{Ask: pl.lease.ask, Event: turns.Answered, Pause: min(retryAfter, day)}
	if failed {
		n.Event = turns.Failed
	} else if pl.lease.strain == 0 {
		return
	}
	before, told := pl.lease.told, make(chan struct{})
	pl.lease.told = told
	p.tell(pl.key, n, before, func() { close(told) })
}

// errLost is why a request was not sent whose place lapsed while it was being connected.
var errLost = errors.New("client: not sent: this process was stopped for longer than its turn lasts")

// lost reports whether the request was not sent because the place lapsed before.
func (pl place) lost() bool { return pl.lease != nil && pl.lease.gone.Load() }

// check returns errLost if the place has lapsed: nothing may be sent on it.
func (p *Pacer) check(pl place) error {
	if !p.lapsed(pl) {
		return nil
	}
	pl.lease.gone.Store(true)
	return errLost
}

// lapsed reports whether the place may have been given to another process meanwhile.
func (p *Pacer) lapsed(pl place) bool {
	if pl.lease == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !time.Now().Before(pl.lease.until)
}
