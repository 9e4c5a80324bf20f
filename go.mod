module github.com/robotsgate/robotsgate

go 1.26.0

toolchain go1.26.11

// The library. httpsfv: structured fields (RFC 9651), of signatures and preferences.
require (
	github.com/dunglas/httpsfv v1.1.2
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/pquerna/cachecontrol v0.2.0
	golang.org/x/net v0.62.0
	golang.org/x/sync v0.25.0
)

// The store in Redis: only who imports cache/redisstore builds it.
require github.com/redis/go-redis/v9 v9.23.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)
