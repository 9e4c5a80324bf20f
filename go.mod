module github.com/robotsgate/robotsgate

go 1.26.6

// The library.
require (
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/pquerna/cachecontrol v0.2.0
	golang.org/x/net v0.62.0
	golang.org/x/sync v0.24.0
)

// The stores: only who imports cache/boltstore or cache/redisstore builds them.
require (
	github.com/redis/go-redis/v9 v9.23.0
	go.etcd.io/bbolt v1.5.0
)

// The command.
require (
	github.com/schollz/progressbar/v3 v3.19.1
	github.com/spf13/cobra v1.10.2
	golang.org/x/term v0.47.0
)

// Tests.
require (
	github.com/rogpeppe/go-internal v1.16.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
)
