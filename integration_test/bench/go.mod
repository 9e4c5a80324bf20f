module github.com/robotsgate/robotsgate/integration_test/bench

go 1.26.6

require (
	github.com/robotsgate/robotsgate v0.0.0
	github.com/temoto/robotstxt v1.1.2
)

replace github.com/robotsgate/robotsgate => ../..
