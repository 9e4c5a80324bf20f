// Package turns lets processes that share one pace, a fleet, agree on when each may start a request at an origin
// (scheme, host and port).
//
// A client.Pacer with a Store reserves its starts there. Package redisturns is a Store in Redis; package turnstest
// tests whether another Store keeps the promises of this page, and has one in memory for tests.
package turns

import (
	"context"
	"errors"
	"time"
)

// ErrForgotten is the error of a Pause when the Store finds that it has lost what was last reserved for the key through
// it: the start must not be made, but another may be reserved. A Store need not notice that. One that does lets fewer
// starts come too early when it loses its data: of those that others reserve anew, and those that were reserved before.
var ErrForgotten = errors.New("turns: the store has lost what was reserved")

// Store keeps the starts of a fleet, by its own clock: the clocks of its callers do not count. Its methods must be safe
// for concurrent use, and end when ctx does. After an error it is unknown whether the call took effect: a start
// may be reserved and never made.
//
// A key stands for an origin, such as "https://www.example.com". It may have any bytes. For each key it keeps three
// times: last, until when the latest start that it reserved may be made; next, the earliest start that it may reserve;
// and resume, the end of the longest pause. For a key that is new or forgotten, all three lie in the far past. It may
// forget a key when a minute has passed since the later of next and resume, and not before. A Store that loses its data
// lets starts of each key come too early, in a pause too: see ErrForgotten.
type Store interface {
	// Reserve reserves the earliest free start, in one atomic step: at = max(now, next, resume, last+delay). If at is
	// no later than now+within, it is reserved: last becomes at+late, next becomes at+late+delay, and ok is true. Else
	// nothing changes. Wait is at minus now, in both cases: how long, from the answer on, until the start, or until it
	// pays to ask again. It is never negative.
	//
	// Delay is the distance to the starts before and after, a day at most. Late is how much later than at the start may
	// be made. What is negative is zero.
	Reserve(ctx context.Context, key string, delay, late, within time.Duration) (wait time.Duration, ok bool, err error)

	// Pause lets nothing start for d from now on: no start is reserved before. A pause never shortens another. Rest is
	// how long the longest pause still lasts, zero if there is none. If d is zero or negative, nothing changes: the call
	// only asks.
	Pause(ctx context.Context, key string, d time.Duration) (rest time.Duration, err error)
}
