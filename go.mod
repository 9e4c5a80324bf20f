module github.com/robotsgate/robotsgate

go 1.26.6

require (
	github.com/hashicorp/golang-lru/v2 v2.0.7
	golang.org/x/net v0.62.0
)

require (
	github.com/pquerna/cachecontrol v0.2.0
	golang.org/x/sync v0.24.0
	golang.org/x/text v0.43.0 // indirect
)
