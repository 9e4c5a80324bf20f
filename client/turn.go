package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
)

// Turn is the leave to send one request: robots.txt allows it, and it should start at once. [Transport.Turn] and
// [Transport.Try] return one. Send the request with Context. If something else sends it (another process, a library
// that takes no http.RoundTripper), report how that ended with Answered and End. A redirect is a URL with a Turn of its
// own.
//
// A Turn takes a place at the origin until End: with MaxUnderway 1, no other request there starts. So always call End,
// even if the Turn was not used. Its methods may be called concurrently. The zero Turn has no place.
type Turn struct {
	keeper *pace.Keeper
	origin fetch.Origin
	place  *pace.Place // nil with WithoutRobots
	given  time.Time
	read   time.Time   // when the robots.txt was received that allowed it; zero if there was none
	gone   atomic.Bool // a request has taken the place over, or it was given back
}

type turnKey struct{}

// Context returns a context for the request that the turn is for. The first request to the Turn's origin that is made
// with it, through a Transport with the same Pacer and whatever its path, uses the turn. It is decided on as always. If
// another request has started or ended there since, or the site asked for a pause, it waits once more; with
// Pacer.Turns, also if it comes more than some 250 ms late. Its place is free when its body is closed, and End then
// does nothing. Later requests, such as the hops of redirects, wait in line. A Turn in a context hides any Turn that is
// there already.
func (t *Turn) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// turnOf returns the Turn in a context that a request to o can use, or nil.
func turnOf(ctx context.Context, k *pace.Keeper, o fetch.Origin) *Turn {
	if t, ok := ctx.Value(turnKey{}).(*Turn); ok && t.place != nil && t.keeper == k && t.origin == o && !t.gone.Load() {
		return t
	}
	return nil
}

// claimTurn returns the place of the Turn in a context for a request to o, which takes it over, or nil.
func claimTurn(ctx context.Context, k *pace.Keeper, o fetch.Origin) *pace.Place {
	if t := turnOf(ctx, k, o); t != nil && t.gone.CompareAndSwap(false, true) {
		return t.place
	}
	return nil
}

// Delay returns the delay that the Pacer now keeps between requests to the origin. That long after the end of this one,
// a Try there is worth a call again. It is zero with a context of WithoutRobots.
func (t *Turn) Delay() time.Duration {
	if t.place == nil {
		return 0
	}
	return t.place.Delay()
}

// Answered tells the Pacer how the site answered a request that no Transport sent: a 429 or 5xx makes it pause, for the
// Retry-After of header if there is one. Status 0 means that the site was tried and gave no answer, which counts like a
// 5xx. Call it before End, and not at all if nothing was tried.
func (t *Turn) Answered(status int, header http.Header) {
	if t.place != nil {
		t.place.Answered(status, fetch.RetryAfter(status, header, time.Now()))
	}
}

// End gives the place back: the delay runs from then on. Further calls do nothing.
func (t *Turn) End() {
	if t.place != nil && t.gone.CompareAndSwap(false, true) {
		t.place.End()
	}
}

// Turn reads robots.txt, decides on a GET of u with ctx, and waits for its turn, as RoundTrip does. The request should
// start at once. See [Turn] for how it is sent.
//
// With a context of WithoutRobots it returns at once. The errors are those of RoundTrip. Turn fails without a Pacer,
// and for a scheme that RoundTrip does not gate.
func (t *Transport) Turn(ctx context.Context, u *url.URL) (*Turn, error) {
	return t.turn(ctx, u, untilRead)
}

// Try is Turn without waiting, for a queue: it returns a Turn, a refusal as RoundTrip does, or a *LateError, whose At
// is when to ask again. It also returns a *LateError while robots.txt is being read, which goes on meanwhile. The
// worker of the queue puts the URL back until At, and goes on with one of another site.
//
// A Try that came too early keeps a place in line at the origin until At plus 250 ms, for the next Try there, whatever
// its URL. One that comes after that goes to the end of the line, which matters only where others wait at the site.
// With Pacer.Turns, Try waits for the answer of the store, but no longer than ctx.
func (t *Transport) Try(ctx context.Context, u *url.URL) (*Turn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return t.turn(ctx, u, notAtAll)
}

func (t *Transport) turn(ctx context.Context, u *url.URL, w waiting) (*Turn, error) {
	g, err := t.open(u)
	switch {
	case err != nil:
		return nil, err
	case g.keeper == nil:
		return nil, notSentf("client: Turn and Try need a Transport with a Pacer")
	}
	req := (&http.Request{URL: u}).WithContext(ctx)
	own := gatingOf(ctx)
	r := ruling{own: own, token: g.tokenFor(own, nil, false), waitFor: w}
	if err := g.admit(req, &r); err != nil {
		return nil, err
	}
	if own.bypass {
		return new(Turn), nil
	}
	place, err := g.turn(ctx, req, &r, pace.Ask{Kept: true})
	if err != nil {
		return nil, err
	}
	turn := &Turn{keeper: g.keeper, origin: r.origin, place: place, given: time.Now()}
	if r.result != nil {
		turn.read = r.result.Time
	}
	return turn, nil
}

// minWait is the shortest wait for a turn that came, and is reported to Trace.
const minWait = time.Millisecond

// turn waits for the turn of req, which r allows, and takes a place.
func (g *gate) turn(ctx context.Context, req *http.Request, r *ruling, ask pace.Ask) (*pace.Place, error) {
	ask.Origin = r.origin
	if r.policy != nil { // else it is robots.txt itself
		ask.Recheck = func(ctx context.Context, since time.Time) error { return g.recheck(ctx, req, r, since) }
	}
	take := g.keeper.Take
	if r.waitFor == notAtAll {
		take = g.keeper.Try
	}
	start := time.Now()
	place, err := take(ctx, ask)
	err = fromPace(r.origin, err)
	took := time.Since(start)
	if (took >= minWait || err != nil) && g.trace.Waited != nil && !g.closed.Load() {
		g.trace.Waited(ctx, req.URL, took, err)
	}
	if err != nil && ask.Held != nil {
		ask.Held.End()
	}
	return place, err
}

// fromPace returns an error of the Keeper as one of this package.
func fromPace(o fetch.Origin, err error) error {
	if err == nil {
		return nil
	}
	if late, ok := err.(*pace.LateError); ok {
		return newLateError(o, late)
	}
	if err != context.DeadlineExceeded && errors.Is(err, context.DeadlineExceeded) {
		return waitError{err}
	}
	return err
}

func newLateError(o fetch.Origin, late *pace.LateError) *LateError {
	return &LateError{Origin: o.Clone(), At: late.At, Delay: late.Delay, Paused: late.Paused, full: late.Full, turnsErr: late.Err}
}

// freshTime is how old a copy may be, however short its lifetime, to decide on a request once more: a site whose file
// expires sooner than its delay would otherwise get nothing but requests for the file.
const freshTime = time.Minute

// recheck decides once more on a request whose turn has come, and that was first in line since a given time: by what
// the cache holds, else by what it last held if that is fresh, else by what robots.txt says now.
func (g *gate) recheck(ctx context.Context, req *http.Request, r *ruling, since time.Time) error {
	start := time.Now()
	again := *r
	again.waitFor = inMemory
	err := g.decide(ctx, req, &again)
	if errors.Is(err, cache.ErrMiss) {
		seen := r.result
		last := again.result // the newest that memory has, though it no longer holds
		newer := last != nil && (seen == nil || last.Time.After(seen.Time))
		if !newer && seen != nil && (start.Sub(seen.Time) < freshTime || seen.Time.After(since)) {
			return nil // r stands
		}
		if newer && start.Sub(last.Time) < freshTime {
			again.policy = last.Policy
			g.rule(&again)
			err = nil
		} else {
			again.waitFor = r.waitFor
			err = g.decide(ctx, req, &again)
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, cache.ErrClosed): // what was let through goes on
		return nil
	case err == nil && again.Allowed:
		again.waitFor = r.waitFor
		*r = again
		return nil
	}
	g.traceDecided(ctx, req, &again, err, time.Since(start))
	return cmp.Or(err, again.refusal(req.URL))
}
