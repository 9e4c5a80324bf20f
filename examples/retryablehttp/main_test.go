package main

import (
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestARefusalIsNotRetriedAndAnUnreachableRobotsTxtIsRequeued(t *testing.T) {
	tier.Gate(t)
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{ // in this order, and nothing between
		"asked    http://www.example/public, retry 0\n", // 503
		"asked    http://www.example/public, retry 1\n",
		"sent     http://www.example/public gave 200\n",
		"asked    http://www.example/private, retry 0\n",
		`refused  GET http://www.example/private giving up after 1 attempt(s): Get "http://www.example/private": client: not sent for "ExampleBot": disallowed by line 2 of robots.txt: Disallow: /private `,
		"asked    http://restarting.example/, retry 0\n",
		"requeued http://restarting.example/: fetch: http://restarting.example/robots.txt: status 503 Service Unavailable\n",
		"asked    http://essays.example/, retry 0\n",
		`refused  GET http://essays.example/ giving up after 1 attempt(s): Get "http://essays.example/": client: not sent: robots.txt line 2, Content-Usage: "train-ai=n", disallows the use "train-ai" `,
		"asked    http://slow.example/, retry 0\n",
		`refused  GET http://slow.example/ giving up after 1 attempt(s): Get "http://slow.example/": client: not sent: http://slow.example asks for 1h0m0s `,
		"asked    http://restarting.example/, retry 0\n",
		"sent     http://restarting.example/ gave 200\n",
	} {
		if !strings.HasPrefix(rest, want) {
			t.Fatalf("want %q next, got %q; all output:\n%s", want, rest, &out)
		}
		_, rest, _ = strings.Cut(rest, "\n")
	}
	if rest != "" {
		t.Errorf("more output than wanted: %q", rest)
	}
}
