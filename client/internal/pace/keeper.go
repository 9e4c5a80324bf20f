// Package pace keeps the pace of a client.Pacer: who may start at an origin, and when. It knows nothing of gates and
// transports. keeper.go has what package client calls and what is forgotten, lane.go the line of those who wait,
// lesson.go what robots.txt asks for, and lease.go what a turns.Store has to be told. Package rules below has what
// holds for one process and for a fleet alike.
package pace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace/rules"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/fetch"
)

// Keeper keeps the pace of all origins. Its exported fields are those of a client.Pacer, with their zero values
// resolved. They must not change after the first use.
type Keeper struct {
	Delay    time.Duration // where robots.txt asks for none
	MaxDelay time.Duration // Day at most
	Refuse   bool          // what asks for more than MaxDelay
	Places   int           // at one origin, as turns.Ask has it: zero is any number
	Turns    turns.Store   // nil: the pace of this process only
	Alone    bool          // goes on while Turns fails
	Most     int           // lanes to keep, in tests; zero: mostLanes

	// The errors that a caller sees: no turn in time, and an origin that is refused.
	Late func(o fetch.Origin, at, now time.Time, paused bool) error
	Slow func(o fetch.Origin, asked, most time.Duration) error

	mu          sync.Mutex // guards what follows and what hangs off it; held for short arithmetic only
	lanes       map[fetch.Origin]*lane
	ends        lane          // of the order of use: its older is the lane used last, its newer the longest unused
	storePause  time.Duration // how long to leave Turns alone after its latest failure; zero: it works
	storeFailed time.Time     // when that was
	storeNext   time.Time     // with Alone: when the next caller finds out whether Turns works again

	wall    atomic.Pointer[time.Time] // the time when both clocks were last read
	telling sync.Map                  // channels, each of which is closed when Turns has been told of something
}

// ErrAgain says that a request has to be decided on from the start: the rules that let it through may
// forbid it by now, and its turn and its signature are used.
var ErrAgain = errors.New("client: decide again")

// Turn waits for the turn of a request at o, and takes a place there. It returns how long that took. The error is
// ErrAgain if the turn came, and the request is not allowed any more.
func (k *Keeper) Turn(ctx context.Context, o fetch.Origin, req Request) (Place, time.Duration, error) {
	return k.turn(ctx, o, caller{kind: turns.Page, req: req})
}

// Robots is Turn for the robots.txt of o.
func (k *Keeper) Robots(ctx context.Context, o fetch.Origin) (Place, time.Duration, error) {
	return k.turn(ctx, o, caller{kind: turns.Robots})
}

// Visit waits for a turn at u's origin, which a later request for u can use. With try it does not wait.
func (k *Keeper) Visit(ctx context.Context, u *url.URL, try bool) error {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	_, _, err = k.turn(ctx, o, caller{kind: turns.Visit, visit: hashTarget(u), try: try})
	return err
}

// Next is when a request to u's origin may start if it is asked for now.
func (k *Keeper) Next(u *url.URL, now time.Time) time.Time {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return now
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.lanes[o]; l != nil {
		at, _ := k.earliest(l, now, turns.Visit)
		return k.next(l, at, l.waiting.Len())
	}
	return now
}

// next is when a caller may start if others go first, the first of them at a time.
func (k *Keeper) next(l *lane, at time.Time, ahead int) time.Time {
	ahead = min(ahead, 10_000) // keeps the product in range: a delay is a day at most
	return at.Add(time.Duration(ahead) * k.delay(l, at))
}

// Now is the time. It reads the wall clock once a second, and adds what the monotonic clock says: to read both takes
// twice as long, and the clock is half of what a turn costs. So the hour of a Request-rate follows a clock that was
// set, or a machine that slept, within a second. Without a Keeper it is what the clock says.
func (k *Keeper) Now() time.Time {
	if k == nil {
		return time.Now()
	}
	if read := k.wall.Load(); read != nil {
		if d := time.Since(*read); d < time.Second {
			return read.Add(d)
		}
	}
	now := time.Now()
	k.wall.Store(&now)
	return now
}

// DelayAt is the delay that is kept at the origin of a place.
func (k *Keeper) DelayAt(pl Place, now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.delay(pl.lane, now)
}

// NextAfter is when the next request can start at the origin of a place if the one that has it ends now.
func (k *Keeper) NextAfter(pl Place, now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return rules.Later(k.spaced(pl.lane, now, now), pl.lane.Resume)
}

// mostLanes is how many origins are remembered, besides those that are busy.
const mostLanes = 50_000

// lane returns the lane of o. It makes one if there is none.
func (k *Keeper) lane(o fetch.Origin, now time.Time) *lane {
	if k.lanes == nil {
		k.lanes = make(map[fetch.Origin]*lane)
		k.ends.older, k.ends.newer = &k.ends, &k.ends
	}
	l := k.lanes[o]
	if l == nil {
		k.forget(now)
		l = &lane{origin: o.Clone()} // which must not keep the text of a whole URL
		l.newer, l.older = l, l
		k.lanes[l.origin] = l
	}
	k.use(l)
	return l
}

// use makes l the lane that was used last.
func (k *Keeper) use(l *lane) {
	l.unlink()
	l.newer, l.older = &k.ends, k.ends.older
	l.newer.older, l.older.newer = l, l
}

// unlink takes l out of the order of use.
func (l *lane) unlink() { l.newer.older, l.older.newer = l.older, l.newer }

func (k *Keeper) remove(l *lane) {
	delete(k.lanes, l.origin)
	l.unlink()
	l.newer, l.older = nil, nil // a Place may hold l, which must not hold others
}

// forget makes room for one more lane, in constant time. It looks at the longest unused
// lanes, and gives those that may not go a second chance at the other end.
//
// Forgetting a lane whose delay has passed breaks no spacing: the next decision teaches
// what was learned again. Forgetting a pause is the lesser evil against a million origins
// that all answer "come back tomorrow".
func (k *Keeper) forget(now time.Time) {
	const looks = 16
	var paused *lane
	for range looks {
		if len(k.lanes) < cmp.Or(k.Most, mostLanes) {
			return
		}
		l := k.ends.newer
		from, _ := l.From(turns.Page, 0, now)
		idle := l.Underway == 0 && l.waiting.Len() == 0 && !k.spaced(l, from, now).After(now)
		if idle && !l.Resume.After(now) {
			k.remove(l)
			continue
		}
		if idle && paused == nil {
			paused = l
		}
		k.use(l) // a second chance
	}
	if paused != nil {
		k.remove(paused)
	}
}
