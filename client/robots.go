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

// robotsTransport is what the Fetcher of a Transport with a Pacer sends through: a robots.txt, or a hop or a retry of
// one. Each takes a turn at the site that it is sent to. It goes before pages and waits for no open body, so nothing can
// wait for itself.
type robotsTransport struct {
	gate *gate
	wire http.RoundTripper
}

// RoundTrip sends req when its turn has come. If that is after the deadline, the site is not asked.
func (t robotsTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return nil, err
	}
	place, err := t.gate.keeper.Take(req.Context(), pace.Ask{Origin: o, Robots: true})
	if err != nil {
		return nil, t.notAsked(req.Context(), o, err)
	}
	return sendOn(place, req, t.wire.RoundTrip)
}

// notAsked returns why there was no turn. If it did not come by the deadline, it is late as well: the deadline is that
// of the flight, which those who wait for it do not know.
func (t robotsTransport) notAsked(ctx context.Context, o fetch.Origin, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		return fromPace(o, err)
	}
	return newLateError(o, t.gate.keeper.Next(o))
}

// fetchErrs are the errors of recent fetches that did not ask the site. A lost one costs a Try a question.
type fetchErrs struct {
	mu   sync.Mutex // guards what follows
	errs map[fetch.Origin]failure
}

type failure struct {
	err error
	at  time.Time
}

// Bounds on how many errors are kept, and for how long.
const (
	maxFetchErrs  = 1000
	fetchErrHolds = time.Minute
)

// note replaces the error of o, and removes it if err is nil.
func (l *fetchErrs) note(o fetch.Origin, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.errs, o)
		return
	}
	if l.errs == nil || len(l.errs) >= maxFetchErrs {
		l.errs = make(map[fetch.Origin]failure)
	}
	l.errs[o] = failure{err, time.Now()}
}

// take removes the error of o, and returns it unless it is out of date.
func (l *fetchErrs) take(o fetch.Origin) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.errs[o]
	delete(l.errs, o)
	late, ok := errors.AsType[*LateError](f.err)
	if time.Since(f.at) > fetchErrHolds || ok && !late.At.After(time.Now()) {
		return nil
	}
	return f.err
}

// minPause is the least time between two questions about a robots.txt that is being read.
const minPause = 100 * time.Millisecond

// learn tells the Keeper what delays the rules of r ask of its token. A site that is unreachable, or unavailable for
// the moment, keeps those it had.
func (g *gate) learn(r *ruling, group policy.Group) {
	rules := r.policy
	if r.result != nil && (r.result.Err != nil || r.result.OfTheMoment()) {
		rules = nil
	}
	reader := r.token
	if d := g.source.Dialect; d != policy.RFC9309 {
		reader += " " + d.String()
	}
	g.keeper.Learn(r.origin, reader, rules, group)
}
