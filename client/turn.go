package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// Turn is the turn of one request that a Transport does not send itself: another process does, or
// a library that takes no http.RoundTripper. [Transport.Turn] returns it.
//
// A Turn takes a place at the origin until End. Its methods may be called concurrently.
type Turn struct {
	pacer *Pacer // nil: nothing waits for the end
	place place
	once  sync.Once // gives the place back
}

// Turn waits for the turn of a GET of u, as RoundTrip does, and sends nothing. The request
// should start at once. The caller must call End when it has read the answer or given up: until
// then, with MaxUnderway 1, no other request to the origin starts.
//
// With a context of WithoutRobots it returns at once. The errors are those of RoundTrip. Without
// a Pacer, or with a scheme that RoundTrip does not gate, Turn fails.
func (t *Transport) Turn(ctx context.Context, u *url.URL) (*Turn, error) {
	g, err := t.open()
	switch {
	case err != nil:
		return nil, err
	case g.pacer == nil:
		return nil, errors.New("client: Turn needs a Transport with a Pacer")
	case g.misuse == nil && g.isFree(u):
		return nil, schemeError(u)
	}
	req := (&http.Request{URL: u}).WithContext(ctx)
	for {
		_, o, err := g.admit(req)
		if err != nil {
			return nil, err
		}
		if o == (fetch.Origin{}) {
			return new(Turn), nil
		}
		turn, err := g.turn(ctx, u, o, recheck{g: g, req: req})
		if err != errAgain {
			return turn, err
		}
	}
}

// turn waits for a turn at o, the origin of u, and tells Trace of it. The error is errAgain if
// the request needs a new decision.
func (g *gate) turn(ctx context.Context, u *url.URL, o fetch.Origin, r recheck) (*Turn, error) {
	p := g.pacer
	l, held, err := p.turn(ctx, o, asPage, r)
	turn := new(Turn)
	if err == nil {
		turn.pacer, turn.place = p, l
	}
	given := false
	defer func() { // a hook that ends the goroutine must not keep it either
		if !given {
			turn.End()
		}
	}()
	if held > 0 && g.trace.Waited != nil {
		w := Waited{URL: u, Err: err, Took: held}
		if err == errAgain {
			w.Err = nil // the turn did come
		}
		g.call("Waited", func() { g.trace.Waited(ctx, w) })
	}
	switch {
	case err != nil:
		return nil, err
	case p.lapsed(l): // this process slept meanwhile
		return nil, errAgain
	}
	given = true
	return turn, nil
}

// Delay returns the time that the Pacer now keeps between requests to the origin. It is zero
// with a context of WithoutRobots.
func (t *Turn) Delay() time.Duration {
	if t.pacer == nil {
		return 0
	}
	t.pacer.mu.Lock()
	defer t.pacer.mu.Unlock()
	return t.pacer.delay(t.place.lane, time.Now())
}

// Answered tells the Pacer how the site answered: a 429 or 5xx makes it pause, for the
// Retry-After of header if there is one. Status 0 means that no answer came, which counts like
// a 5xx. Call it before End, and not at all for a request that was not sent.
func (t *Turn) Answered(status int, header http.Header) {
	if t.pacer != nil {
		t.pacer.note(t.place, status, fetch.RetryAfter(status, header, time.Now()))
	}
}

// End gives the place back. The delay runs from now. Further calls do nothing.
func (t *Turn) End() {
	if t.pacer != nil {
		t.once.Do(func() { t.pacer.end(t.place) })
	}
}
