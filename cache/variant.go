package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/robotsgate/robotsgate/fetch"
)

// An origin may answer different crawlers with different files, and says so by naming
// User-Agent in Vary: its answer is then for requests with the same User-Agent only (RFC
// 9111 §4.1). No other field that is sent can differ between two Fetchers.
//
// A Cache does not see requests. A Result says in its UserAgent whom it is for, if not for
// all; and a load says whom it asks for when it is called with the zero Origin, which
// (*fetch.Fetcher).Fetch answers at once. It is asked only where an answer varies.
//
// So an origin has one place for all callers. While the answer there varies, it serves those
// whom it is for, and marks the origin for the others: each User-Agent has a further place,
// with its own entry in memory, its own flight and its own key in the Store.

// place is where what is known of an origin is kept: that for all callers, or that of an
// agent for which the answer there is not.
type place struct {
	fetch.Origin
	agent string // "": for all
}

// String is the origin's, and for an agent's place more, of a fixed length. A space is part
// of no host.
func (p place) String() string {
	if p.agent == "" {
		return p.Origin.String()
	}
	sum := sha256.Sum256([]byte(p.agent))
	return p.Origin.String() + " as " + hex.EncodeToString(sum[:16])
}

// errOthers is how a flight ends that found an answer for others, which is not fresh, where
// that for all callers would be.
var errOthers = errors.New("cache: the answer is for another User-Agent")

// unknownAgent is for a load that does not say whom it asks for. No header has it.
const unknownAgent = "\n"

// agentOf asks load what it sends.
func agentOf(load loadFunc) (agent string) {
	agent = unknownAgent
	defer func() { _ = recover() }()
	if r, _ := load(context.Background(), fetch.Origin{}, nil); r != nil && r.UserAgent != "" {
		agent = r.UserAgent
	}
	return agent
}

// getVarying is Get where the answer at hand, if there is one, is not for all.
func (c *Cache) getVarying(ctx context.Context, e *entry, load loadFunc) (*fetch.Result, error) {
	if agent := agentOf(load); agent != e.own.UserAgent {
		return c.getAt(ctx, place{e.origin, agent}, load)
	}
	return c.getFrom(ctx, e, load)
}

// getAt is Get for one place.
func (c *Cache) getAt(ctx context.Context, p place, load loadFunc) (*fetch.Result, error) {
	if e := c.find(p); e != nil {
		return c.getFrom(ctx, e, load)
	}
	return c.wait(ctx, p, nil, load)
}

// isFor reports whether a result found in a place, which may be that of another's flight, is
// for those load asks for.
func (c *Cache) isFor(p place, r *fetch.Result, load loadFunc) bool {
	return r == nil || r.UserAgent == "" || p.agent != "" || r.UserAgent == agentOf(load)
}

// forOthers reports whether a state, found in the place for all, has an answer that is not
// for those load asks for.
func (s *state) forOthers(p place, load loadFunc) bool {
	return p.agent == "" && s != nil && s.own().UserAgent != "" && s.own().UserAgent != agentOf(load)
}
