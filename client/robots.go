package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// robotsVisit is the reading of one robots.txt. Its first request has a turn at the origin, which its redirects
// within the origin share. What a redirect to another origin leads to is a request to that: it has a turn there,
// like a robots.txt of its own. So is a retry.
//
// A turn for robots.txt waits for no place. So two origins that redirect to each other, each with its place
// taken, do not wait for each other.
type robotsVisit struct {
	keeper *pace.Keeper
	ctx    context.Context // bounds the waiting for all turns
	origin fetch.Origin    // of own
	own    *Turn
	at     fetch.Origin // of current

	current atomic.Pointer[Turn] // own, or that of a redirect; requests may outlive the visit; nil: given back
	late    *LateError           // why there was no turn for a redirect
	queued  bool                 // a retry could have come in time, and our queue or store was in the way
}

// next is for fetch.WithTurns.
func (v *robotsVisit) next(u *url.URL, status int, until time.Time) error {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return err
	}
	if *o.RobotsURL() == *v.origin.RobotsURL() {
		o = v.origin // which may be reached under another name: u has the host to connect to
	}
	ctx, cancel := context.WithDeadline(v.ctx, until)
	defer cancel()
	if status == 0 {
		return v.again(ctx, o, until)
	}
	if o == v.at {
		return nil
	}
	now := v.keeper.Now()
	v.note(status, 0, now)
	if turn := v.current.Load(); turn != v.own {
		turn.end(now)
	}
	v.at = v.origin
	v.current.Store(v.own)
	if o == v.origin {
		return nil
	}
	turn, _, err := robotsTurn(ctx, v.keeper, o)
	if err != nil {
		v.late, _ = errors.AsType[*LateError](err)
		return err
	}
	v.at = o
	v.current.Store(turn)
	return nil
}

// again waits for the turn of a retry, if that can come in time.
func (v *robotsVisit) again(ctx context.Context, o fetch.Origin, until time.Time) error {
	turn := v.current.Load()
	if turn.place.Lost() {
		return pace.ErrLost
	}
	now := v.keeper.Now()
	if at := v.keeper.NextAfter(turn.place, now); at.After(until) {
		return lateAt(o, at, now, false)
	}
	turn.end(now)
	v.current.Store(nil)
	next, _, err := robotsTurn(ctx, v.keeper, o)
	if err == nil {
		v.current.Store(next)
	}
	if v.at == v.origin {
		v.own = next
	}
	_, isLate := errors.AsType[*LateError](err) // the site's pace is in the way: the store knew of a longer delay
	v.queued = err != nil && !isLate
	return err
}

// check is for fetch.WithTurns. What was given back meanwhile is used by no request.
func (v *robotsVisit) check() error {
	turn := v.current.Load()
	if turn == nil || !v.keeper.Lapsed(turn.place) {
		return nil
	}
	turn.place.Lose()
	return pace.ErrLost
}

// lost reports whether there is no answer because of us.
func (v *robotsVisit) lost() bool {
	turn := v.current.Load()
	return v.queued || turn != nil && turn.place.Lost()
}

func (v *robotsVisit) note(status int, retryAfter time.Duration, now time.Time) {
	if turn := v.current.Load(); turn != nil {
		v.keeper.Answered(turn.place, status, retryAfter, now)
	}
}

func (v *robotsVisit) end(now time.Time) {
	v.own.end(now)
	if turn := v.current.Load(); turn != nil {
		turn.end(now)
	}
}

// linger waits, with nothing held, until the turn that did not come in time can: the origin that
// redirects is asked again after that. Of many that redirect to one site, not all come back at once.
func (v *robotsVisit) linger(now time.Time) {
	if v.late == nil {
		return
	}
	v.end(now)
	wait := max(v.late.At.Sub(now), 0)
	select {
	case <-time.After(wait + rand.N(wait+1)):
	case <-v.ctx.Done():
	}
}

// robotsTurn waits for a turn to read the robots.txt of o. With an error, the Turn is none.
func robotsTurn(ctx context.Context, k *pace.Keeper, o fetch.Origin) (*Turn, time.Duration, error) {
	pl, waited, err := k.Robots(ctx, o)
	if err != nil {
		return new(Turn), waited, err
	}
	return &Turn{keeper: k, place: pl}, waited, nil
}

// robotsPatience is how long robots.txt waits for its turn. The cache ends a fetch after
// two minutes; this leaves time for reading.
const robotsPatience = 90 * time.Second

// readRobots is read, at the pace of o. The answer counts for the lane: a 429 on
// robots.txt slows the pages down, whatever it means for the rules. A nil Keeper just
// reads.
//
// If the turn comes too late because of a pause (pages are answered "503, come back in an
// hour"), robots.txt is unreachable, and the Result says until when. A good copy stays in
// use. If a delay or a queue of ours is in the way, that says nothing about the site: the
// error tells the cache to keep nothing.
func readRobots(ctx context.Context, k *pace.Keeper, o fetch.Origin, prev *fetch.Result, read load) (*fetch.Result, error) {
	if k == nil {
		return read(ctx, o, prev)
	}
	turn, cancel := context.WithTimeout(ctx, robotsPatience)
	defer cancel()
	own, waited, err := robotsTurn(turn, k, o)
	if late, ok := errors.AsType[*LateError](err); ok && late.Paused {
		return pausedRobots(late, k.Now()), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fetch.ErrBusy, err)
	}
	v := &robotsVisit{keeper: k, ctx: turn, origin: o, own: own, at: o}
	v.current.Store(own)
	defer func() { v.end(k.Now()) }() // should read panic, too
	res, err := read(fetch.WithTurns(ctx, v.check, v.next), o, prev)
	now := k.Now()
	switch {
	case v.lost():
		return nil, fmt.Errorf("%w: %w", fetch.ErrBusy, pace.ErrLost)
	case err == nil:
		if !unsent(res.Err) {
			v.note(res.StatusCode, res.RetryAfter, now)
		}
	case v.late != nil && v.late.Paused:
		return pausedRobots(v.late, now), nil
	case waited > 0 && !errors.Is(err, fetch.ErrSign): // its time was over sooner for that
		err = fmt.Errorf("%w: %w", fetch.ErrBusy, err)
	}
	v.linger(now)
	return res, err
}

// pausedRobots is the robots.txt of a site that asked for a pause, or suffers. No time-out has passed, so the LateError
// would be told as what it is not.
func pausedRobots(late *LateError, now time.Time) *fetch.Result {
	wait := late.At.Sub(now)
	text := fmt.Sprintf("client: all requests to %s pause for %v", late.Origin, wait.Round(time.Millisecond))
	err := &fetch.Failure{Text: text, Cause: "destination_unavailable"} // of RFC 9209 §2.3
	return &fetch.Result{Policy: policy.Unreachable(), Time: now, Err: err, RetryAfter: wait}
}

// load is the signature of (*fetch.Fetcher).Fetch.
type load = func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)
