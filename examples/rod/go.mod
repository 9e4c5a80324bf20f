module github.com/robotsgate/robotsgate/examples/rod

go 1.26.0

toolchain go1.26.8

require (
	github.com/go-rod/rod v0.116.2
	github.com/robotsgate/robotsgate v0.1.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/pquerna/cachecontrol v0.2.0 // indirect
	github.com/ysmood/fetchup v0.2.3 // indirect
	github.com/ysmood/goob v0.4.0 // indirect
	github.com/ysmood/got v0.40.0 // indirect
	github.com/ysmood/gson v0.7.3 // indirect
	github.com/ysmood/leakless v0.9.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)
