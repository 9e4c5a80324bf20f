package cache

import (
	"crypto/sha256"
	"encoding/hex"

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
