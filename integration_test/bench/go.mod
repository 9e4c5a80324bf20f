module github.com/robotsgate/robotsgate/integration_test/bench

go 1.26.0

toolchain go1.26.11

require (
	github.com/robotsgate/robotsgate v0.1.0
	github.com/temoto/robotstxt v1.1.2
)
