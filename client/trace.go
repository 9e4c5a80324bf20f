package client

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// Trace is a set of hooks to run at various stages of a Transport's work, in the manner of httptrace.ClientTrace. Any
// particular hook may be nil. Hooks may be called concurrently from different goroutines. What they receive is shared
// and must not be modified. Each value that they receive prints, and is logged, as one short line.
//
// A hook runs where the event happens, and the work goes on when it returns. It must not use the Transport: a Fetched
// that asks about its own origin would wait for itself. After Close, no hook is called.
type Trace struct {
	// Decided is called each time that RoundTrip, Turn, Try or Decide has asked about a request, with its context: for an
	// error too, but not with WithoutRobots or with a scheme that is not gated. If a request was allowed, but no longer
	// when its turn came, Decided is called once more. It counts questions, not pages: one that is sent on a Turn was
	// asked about by each Try before, and by RoundTrip. If nil, nothing is called.
	Decided func(context.Context, DecidedInfo)

	// Fetched is called after robots.txt was read, with the context of the fetch. It runs within the shared fetch, and
	// all callers who need that file wait for it. If nil, nothing is called.
	Fetched func(context.Context, FetchedInfo)

	// Waited is called after the Pacer has held a request for u back for a millisecond or more, and for each that left
	// without a turn, such as a Try that is late: err says why, or is nil. A request that got its turn keeps it while
	// Waited runs. A Try that is late because robots.txt is being read has not come to the Pacer: Decided is told. If
	// nil, nothing is called.
	Waited func(ctx context.Context, u *url.URL, took time.Duration, err error)
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

// String returns the error or the answer, and the URL, in one line.
func (d DecidedInfo) String() string {
	what := d.Answer.String()
	if d.Err != nil {
		what = printable(d.Err.Error())
	}
	return fmt.Sprintf("%s: %s (%v)", what, printableURL(d.URL), d.Took)
}

// LogValue returns what String does.
func (d DecidedInfo) LogValue() slog.Value { return slog.StringValue(d.String()) }

// FetchedInfo says what came of reading the robots.txt of one origin.
type FetchedInfo struct {
	Origin  fetch.Origin
	Refresh bool          // a copy was validated
	Result  *fetch.Result // status, redirects, why it is unreachable; nil if Err is not
	Err     error         // why the site was not asked, or nil
	Took    time.Duration // with the wait for the Pacer
}

// String returns the error or what the site answered, and the origin, in one line.
func (f FetchedInfo) String() string {
	what := "nothing"
	switch {
	case f.Err != nil:
		what = f.Err.Error()
	case f.Result != nil:
		what = f.Result.String()
	}
	return fmt.Sprintf("%s: robots.txt of %s (%v)", printable(what), cut(f.Origin.String()), f.Took)
}

// LogValue returns what String does.
func (f FetchedInfo) LogValue() slog.Value { return slog.StringValue(f.String()) }

// printableURL returns u as text for people, without its password.
func printableURL(u *url.URL) string {
	if u == nil {
		return "no URL"
	}
	return printable(u.Redacted())
}
