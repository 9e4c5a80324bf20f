module github.com/robotsgate/robotsgate

go 1.26.6

require (
	github.com/hashicorp/golang-lru/v2 v2.0.7
	golang.org/x/net v0.62.0
)

require golang.org/x/text v0.43.0 // indirect
