package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// robotsPatience is how long robots.txt waits for its turn. It leaves the flight of the
// cache, which ends after two minutes, the time that the reading may take.
const robotsPatience = 90 * time.Second

// robots makes the reading of robots.txt keep the distance of its origin as well, and
// hands what came of it to the lane: a 429 on robots.txt slows the pages down, whatever
// it means for the rules. A nil Pacer returns load itself.
//
// A turn that does not come in time because of a pause (the pages are being answered "503,
// come back in an hour") is no error: the file could not be had, and the Result says until
// when. A good copy stays in use. Where it is a delay or a queue of ours that stands in the
// way, nothing has been learned about the site: the error tells the cache to keep nothing.
func (p *Pacer) robots(
	load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error),
) func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
	if p == nil {
		return load
	}
	return func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		turn, cancel := context.WithTimeout(ctx, robotsPatience)
		defer cancel()
		l, held, err := p.take(turn, o, asRobots)
		if late, ok := errors.AsType[*lateError](err); ok && late.paused {
			return outOfTime(late), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", fetch.ErrNoTurn, err)
		}
		defer p.end(l)
		res, err := load(ctx, o, prev)
		switch {
		case err == nil:
			p.note(l, res.StatusCode, res.RetryAfter)
		case held > 0: // its time was over sooner for that
			err = fmt.Errorf("%w: %w", fetch.ErrNoTurn, err)
		}
		return res, err
	}
}

// outOfTime is the Result of a fetch whose turn did not come in time.
func outOfTime(late *lateError) *fetch.Result {
	res := &fetch.Result{Policy: policy.Unreachable(), Time: time.Now(), Err: late}
	res.RetryAfter = max(late.at.Sub(res.Time), 0)
	return res
}
