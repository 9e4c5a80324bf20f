package cache

import (
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// An origin may answer different crawlers with different files. It then names User-Agent in
// Vary, or what they sign with, and its answer is for requests with the same User-Agent only (RFC 9111 §4.1): it is
// kept in a place of that User-Agent, with an entry in memory, a flight, and a key in the
// Store. All other answers are kept in a place for all.
//
// A caller's own place is looked at first, in memory and in the Store, and the one for all only
// if there is nothing in the own one. What another crawler was told, such as the 403 of a
// firewall, then takes nothing away from a file that was written for this one.
//
// Callers whose requests differ otherwise have nothing in common, see kind.

// kind is what sets the answers to requests apart from the start.
type kind struct {
	dialect policy.Dialect
	fetcher fetch.Kind
}

// place is where what is known of an origin is kept.
type place struct {
	fetch.Origin
	agent string // "": for all
	kind
}

// of returns the place that an answer of the same origin to one User-Agent has.
func (p place) of(agent string) place {
	p.agent = agent
	return p
}

// elsewhere ends a flight that began at the place for all and found an answer that is for one
// User-Agent. It is in that one's own place now.
type elsewhere string

func (agent elsewhere) Error() string { return "cache: the answer is for " + string(agent) }
