package client

import (
	"context"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
)

// Pass waits for a turn at u's origin and gives it back at once, as a request of no length would.
func (p *Pacer) Pass(ctx context.Context, u *url.URL) error {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return err
	}
	place, err := p.ready().Take(ctx, pace.Ask{Origin: o})
	if err == nil {
		place.End()
	}
	return fromPace(o, err)
}

// Next is how long it is until the next request to u's origin may start.
func (p *Pacer) Next(u *url.URL) time.Duration {
	o, err := fetch.OriginOf(u)
	if err != nil {
		panic(err)
	}
	return time.Until(p.ready().Next(o).At)
}
