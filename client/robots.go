package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
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

// told returns why robots.txt was not asked for of late, if no Try has been told: without waiting it would not hear of it.
func (g *gate) told(ctx context.Context, o fetch.Origin) error {
	err := g.lately.take(o)
	if err == nil {
		return nil
	}
	return g.unknown(ctx, o, err)
}

// lately are the errors of the latest fetches, of those that had one. A lost one costs a Try a question.
type lately struct {
	mu   sync.Mutex
	errs map[fetch.Origin]failure
}

type failure struct {
	err error
	at  time.Time
}

// mostErrors bounds what is kept, and errorHolds for how long.
const (
	mostErrors = 1000
	errorHolds = time.Minute
)

func (l *lately) note(o fetch.Origin, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.errs, o)
		return
	}
	if l.errs == nil || len(l.errs) >= mostErrors {
		l.errs = make(map[fetch.Origin]failure)
	}
	l.errs[o] = failure{err, time.Now()}
}

func (l *lately) take(o fetch.Origin) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.errs[o]
	delete(l.errs, o)
	late, ok := errors.AsType[*LateError](f.err)
	if time.Since(f.at) > errorHolds || ok && !late.At.After(time.Now()) {
		return nil
	}
	return f.err
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
