package main

import (
	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/policy"
)

// openStore opens what --cache names: a file, or a Redis server. The store is nil
// for "". The function closes it.
func openStore(at string, _ policy.Dialect) (cache.Store, func() error, error) {
	if at == "" {
		return nil, func() error { return nil }, nil
	}
	return nil, nil, usagef("--cache is not there yet")
}
