// Package pace keeps the pace of a client.Pacer: who may start at an origin, and when. It knows nothing of gates and
// transports.
//
// This file has what package client calls. The others are about the line at an origin (line.go), the request on its way
// (place.go), the delays of robots.txt (learn.go), the turns.Store (fleet.go) and the origins remembered (memory.go).
package pace

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/fetch"
)

// Day bounds every wait that a site can cause.
const Day = 24 * time.Hour

const (
	// decisionHolds is how long a decision stands without a Recheck.
	decisionHolds = time.Second

	// tryGrace is how long after its At the place in line of a Try is kept.
	tryGrace = 250 * time.Millisecond

	// tryAgain is the least time until another Try, if a request has to end first.
	tryAgain = 100 * time.Millisecond

	// headerPatience is how long a robots.txt waits for the header of another request.
	headerPatience = 5 * time.Second
)

// Keeper keeps the pace of all origins. Its fields are those of a client.Pacer with their zero values resolved, and
// must not change after the first use. It has goroutines only while it tells Turns of pauses.
type Keeper struct {
	Delay       time.Duration // kept where robots.txt asks for none
	MinDelay    time.Duration // a floor that nothing undercuts; none if zero
	MaxDelay    time.Duration // bounds what robots.txt may ask for: Day at most
	MaxUnderway int           // at one origin; unbounded if zero
	Turns       turns.Store   // nil for the pace of this process only
	MaxOrigins  int           // to remember, besides those that are busy; 50,000 if zero

	mu    sync.Mutex // guards all that follows, and what hangs off it
	lines *simplelru.LRU[fetch.Origin, *line]
	fleet fleet
}

// Ask is a request for a place at an origin.
type Ask struct {
	Origin fetch.Origin

	// Robots says that it is a robots.txt, or a hop or a retry of one. It goes before all others and waits for no open
	// body, but for up to five seconds for the header of a request under way.
	Robots bool

	// Held is the place that a Turn holds, to send on: Take returns it again. It keeps the distance once more if
	// another start, an end or a pause has come since it was taken. If nil, or if it has ended, Take takes a place.
	Held *Place

	// Kept says that the place is for a request to come, like that of a Turn: it may start a little later.
	Kept bool

	// Recheck decides once more. The first in line calls it, without a lock, when its time has come and Take, or the
	// latest Recheck, is more than a second ago. Robots may take their turns meanwhile, and go first. since is when this
	// request became the first in line: what was read later need not be read again. After an error the place is given up,
	// and Take returns the error. If nil, the decision stands.
	Recheck func(ctx context.Context, since time.Time) error
}

// Take waits for its turn and takes a place, which has to be given back with End. The error is the context's cause, a
// *LateError if the turn lies past its deadline, or what Recheck returned. While Turns fails, the cause is wrapped
// together with that failure.
func (k *Keeper) Take(ctx context.Context, a Ask) (*Place, error) { return k.take(ctx, a, false) }

// Try is Take without waiting, except for the answer of Turns: if the turn has not come, the error is a *LateError that
// says when it may. The origin then keeps a place in line, for any later Try there, until At plus 250 ms.
func (k *Keeper) Try(ctx context.Context, a Ask) (*Place, error) { return k.take(ctx, a, true) }

// Next returns what a Try would be told now, but takes no place in line. If a request may start at once, At is now.
func (k *Keeper) Next(o fetch.Origin) *LateError {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	l := k.known(o)
	if l == nil {
		return &LateError{At: now, Delay: k.floor()}
	}
	w := new(waiter)
	return l.late(w, l.earliest(w, now), l.waiting.Len(), now)
}

// Later is Next for a Try whose robots.txt is being read, which takes the next start and leaves the one after to a
// page. It takes a place in line as a Try does.
func (k *Keeper) Later(o fetch.Origin) *LateError {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	l := k.line(o, now)
	w := l.enter(Ask{Origin: o}, true, now)
	late := l.late(w, l.earliest(w, now), l.ahead(w), now)
	late.At = late.At.Add(max(late.Delay, tryAgain))
	l.leftBy(w, late)
	l.leave(w)
	return late
}

// Since returns when the first Try came for the place in line that is kept; zero if there is none, or if a pause has
// come since.
func (k *Keeper) Since(o fetch.Origin) (first time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.known(o); l != nil {
		l.lapse(time.Now())
		if l.leftPlace != nil {
			first = l.leftPlace.since
		}
	}
	return first
}

// LateError is the error for a turn that does not come in time. It wraps nothing.
type LateError struct {
	At     time.Time     // when it can come, as far as is known
	Delay  time.Duration // the distance kept at the origin
	Paused bool          // because of a pause that the site asked for or needs
	Full   bool          // because of a request that has to end first, or just had to
	Err    error         // why Turns could not be asked, or nil
}

// Error says little: package client makes an error of its own from the fields.
func (l *LateError) Error() string { return "no turn before " + l.At.Format(time.RFC3339) }
