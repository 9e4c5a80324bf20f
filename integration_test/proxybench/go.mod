module github.com/robotsgate/robotsgate/integration_test/proxybench

go 1.26.0

toolchain go1.26.11

require (
	github.com/elazarl/goproxy v1.9.4 // the proxy library to measure beside
	github.com/robotsgate/robotsgate v0.1.0
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)
