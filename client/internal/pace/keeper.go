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
	"math"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

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
	lanes       *simplelru.LRU[fetch.Origin, *lane]
	storePause  time.Duration // how long to leave Turns alone after its latest failure; zero: it works
	storeFailed time.Time     // when that was

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
	if k.lanes == nil {
		return now
	}
	if l, ok := k.lanes.Peek(o); ok {
		at, _ := k.earliest(l, now, turns.Visit)
		return k.next(l, at, l.waiting.Len())
	}
	return now
}

// next is when one may start who has some ahead, the first of whom may at a time.
func (k *Keeper) next(l *lane, at time.Time, ahead int) time.Time {
	ahead = min(ahead, 10_000) // keeps the product in range: a delay is a day at most
	return at.Add(time.Duration(ahead) * k.delay(l, at))
}

// Now is the time. It reads the wall clock once a second, and adds what the monotonic clock says: to read both takes
// twice as long, and the clock is half of what a turn costs. So the hour of a Request-rate follows a clock that was
// set, or a machine that slept, within a second.
func (k *Keeper) Now() time.Time {
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
		// Bounded by forget, which knows what may go; the LRU does not.
		k.lanes, _ = simplelru.NewLRU[fetch.Origin, *lane](math.MaxInt, nil)
	}
	if l, ok := k.lanes.Get(o); ok {
		return l
	}
	k.forget(now)
	l := new(lane)
	k.lanes.Add(o.Clone(), l) // a key must not keep the text of a whole URL
	return l
}

// forget makes room for one more lane, in constant time. It looks at the longest unused
// lanes, and gives those that may not go a second chance at the other end.
//
// Forgetting a lane whose delay has passed breaks no spacing: the next decision teaches
// what was learned again. Forgetting a pause is the lesser evil against a million origins
// that all answer "come back tomorrow".
func (k *Keeper) forget(now time.Time) {
	const looks = 16
	var paused fetch.Origin // no lane has the zero Origin
	for range looks {
		if k.lanes.Len() < cmp.Or(k.Most, mostLanes) {
			return
		}
		o, l, _ := k.lanes.GetOldest()
		from, _ := l.From(turns.Page, 0, now)
		idle := l.Underway == 0 && l.waiting.Len() == 0 && !k.spaced(l, from, now).After(now)
		if idle && !l.Resume.After(now) {
			k.lanes.Remove(o)
			continue
		}
		if idle && paused == (fetch.Origin{}) {
			paused = o
		}
		k.lanes.Get(o) // moves it to the other end
	}
	k.lanes.Remove(paused)
}
