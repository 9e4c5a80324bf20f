// Package pace keeps the pace of a client.Pacer: who may start at an origin, and when. It knows nothing of gates and
// transports.
package pace

import (
	"context"
	"fmt"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Day bounds every wait that a site can cause.
const Day = 24 * time.Hour

// Keeper keeps the pace of all origins. Its fields are those of a client.Pacer with their zero values resolved, and must
// not change after the first use. It owns no goroutine.
type Keeper struct {
	Delay            time.Duration // kept where robots.txt asks for none
	MinDelay         time.Duration // a floor that nothing undercuts; zero: none
	MaxDelay         time.Duration // bounds what robots.txt may ask for: Day at most
	RefuseLongDelays bool          // refuse, with a *Slow, origins that ask for more than MaxDelay
	MaxUnderway      int           // at one origin; zero: any number
	Turns            turns.Store   // nil: the pace of this process only
	MaxOrigins       int           // to remember, besides those that are busy; zero: 50,000
}

// Ask is a request for a place at an origin.
type Ask struct {
	Origin fetch.Origin

	// Robots says that it is a robots.txt, or a hop or a retry of one. It goes before all others and waits for no open
	// body, but for up to five seconds for the header of a request under way.
	Robots bool

	// Held is the place that a Turn holds, to send on: Take returns it again. It keeps the distance once more if
	// another start, an end or a pause has come since it was taken. Nil: take one.
	Held *Place

	// Recheck decides once more. The first in line calls it, without a lock, when its time has come and Take, or the
	// latest Recheck, is more than a second ago. Robots may take their turns meanwhile, and go first. Since is when this
	// request came to stand first: what was read later need not be read again. An error gives the place up, and Take
	// returns it. Nil: never.
	Recheck func(ctx context.Context, since time.Time) error
}

// Take waits for its turn and takes a place, which has to be given back with End. The error is the context's cause, a
// *Late if the turn lies past its deadline, a *Slow, or what Recheck returned. If Turns has failed meanwhile, the
// context's cause is wrapped with that.
func (k *Keeper) Take(ctx context.Context, a Ask) (*Place, error) { panic("to come") }

// Try is Take without waiting, but for the answer of Turns and for Recheck: if the turn has not come, the error is a
// *Late that says when. The origin keeps a place in line for any later Try until At plus 250 ms.
func (k *Keeper) Try(ctx context.Context, a Ask) (*Place, error) { panic("to come") }

// Next is what a Try would be told now, and takes no place in line. At may lie in the past: a request may start at once.
func (k *Keeper) Next(o fetch.Origin) *Late { panic("to come") }

// Learn notes what robots.txt asks of a reader: the group of that reader in p. The reader is the product token and the
// dialect that it is read in, as any text. What is kept is the largest delay of all readers at o that were heard of
// within an hour. The same pointer is the same set of rules, so a call that brings nothing new is cheap. If p is nil, the
// file is unreachable: what was asked for before is kept.
func (k *Keeper) Learn(o fetch.Origin, reader string, p *policy.Policy, g policy.Group) {}

// DelayOf returns the delay that is kept at o now, and the one that robots.txt asks for; zero: none.
func (k *Keeper) DelayOf(o fetch.Origin) (delay, asked time.Duration) { return 0, 0 }

// Place is a request's place at an origin, from its turn until its end. Its methods are safe for concurrent use.
type Place struct{}

// Start says that the request is handed on right now: others keep their distance from that. The turn itself counts as
// the start until then.
func (p *Place) Start() {}

// Answered says that the header of the answer came, or with status zero that none will. A 429 or a 5xx, or no answer,
// slows the site: for retryAfter, if that is not zero, else for a pause that grows. Others speed it up again.
func (p *Place) Answered(status int, retryAfter time.Duration) {}

// End gives the place back: the body is closed, or there is none. Only the first call counts.
func (p *Place) End() {}

// Delay is the distance kept at the origin of the place.
func (p *Place) Delay() time.Duration { return 0 }

// Late is the error that a turn does not come in time. It wraps nothing.
type Late struct {
	At     time.Time     // when it can come, as far as is known
	Delay  time.Duration // the distance kept at the origin
	Paused bool          // because of a pause, that the site asked for or needs
}

func (l *Late) Error() string {
	why := ""
	if l.Paused {
		why = ", after a pause"
	}
	return fmt.Sprintf("no turn before %s%s", l.At.Format(time.RFC3339), why)
}

// Slow is the refusal of an origin that asks for more than MaxDelay.
type Slow struct{ Asked, Max time.Duration }

func (s *Slow) Error() string {
	return fmt.Sprintf("robots.txt asks for a delay of %s, more than %s", s.Asked, s.Max)
}
