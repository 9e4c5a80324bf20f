package client

import (
	"context"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// Trace is a set of hooks to run at various stages of a Transport's work, in the manner of httptrace.ClientTrace. Any
// particular hook may be nil. Hooks may be called concurrently from different goroutines. What they receive is shared
// and must not be modified. An Answer and a Result print, and are logged, as one short line. A URL may hold a password:
// print u.Redacted().
//
// A hook runs where the event happens, and the work goes on when it returns. It must not use the Transport: a Fetched
// that asks about its own origin would wait for itself. A call that begins after Close calls no hook.
type Trace struct {
	// Decided is called each time that RoundTrip, Turn, Try or Decide has asked about a request for u, with its context:
	// for an error too, but not with WithoutRobots or with a scheme that is not gated. What is decided on is
	// u.RequestURI(). With an error, a has its Token only, and u may be nil. took includes any wait for robots.txt.
	//
	// If a request was allowed, but no longer when its turn came, Decided is called once more. It counts questions, not
	// pages: one that is sent on a Turn was asked about by each Try before, and by RoundTrip. If nil, nothing is called.
	Decided func(ctx context.Context, u *url.URL, a Answer, took time.Duration, err error)

	// Fetched is called after the robots.txt of o was read, with the context of the fetch. With an error, which says why
	// the site was not asked, r is nil. An outage is r.Err. took includes the wait for the Pacer. The hook runs within the
	// shared fetch, and all callers who need that file wait for it. If nil, nothing is called.
	Fetched func(ctx context.Context, o fetch.Origin, r *fetch.Result, took time.Duration, err error)

	// Waited is called after the Pacer has held a request for u back for a millisecond or more, and for each that left
	// without a turn, such as a Try that is late: err says why, or is nil. A request that got its turn keeps it while
	// Waited runs. A Try that is late because robots.txt is being read has not come to the Pacer: Decided is told. If
	// nil, nothing is called.
	Waited func(ctx context.Context, u *url.URL, took time.Duration, err error)
}
