package usage_test

import (
	"net/http"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// What a page and robots.txt say about a use is one answer, and "no" wins. What robots.txt says has to be known.
func TestCombine(t *testing.T) {
	file := policy.Parse([]byte("User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /b/ train-ai=n\n"))
	for _, row := range []struct {
		name, target string
		robots       *policy.Policy
		header       http.Header
		use          usage.Label
		want         usage.Preference
		fails        bool
	}{
		{"yes", "/a/x", file, nil, usage.TrainAI, usage.Allow, false},
		{"no", "/b/x", file, nil, usage.TrainAI, usage.Disallow, false},
		{"no by the header", "/a/x", file, http.Header{"Content-Usage": {"train-ai=n"}}, usage.TrainAI, usage.Disallow, false},
		{"no in spite of the header", "/b/x", file, http.Header{"Content-Usage": {"train-ai=y"}}, usage.TrainAI, usage.Disallow, false},
		{"no file", "/b/x", policy.Unavailable(), nil, usage.TrainAI, usage.Unknown, false},
		{"unreachable", "/a/x", policy.Unreachable(), nil, usage.TrainAI, usage.Disallow, true},
		{"never read", "/a/x", nil, nil, usage.TrainAI, usage.Disallow, true},
		{"a misspelt use", "/a/x", file, nil, "train_ai", usage.Disallow, true},
	} {
		got, by, err := usage.Combine(row.use, row.robots, "ExampleBot", row.target, usage.ParseHeader(row.header)...)
		if got != row.want || (err != nil) != row.fails {
			t.Errorf("%s: got %v by %v, %v", row.name, got, by, err)
		}
	}
}
