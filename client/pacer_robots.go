package client

import (
	"context"
	"errors"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// robots makes the reading of robots.txt keep the pace of its origin as well, and
// hands what came of it to the lane: a 429 on robots.txt slows the pages down, whatever
// it means for the rules. A nil Pacer returns load itself.
//
// A turn that does not come before the deadline of the flight (the pages are being
// answered "503, come back in an hour") is not the caller's fault, and no error: the
// file could not be had, and the Result says until when. A good copy stays in use.
func (p *Pacer) robots(
	load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error),
) func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
	if p == nil {
		return load
	}
	return func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		l, _, err := p.take(ctx, o, asRobots)
		if errors.Is(err, context.DeadlineExceeded) {
			return outOfTime(err), nil
		}
		if err != nil {
			return nil, err
		}
		defer p.end(l)
		res, err := load(ctx, o, prev)
		if err == nil {
			p.note(l, res.StatusCode, res.RetryAfter)
		}
		return res, err
	}
}

// outOfTime is the Result of a fetch whose turn did not come in time.
func outOfTime(err error) *fetch.Result {
	res := &fetch.Result{Policy: policy.Unreachable(), Time: time.Now(), Err: err}
	if late, ok := errors.AsType[*lateError](err); ok {
		res.RetryAfter = max(late.at.Sub(res.Time), 0)
	}
	return res
}
