package client

import (
	"net/http"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
)

// Turn is the turn of one request that a Transport does not send itself: another process does, or
// a library that takes no http.RoundTripper. [Transport.Turn] returns it.
//
// A Turn takes a place at the origin until End. Its methods may be called concurrently.
type Turn struct {
	keeper *pace.Keeper // nil: nothing waits for the end
	place  pace.Place
	once   sync.Once // gives the place back
}

// Delay returns the delay that the Pacer now keeps between requests to the origin. It is zero with
// a context of WithoutRobots.
func (t *Turn) Delay() time.Duration {
	if t.keeper == nil {
		return 0
	}
	return t.keeper.DelayAt(t.place, t.keeper.Now())
}

// Answered tells the Pacer how the site answered: a 429 or 5xx makes it pause, for the
// Retry-After of header if there is one. Status 0 means that no answer came, which counts like
// a 5xx. Call it before End, and not at all for a request that was not sent.
func (t *Turn) Answered(status int, header http.Header) {
	if t.keeper != nil {
		now := t.keeper.Now()
		if status >= 400 {
			now = time.Now() // a date in Retry-After is one of the wall clock
		}
		t.keeper.Answered(t.place, status, fetch.RetryAfter(status, header, now), now)
	}
}

// End gives the place back: the delay runs from then on. Further calls do nothing.
func (t *Turn) End() {
	if t.keeper != nil {
		t.end(t.keeper.Now())
	}
}

func (t *Turn) end(now time.Time) {
	if t.keeper != nil {
		t.once.Do(func() { t.keeper.End(t.place, now) })
	}
}
