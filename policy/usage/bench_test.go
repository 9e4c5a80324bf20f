package usage_test

import (
	"net/http"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

var said []usage.Statement

func BenchmarkParseRobots(b *testing.B) {
	for _, bb := range []struct{ name, file string }{
		{"silent", silent},
		{"signal", "user-agent: *\nallow: /\ncontent-signal: search=yes, ai-train=no\n"},
		{"path", "user-agent: *\nallow: /\ncontent-usage: train-ai=n\ncontent-usage: /articles/ train-ai=y\n"},
	} {
		p := policy.Parse([]byte(bb.file))
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				said = usage.ParseRobots(p, "ExampleBot", "/articles/1")
			}
		})
	}
}

func BenchmarkParseHeader(b *testing.B) {
	for _, bb := range []struct {
		name   string
		header http.Header
	}{
		{"absent", http.Header{"Content-Type": {"text/html"}}},
		{"Content-Usage", http.Header{"Content-Usage": {"train-ai=n, search=y"}}},
		{"Content-Signal", http.Header{"Content-Signal": {"search=yes, ai-train=no"}}},
		{"TDMRep", http.Header{"Tdm-Reservation": {"1"}}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				said = usage.ParseHeader(bb.header)
			}
		})
	}
}
