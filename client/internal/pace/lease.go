package pace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace/rules"
	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/client/turns"
)

const (
	// leaseTime is how long a place in Keeper.Turns outlives the process that took it.
	leaseTime = 5 * time.Second

	// renewTime is how often a place is renewed, and how long that may take: one call in a lease may hang.
	renewTime = leaseTime / 3

	// storePatience bounds each other call of Keeper.Turns.
	storePatience = leaseTime / 2

	// How long to wait after a call that failed: at first, and at most.
	firstStorePause = 50 * time.Millisecond
	lastStorePause  = time.Second
)

// Place is a place at an origin that a request has taken, or is about to.
type Place struct {
	lane    *lane
	lease   *lease    // nil: in this process only
	Began   time.Time // when its request started
	Decided time.Time // when it was last decided on
}

// lease is a place in Keeper.Turns. Keeper.mu guards it.
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
func (k *Keeper) after(l *lease, f func()) {
	before := l.told
	l.told = k.behind(func() {
		if before != nil {
			<-before
		}
		f()
	})
}

// report tells the store what has happened to l, as after does, and then runs then with the lock.
func (k *Keeper) report(key string, l *lease, n turns.Report, then func(now time.Time)) {
	n.Ask = l.ask
	k.after(l, func() {
		k.tell(key, n)
		k.mu.Lock()
		defer k.mu.Unlock()
		then(k.Now())
	})
}

// behind runs f, which tells the store something, behind the caller. It returns a channel that is closed then. One
// report ends within leaseTime; those of a lease wait for one another. Each f has a goroutine: a node that hangs must
// hold up no other origin.
func (k *Keeper) behind(f func()) chan struct{} {
	told := make(chan struct{})
	k.telling.Store(told, nil)
	go func() {
		defer close(told)
		defer k.telling.Delete(told)
		f()
	}()
	return told
}

// Settle waits until the store has been told all that has happened so far, or ctx ends. A WaitGroup would not end with
// ctx, nor bear reports that begin meanwhile.
func (k *Keeper) Settle(ctx context.Context) (err error) {
	k.telling.Range(func(told, _ any) bool {
		select {
		case <-told.(chan struct{}):
		case <-ctx.Done():
			err = fmt.Errorf("client: the store of turns has not been told of all that ended: %w", context.Cause(ctx))
		}
		return err == nil
	})
	return err
}

// ask asks Keeper.Turns for the turn of w, the first in line, and reports whether it came. Others of this process may
// have started or ended meanwhile, which the store did not know: look is asked once more.
func (k *Keeper) ask(ctx context.Context, w *waiter) bool {
	begin := k.Now()
	call, cancel := context.WithTimeout(ctx, storePatience)
	a, err := k.Turns.Take(call, w.lane.key, w.ask)
	cancel()
	now := k.Now()
	if end, ok := ctx.Deadline(); err == nil || ctx.Err() == nil && !(ok && now.After(end)) {
		// What ended with the caller's time says nothing of the store. A connection may notice that before ctx does.
		k.storeDid(err, begin, now)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now = k.Now() // a log handler may have taken its time
	w.due, w.early = now.Add(a.Wait), a.Wake
	if err == nil || w.fault == nil || !errors.Is(err, context.DeadlineExceeded) {
		w.fault = err // what the store said before tells more than that it was too late this time
	}
	if err != nil {
		w.due, w.taken = now.Add(rules.Jittered(max(k.storePause, firstStorePause))), time.Time{}
		if k.Alone {
			w.due = time.Time{}
		}
		return k.Alone
	}
	return k.given(w, a, begin, now)
}

// goesOn, with the lock held, reports whether to go without asking Turns: it fails, and this process may go on alone.
// One caller at a time finds out whether it works again, for a server that is silent costs each who asks storePatience.
func (k *Keeper) goesOn(now time.Time) bool {
	if !k.Alone || k.storePause == 0 || !now.Before(k.storeNext) {
		k.storeNext = now.Add(storePatience)
		return false
	}
	return true
}

// given, with the lock held, takes note of what the store said to w, which asked at begin, and reports whether that is a turn. It is
// none if this process slept, and another may have the place, or if there is a new robots.txt.
func (k *Keeper) given(w *waiter, a turns.Reply, begin, now time.Time) bool {
	l := w.lane
	l.Strain, l.Resume = max(a.Strain, 0), rules.Later(l.Resume, now.Add(a.Pause))
	if a.Taken {
		w.taken = begin
		return now.Before(begin.Add(leaseTime)) && !l.read.After(w.read)
	}
	if w.kind == turns.Robots { // which may keep the delay of others
		w.least = now.Add(a.Least)
	} else {
		// The latest start there came a delay before Least, or sooner.
		l.Granted = rules.Later(l.Granted, now.Add(a.Least-w.ask.Delay))
	}
	if change := l.nextChange(now); !change.IsZero() && change.Before(w.due) {
		w.due = change // of the delay
	}
	return false
}

// name, with the lock held, says what w asks the store for. It has a name unless it was asked for before.
func (k *Keeper) name(w *waiter, now time.Time) {
	if w.ask.Turn == "" {
		// 40 bits, for the few turns at one origin at a time.
		w.ask = turns.Ask{Turn: rand.Text()[:8], Kind: w.kind, Places: k.Places, Lease: leaseTime}
		if w.kind == turns.Robots {
			w.ask.Keep = k.MaxDelay // as much as the file may ask for
		}
	}
	if w.lane.key == "" {
		w.lane.key = w.lane.origin.String()
	}
	w.ask.Delay, w.read = k.delay(w.lane, now), w.lane.read
}

// hold, with the lock held, makes what the store gave w its place.
func (k *Keeper) hold(w *waiter, now time.Time) {
	if w.kind != turns.Visit {
		w.lease = &lease{ask: w.ask, strain: w.lane.Strain, until: w.taken.Add(leaseTime)}
		pl := w.Place
		pl.lease.renew = time.AfterFunc(w.taken.Add(renewTime).Sub(now), func() { k.renew(pl) })
	}
	w.ask.Turn = "" // nothing is left to give back
}

// drop gives back what the store has of w: it waits there, or was given a turn there, and may not know. It needs no
// lock: that is for the goroutine of w alone, and the key of a lane stays as it is.
func (k *Keeper) drop(w *waiter) {
	if w.ask.Turn == "" {
		return
	}
	n := turns.Report{Ask: w.ask, Event: turns.Dropped}
	key := w.lane.key
	k.behind(func() { k.tell(key, n) })
	w.ask.Turn, w.taken = "", time.Time{}
}

// because, with the lock held, returns err, the end of a context, with the reason for waiting until then if that
// was Keeper.Turns, which the first in line asks for all.
func (w *waiter) because(err error) error {
	if fault := cmp.Or(w.fault, w.lane.waiting.Front().Value.(*waiter).fault); fault != nil {
		return &turnsError{err, fault}
	}
	return err
}

// storeDid takes note of how a call of Keeper.Turns ended just now, and says so once.
// Calls that fail together are one failure. It says so without the lock: a log handler may use the Pacer.
func (k *Keeper) storeDid(err error, begin, now time.Time) {
	k.mu.Lock()
	before := k.storePause
	switch {
	case err == nil:
		k.storePause = 0
	case begin.Before(k.storeFailed):
	default:
		k.storePause, k.storeFailed = min(max(2*before, firstStorePause), lastStorePause), now
		k.storeNext = now.Add(k.storePause)
	}
	after := k.storePause
	k.mu.Unlock()
	switch {
	case before == 0 && after != 0:
		say.Log(slog.LevelWarn, "client: the store of turns fails", "alone", k.Alone, "error", err)
	case before != 0 && after == 0:
		say.Log(slog.LevelInfo, "client: the store of turns works again")
	}
}

// turnsError says that no turn came because Keeper.Turns fails.
type turnsError struct{ cause, store error }

func (e *turnsError) Error() string {
	return fmt.Sprintf("client: no turn came: %v; the store of turns failed: %s", e.cause, say.Cut(e.store.Error()))
}

func (e *turnsError) Unwrap() error { return e.cause }

// Timeout makes it a net.Error if the cause is one.
func (e *turnsError) Timeout() bool { return errors.Is(e.cause, context.DeadlineExceeded) }

// Temporary is the other method of a net.Error.
func (e *turnsError) Temporary() bool { return e.Timeout() }

// tell repeats Tell until the store has it, or the lease has lapsed anyway.
func (k *Keeper) tell(key string, n turns.Report) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
	defer cancel()
	for pause := firstStorePause; ctx.Err() == nil; pause *= 2 {
		call, cancel := context.WithTimeout(ctx, storePatience)
		err := k.Turns.Tell(call, key, n)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-time.After(rules.Jittered(pause)):
		case <-ctx.Done():
		}
	}
}

// renew says that a request goes on. A call that fails is repeated while the lease lasts and
// after: a place that is in use is taken. A place that lapsed before the request was sent stays lost:
// a process that was stopped renews first thing when it wakes. The end of the request is told after that,
// or the place would be taken again. After a day nothing is renewed: the body was forgotten, and stops a fleet no longer.
func (k *Keeper) renew(pl Place) {
	k.mu.Lock()
	if pl.lease.renew == nil || k.Now().Sub(pl.Began) >= Day {
		k.mu.Unlock()
		return
	}
	told := make(chan struct{})
	defer close(told)
	k.after(pl.lease, func() { <-told })
	ask := pl.lease.ask
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	begin := k.Now()
	err := k.Turns.Tell(ctx, pl.lane.key, turns.Report{Ask: ask, Event: turns.Renewed})
	now := k.Now()
	k.storeDid(err, begin, now)
	k.mu.Lock()
	defer k.mu.Unlock()
	next := begin.Add(renewTime)
	if err != nil {
		next = now.Add(rules.Jittered(lastStorePause))
	} else if !pl.lease.lapsed(time.Now()) { // else another may have had a turn in between
		pl.lease.until = begin.Add(leaseTime)
	}
	if pl.lease.renew != nil {
		pl.lease.renew.Reset(next.Sub(k.Now())) // a log handler may have taken its time
	}
}

// ErrLost is why a request was not sent whose place lapsed while it was being connected.
var ErrLost = errors.New("client: turn lost: this process was stopped for longer than it lasts")

// Shared reports whether the place is one in Turns.
func (pl Place) Shared() bool { return pl.lease != nil }

// Waited reports whether its request was decided on some time before the turn came.
func (pl Place) Waited() bool { return pl.lease != nil || pl.Began.After(pl.Decided) }

// Lose notes that the request was not sent because the place, a shared one, had lapsed.
func (pl Place) Lose() { pl.lease.gone.Store(true) }

func (pl Place) Lost() bool { return pl.lease != nil && pl.lease.gone.Load() }

// Lapsed reports whether the place may have been given to another process meanwhile.
func (k *Keeper) Lapsed(pl Place) bool {
	if pl.lease == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return pl.lease.lapsed(time.Now())
}

// lapsed goes by either clock: the monotonic one stands still while a machine sleeps, and the store's goes on.
func (l *lease) lapsed(now time.Time) bool {
	return !now.Before(l.until) || !now.Round(0).Before(l.until.Round(0))
}
