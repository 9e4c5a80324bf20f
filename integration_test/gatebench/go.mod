module github.com/robotsgate/robotsgate/integration_test/gatebench

go 1.26.0

toolchain go1.26.11

require (
	github.com/robotsgate/robotsgate v0.1.0
	golang.org/x/oauth2 v0.38.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/pquerna/cachecontrol v0.2.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)
