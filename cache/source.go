package cache

import (
	"context"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Source is where results come from, and who reads them. It must not be changed once it has been given to Get.
type Source struct {
	// Reader names who reads, and what else makes the answers to it differ, as (*fetch.Fetcher).Reader does:
	// "examplebot signed". Sources with different Readers share neither results, in memory or in a Store, nor fetches.
	// It should have no control characters. If empty, the reader has no name.
	Reader string

	// Dialect is how answers are read, those in a Store included. Each dialect has its own results in memory. If zero,
	// policy.RFC9309.
	Dialect policy.Dialect

	// Load fetches the robots.txt of an origin, as (*fetch.Fetcher).Fetch does: the last argument is an earlier Result to
	// validate, or nil. Calls for several origins are concurrent. Each has its own context, which ends after two
	// minutes or with Close. An error means that the site was not asked: those who wait get it, or another if it is that
	// of this context, and nothing is kept.
	//
	// If nil, Get looks only in memory. If nothing there holds, it returns ErrMiss and the newest result that did, if any.
	Load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)
}

// key is what results are kept under in memory. A Store has one value for all dialects.
type key struct {
	fetch.Origin
	reader  string
	dialect policy.Dialect
}

// flightKey is what tells flights apart.
func (k key) flightKey() string { return k.dialect.String() + " " + k.storeKey() }

// storeKey is the key in a Store: the version of the value, the origin, and the reader. A space is part of no host.
func (k key) storeKey() string { return backing.Version + " " + k.Origin.String() + " " + k.reader }
