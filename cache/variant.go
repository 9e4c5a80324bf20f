package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// An origin may answer different crawlers with different files. It then names User-Agent in
// Vary, and its answer is for requests with the same User-Agent only (RFC 9111 §4.1). No
// other field that is sent can differ between two Fetchers. If the answer is not for all,
// Result.UserAgent names the crawler that it is for.
//
// So an origin has one place for all callers that read in one dialect. If the answer there
// varies, it serves the callers that it is for, and tells the others to look elsewhere. Each
// of their User-Agents has a place of its own, with an entry in memory, a flight, and a key in
// the Store.

// place is where what is known of an origin is kept, as read in a dialect. It is for all
// callers, or for one User-Agent if the answer for all is for another.
type place struct {
	fetch.Origin
	agent   string // "": for all
	dialect policy.Dialect
}

// key is the place's key in a Store, where all dialects share it. It is the origin, followed
// by a hash of the agent if there is one. A space is part of no host.
func (p place) key() string {
	if p.agent == "" {
		return p.Origin.String()
	}
	sum := sha256.Sum256([]byte(p.agent))
	return p.Origin.String() + " as " + hex.EncodeToString(sum[:16])
}

// flight names the place's flight.
func (p place) flight() string {
	if p.dialect == policy.RFC9309 {
		return p.key()
	}
	return p.key() + " in " + p.dialect.String()
}

// errOthers ends a flight that found, in the place for all callers, an answer for others. That
// answer is not fresh, and not for this flight to refresh.
var errOthers = errors.New("cache: the answer is for another User-Agent")

// agent is the User-Agent that is sent: net/http has one for callers that set none.
func (src *Source) agent() string {
	if src.UserAgent == "" {
		return "Go-http-client/1.1"
	}
	return src.UserAgent
}

// getVarying is Get for an entry whose answer is not for all.
func (c *Cache) getVarying(ctx context.Context, e *entry, src *Source) (*fetch.Result, error) {
	if agent := src.agent(); agent != e.own.UserAgent {
		return c.getAt(ctx, place{e.origin, agent, e.dialect}, src)
	}
	return c.getFrom(ctx, e, src)
}

// getAt is Get for one place.
func (c *Cache) getAt(ctx context.Context, p place, src *Source) (*fetch.Result, error) {
	if e := c.memory.find(p); e != nil {
		return c.getFrom(ctx, e, src)
	}
	return c.wait(ctx, p, nil, src)
}

// suits reports whether a result found in a place, perhaps by another caller's flight, is
// for the callers of src.
func (p place) suits(r *fetch.Result, src *Source) bool {
	return r == nil || r.UserAgent == "" || p.agent != "" || r.UserAgent == src.agent()
}

// forOthers reports whether a state, found in the place for all, has an answer that is not
// for the callers of src.
func (s *state) forOthers(p place, src *Source) bool {
	return s != nil && !p.suits(s.own(), src)
}
