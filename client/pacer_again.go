package client

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// errAgain says that a request whose turn had come has to be decided on from the start,
// because the rules that let it through may not any more.
var errAgain = errors.New("client: decide again")

// recheck asks about a request once more when its turn has come: robots.txt may have
// changed, or be unreachable, since it was let through. The zero recheck lets all pass.
type recheck struct {
	t   *Transport
	g   *gate
	req *http.Request

	looked time.Time // when it had looked up robots.txt anew; zero: not yet
}

// holds reports whether the request is still allowed, by what the cache holds. It is
// called for the first in line when it is due, before it takes a place, so that the
// reading of robots.txt, which goes before it, is not held up by it.
//
// Where the cache holds nothing that may be used any more, robots.txt is looked up anew,
// and the request has to keep its distance to that. A robots.txt that expires sooner than
// the delay lets a request come after it would go on like that for ever. So a request
// looks it up once, and again only if it has been read for somebody else since (newest).
func (r *recheck) holds(ctx context.Context, newest time.Time) bool {
	if r.g == nil {
		return true
	}
	agent, hasAgent := r.req.Header["User-Agent"]
	token := r.t.token(r.g, gatingOf(ctx), agent, hasAgent)
	a := answer{brief: true, held: true}
	err := r.g.decide(ctx, r.req, token, &a, nil)
	if errors.Is(err, context.Canceled) && (r.looked.IsZero() || newest.After(r.looked)) {
		a = answer{brief: true}
		err = r.g.decide(ctx, r.req, token, &a, nil)
		r.looked = time.Now()
	}
	// A context that has ended is seen by who waits. A Transport or Cache that was closed
	// lets through what it had let through before.
	return err != nil || a.Allowed
}
