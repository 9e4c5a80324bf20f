package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
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

// wait makes t, which must be new, the turn at o, the origin of u, and tells Trace of the wait for it. The error is
// errAgain if the request needs a new decision, and another Turn.
func (t *Turn) wait(ctx context.Context, g *gate, u *url.URL, o fetch.Origin, r recheck) error {
	p := g.pacer
	l, held, err := p.turn(ctx, o, turns.Page, r)
	if err == nil {
		t.pacer, t.place = p, l
	}
	given := false
	defer func() { // a hook that ends the goroutine must not keep it either
		if !given {
			t.End()
		}
	}()
	if held > 0 && g.trace.Waited != nil {
		w := WaitedInfo{URL: u, Err: err, Took: held}
		if err == errAgain {
			w.Err = nil // the turn did come
		}
		g.call("Waited", func() { g.trace.Waited(ctx, w) })
	}
	switch {
	case err != nil:
		return err
	case p.lapsed(l): // this process slept meanwhile
		return errAgain
	}
	given = true
	return nil
}

// Delay returns the delay that the Pacer now keeps between requests to the origin. It is zero with
// a context of WithoutRobots.
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

// End gives the place back: the delay runs from then on. Further calls do nothing.
func (t *Turn) End() {
	if t.pacer != nil {
		t.once.Do(func() { t.pacer.end(t.place) })
	}
}

// recheck asks about a request once more when its turn has come: robots.txt may have
// changed, or be unreachable, since it was let through. The zero recheck lets all pass.
type recheck struct {
	g      *gate
	req    *http.Request
	by     *Agreement // that let it through, or nil
	looked time.Time  // when robots.txt was looked up again, or zero
	pause  time.Time  // that was known after that: its end
	visit  uint64     // the target that Pacer.Wait waits for; with try, the only one of these
	try    bool       // of Pacer.Try
}

// holds reports whether the request is still allowed, by what the cache holds. It is
// called for the first in line when its time has come, before it takes a place: so it
// does not hold up the reading of robots.txt, which goes first.
//
// If the cache holds nothing usable, holds looks robots.txt up anew, and the request has
// to keep its distance to that. If robots.txt expires sooner than the delay, that could
// go on for ever. So a request causes one such look-up, and another only if robots.txt
// was read for another request since (newest).
func (r *recheck) holds(ctx context.Context, newest time.Time) bool {
	if r.g == nil {
		return true
	}
	d, err := r.g.rule(ctx, r.req, true)
	if errors.Is(err, context.Canceled) && (r.looked.IsZero() || newest.After(r.looked)) {
		d, err = r.g.rule(ctx, r.req, false)
		r.looked = time.Now()
	}
	return r.g.refusal(r.req, &d, r.by, err) == nil
}
