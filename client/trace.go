package client

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Trace is a set of hooks that say what a Transport does and why, in the manner of
// httptrace.ClientTrace. Any hook may be nil. Hooks may be called by several
// goroutines at once, with no lock held and nobody waiting who a hook could wait for:
// they may use the Transport and its client themselves. What they are given is shared
// and must not be modified. A panic in a hook is the program's own: it is not recovered.
type Trace struct {
	// Decided is called for each answer, of RoundTrip and of Decide, with the context
	// of the request or question. RoundTrip goes on when it returns.
	Decided func(context.Context, Decided)

	// Fetched is called when a robots.txt was read without a copy to validate,
	// Refreshed when there was one. Both run on a goroutine of their own, perhaps after
	// those who waited for the file have their answers.
	Fetched   func(Fetched)
	Refreshed func(Fetched)

	// Waited is called when Pacer has held a request back, after the wait, with the
	// context of the request.
	Waited func(context.Context, Waited)

	// StoreFailed is called when the second level of the Cache gave no answer or
	// took no value. No request fails for that.
	StoreFailed func(StoreFailed)
}

// Decided says how a request or a question was answered.
type Decided struct {
	URL      *url.URL
	Target   string          // what was decided on: the request target as it goes on the wire
	Token    string          // product token that was decided for
	Decision policy.Decision // zero where there is none
	Err      error           // why robots.txt is unreachable, or why there is no Decision; else nil
	Took     time.Duration   // from question to answer, with any wait for robots.txt
}

// Fetched says what came of reading the robots.txt of one origin.
type Fetched struct {
	Origin fetch.Origin
	Result *fetch.Result // status, redirects, why it is unreachable; nil with Err
	Err    error         // why the fetch was given up, or nil
	Took   time.Duration
}

// Waited says how long a request waited for its turn.
type Waited struct {
	URL  *url.URL
	Err  error // the context's, where it ended before the turn came
	Took time.Duration
}

// StoreFailed says what the second level of the cache did not do.
type StoreFailed struct {
	Op     string // "get" or "put"
	Origin fetch.Origin
	Err    error
}

// load is the signature of (*fetch.Fetcher).Fetch.
type load = func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)

// traced reports what next loads. Close waits for the hooks that are counted in pending.
func (t *Trace) traced(next load, pending *sync.WaitGroup) load {
	if t == nil || t.Fetched == nil && t.Refreshed == nil {
		return next
	}
	return func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		hook := t.Fetched
		if prev != nil {
			hook = t.Refreshed
		}
		if hook == nil {
			return next(ctx, o, prev)
		}
		start := time.Now()
		res, err := next(ctx, o, prev)
		// The callers of this origin wait for this goroutine, and so would a hook that
		// asks about it.
		what := Fetched{Origin: o, Result: res, Err: err, Took: time.Since(start)}
		pending.Go(func() { hook(what) })
		return res, err
	}
}
