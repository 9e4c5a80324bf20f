module github.com/robotsgate/robotsgate/cmd/robots

go 1.26.0

toolchain go1.26.11

require (
	github.com/dunglas/httpsfv v1.1.2 // Proxy-Status
	github.com/go-json-experiment/json v1.27.2 // objects whose names are there once
	github.com/prometheus/client_golang v1.25.0 // what serve counts, by the official library
	github.com/robotsgate/robotsgate v0.1.0
	github.com/spf13/cobra v1.10.2 // subcommands, help, completion
	github.com/spf13/pflag v1.1.0 // what is wrong with a flag
	golang.org/x/net v0.62.0 // public suffixes, header field values
	golang.org/x/sync v0.25.0 // a bound on lines under way
	golang.org/x/term v0.48.0 // whether a stream is a terminal, and how wide
)

// Tests.
require (
	github.com/chromedp/cdproto v0.159.2 // its words for what Chromium is asked
	github.com/chromedp/chromedp v0.23.0 // Chromium, which shows the page of serve
	github.com/pb33f/libopenapi v0.42.5 // openapi.json,
	github.com/pb33f/libopenapi-validator v0.16.3 // against what serve answers
	github.com/prometheus/client_model v0.6.3 // what was counted,
	github.com/prometheus/common v0.74.0 // read as Prometheus reads it
	github.com/rogpeppe/go-internal v1.16.0 // scripts of the command
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // the schema, against what is written
	golang.org/x/sys v0.50.0 // a pseudo-terminal
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/basgys/goxml2json v1.1.1-0.20231018121955-e66ee54ceaad // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/buger/jsonparser v1.6.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/go-openapi/jsonpointer v1.0.2 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/pandatix/go-abnf v0.5.5 // indirect
	github.com/pb33f/go-yaml v0.1.1 // indirect
	github.com/pb33f/jsonpath v0.8.5 // indirect
	github.com/pb33f/jsonschema/v6 v6.0.3 // indirect
	github.com/pb33f/ordered-map/v2 v2.3.2 // indirect
	github.com/pquerna/cachecontrol v0.2.0 // indirect
	github.com/prometheus/procfs v0.23.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/text v0.44.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
