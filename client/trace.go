package client

import (
	"context"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// Trace is a set of hooks to run at various stages of a Transport's work, in the manner
// of httptrace.ClientTrace. Any particular hook may be nil. Hooks may be called
// concurrently from different goroutines. What they receive is shared and must not be
// modified.
//
// A hook runs where the event happens, and the work goes on when it returns. It must not
// use the Transport: a Fetched that asks about its own origin would wait for itself.
//
// A hook that panics ends nothing. The first panic of each hook is logged to slog.Default,
// with its stack. If Decided panics, an allowed request is not sent; its error names the
// panic.
//
// Shutdown does not wait for a hook that runs, unless it is Fetched. A closed Transport calls none.
type Trace struct {
	// Decided is called each time that RoundTrip, Turn or Decide has asked about a request, with its
	// context: for an error too, but not with WithoutRobots, with a scheme that is not gated, or for
	// a header that cannot be sent. If a request was allowed, but may no longer be sent after it waited for a
	// connection, for Sign or for Decided, Decided is called once more. If nil, nothing is called.
	Decided func(context.Context, DecidedInfo)

	// Fetched is called after robots.txt was read, with the context of the fetch. It runs within
	// the shared fetch, and all callers who need that file wait for it. If nil, nothing is called.
	Fetched func(context.Context, FetchedInfo)

	// Waited is called after the Pacer has held a request back, with the context of the request. A
	// request that got its turn keeps it while Waited runs. If nil, nothing is called.
	Waited func(context.Context, WaitedInfo)
}

// DecidedInfo says how a request or a question was answered.
type DecidedInfo struct {
	URL    *url.URL
	Target string // what was decided on: the request target as it goes on the wire

	// If Err is not nil, Answer has its Token only.
	Answer

	Err  error         // why there is no answer, or nil
	Took time.Duration // from question to answer, with any wait for robots.txt
}

// FetchedInfo says what came of reading the robots.txt of one origin.
type FetchedInfo struct {
	Origin  fetch.Origin
	Refresh bool          // there was a copy to validate
	Result  *fetch.Result // status, redirects, why it is unreachable; nil if Err is not
	Err     error         // why the fetch was given up, or nil
	Took    time.Duration // with the wait for the Pacer
}

// WaitedInfo says how long a request waited for its turn.
type WaitedInfo struct {
	URL  *url.URL
	Err  error // why the request left without a turn, or nil
	Took time.Duration
}

// timed calls f and returns how long it took.
func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
