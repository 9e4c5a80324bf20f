// Package turns is what several processes need to keep one pace at each origin: the interface
// of a store of turns, for the field Turns of a client.Pacer. Package redisturns keeps one in Redis;
// package turnstest tests an implementation.
//
// A store knows nothing of HTTP or robots.txt. For each origin it keeps the latest start and the
// latest end of a request, the places that are taken, a pause, and who waits. All times are by
// its own clock, never by the clocks of those who ask.
package turns

import (
	"context"
	"time"
)

// Store keeps the turns of origins. Its methods must be safe for concurrent use and end when
// ctx does. An error means that the store may or may not have done what it was asked for.
//
// At one origin a turn is given no sooner than Ask.Delay after the latest start and the latest end
// that the store knows of, not during a pause, and only while fewer than Ask.Places places are
// taken. Those who wait go in the order in which they first asked, Robots before a Visitor and a
// Visitor before the others, as long as they come back in time: if one does not, the store may give
// its turn to the next.
//
// A store forgets an origin when its pauses, the longest of the delays that it was asked for, and
// Ask.Keep have passed. A store that loses its data may let one request for each place start too
// early, in a pause too, and then keeps the pace again. It does not know which turns are in flight
// until they are Renewed.
//
// A store that outlives the programs that use it meets state that another version wrote. It must
// then give no turn that either version would refuse: it waits until all that the other has given
// must have lapsed, and keeps the longest delay. A value that is no state at all may hold up its
// origin for a time, but not for ever.
type Store interface {
	// Take asks for a turn at an origin, and takes a place for it. It does not wait: if the turn
	// has not come, the Reply says when to ask again. Asking again for a turn of the same name, as
	// after an answer that was lost, takes no second place. Nor does it give up the first: the
	// question may arrive late.
	Take(ctx context.Context, origin string, a Ask) (Reply, error)

	// Tell tells the store of what has become of a turn.
	Tell(ctx context.Context, origin string, n Report) error
}

// Kind is what a turn is for.
type Kind uint8

const (
	// Page is a request. It waits for the starts and ends of all others.
	Page Kind = iota

	// Visit reserves a turn for a request to come, as Pacer.Wait does. It takes no place, and the
	// next Page keeps the delay to it.
	Visit

	// Visitor is the request that uses a Visit. It goes before all who wait but Robots, and keeps
	// no delay to any Visit.
	Visitor

	// Robots reads robots.txt. It goes before all who wait, since they may be waiting for what that
	// says. It does not wait for a place, but takes one. It keeps the longest of the delays that
	// the store was asked for.
	Robots
)

// Ask is a question for a turn.
type Ask struct {
	Turn   string        // its name: at most 16 letters and digits, used for no other turn
	Kind   Kind          // what it is for
	Delay  time.Duration // the distance to keep
	Places int           // how many requests may be in flight; zero: any number
	Lease  time.Duration // how long a place lasts that is not renewed

	// Keep is how long the store remembers the turn after its end, if that is longer than Delay. Before robots.txt
	// has been read, its reader does not know the delay that others will ask for.
	Keep time.Duration
}

// Reply is the answer to an Ask.
type Reply struct {
	// Taken reports whether the turn is given. If so, Pause, Wait and Least are
	// zero and Wake is nil.
	Taken bool

	// Strain is how often the site has failed, less its good answers since. While it is
	// zero, good answers need no Report.
	Strain int

	// Pause is how long no turn will be given, because the site asked for it or suffers.
	Pause time.Duration

	// Wait is how long to wait before asking again: the turn can come then, if all goes as the
	// store expects.
	Wait time.Duration

	// Least is how soon the turn can come at best, even if all others give up.
	Least time.Duration

	// Wake is closed when it pays to ask sooner than Wait says. It may be nil.
	Wake <-chan struct{}
}

// Event is what happened to a turn.
type Event uint8

const (
	// Ended gives the place back: the request has ended just now. It may be told again, when a longer Delay
	// has been learned from the answer.
	Ended Event = iota

	// Dropped gives the turn back, or what waits for it: there was no request.
	Dropped

	// Renewed says that the request goes on. The place lasts for another Lease, also if it
	// had lapsed.
	Renewed

	// Failed says that the site suffers. If Pause is positive, the site asked for it;
	// otherwise the pause grows: twice the delay (or two seconds, if that is more), then twice
	// as long with each failure, up to an hour.
	Failed

	// Answered says that the site does well. It halves the next pause.
	Answered
)

// Report is what happened to a turn.
type Report struct {
	Ask                 // the turn
	Event Event         // what happened
	Pause time.Duration // of Failed
}
