package shell

// A question over the network. Await of progress.go says on a terminal what is waited for.

import (
	"context"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// Asked is one origin whose robots.txt is being asked for. Result, Until and Err may be read when Done is closed.
type Asked struct {
	Origin fetch.Origin
	// when NewAsked was called, for those who tell how long it takes
	Since  time.Time
	Done   chan struct{} // closed once these are set
	Result *fetch.Result
	Until  time.Time // when it is asked for again; zero: no cache knows
	Err    error
}

// NewAsked returns a question that Run, once, has to be called for.
func NewAsked(o fetch.Origin) *Asked {
	return &Asked{Origin: o, Since: time.Now(), Done: make(chan struct{})}
}

// Run asks by lookup, and closes Done. It must be called once.
func (a *Asked) Run(ctx context.Context, lookup func(context.Context, fetch.Origin) (*fetch.Result, time.Time, error)) {
	defer close(a.Done)
	a.Result, a.Until, a.Err = lookup(ctx, a.Origin)
}
