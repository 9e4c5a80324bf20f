package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// robotsLine is what the Fetcher of a Transport with a Pacer sends through. Whatever comes through it is a robots.txt, or
// a hop or a retry of one: a request to the site that it reaches, which takes a turn there. It goes before pages and
// waits for no open body, so nothing can wait for itself.
type robotsLine struct {
	gate *gate
	wire http.RoundTripper
}

// RoundTrip sends req when its turn has come. If that lies past the deadline, the site is not asked.
func (l robotsLine) RoundTrip(req *http.Request) (*http.Response, error) {
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return nil, err
	}
	place, err := l.gate.keeper.Take(req.Context(), pace.Ask{Origin: o, Robots: true})
	if err != nil {
		return nil, fetch.NoTurn{Err: l.notAsked(req.Context(), o, err)}
	}
	return sendOn(place, req, l.wire.RoundTrip)
}

// notAsked returns why there was no turn. A turn that could have come in time, and did not, is late as well: the deadline
// is the flight's, of which those who wait for it know nothing.
func (l robotsLine) notAsked(ctx context.Context, o fetch.Origin, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		return toldOf(o, err)
	}
	return lateAt(o, l.gate.keeper.Next(o))
}

// soon returns when to ask about o again whose robots.txt is being read: that takes the next start, and a page the one
// after.
func (g *gate) soon(o fetch.Origin) *LateError {
	late := lateAt(o, g.keeper.Next(o))
	late.At = late.At.Add(max(late.Delay, leastPause))
	return late
}

// leastPause is between two questions about a robots.txt that is being read.
const leastPause = 100 * time.Millisecond

// learn tells the Keeper what the rules of r ask of its token. What is unreachable, or unavailable for the moment, takes
// no delay away.
func (g *gate) learn(r *ruling, group policy.Group) {
	rules := r.policy
	if r.result != nil && (r.result.Err != nil || r.result.OfTheMoment()) {
		rules = nil
	}
	reader := r.token
	if d := g.fetcher.Dialect; d != policy.RFC9309 {
		reader += " " + d.String()
	}
	g.keeper.Learn(r.origin, reader, rules, group)
}
