package site

import (
	"strings"

	"github.com/redis/go-redis/v9/logging"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// openStore opens what --cache names: a Redis by its URL, else a file. The store
// is nil for "". The file is the same store, if it is one; a connection to Redis needs no
// closing, it ends with the process.
func openStore(at string) (store cache.Store, file *boltstore.Store, err error) {
	switch {
	case at == "":
		return nil, nil, nil
	case strings.HasPrefix(at, "redis://"), strings.HasPrefix(at, "rediss://"), strings.HasPrefix(at, "unix://"):
		logging.Disable() // the cache reports what fails, once
		s, err := redisstore.Open(at)
		if err != nil {
			return nil, nil, shell.Usagef("%w", err)
		}
		return s, nil, nil
	case strings.Contains(at, "://"):
		scheme, _, _ := strings.Cut(at, ":") // without what follows, which may be a password
		return nil, nil, shell.Usagef("--cache is a FILE or redis://HOST:PORT (rediss:// with TLS, unix:///SOCKET); "+
			"%q is no such scheme", scheme)
	}
	file, err = boltstore.Open(at)
	if err != nil {
		return nil, nil, err
	}
	return file, file, nil
}
