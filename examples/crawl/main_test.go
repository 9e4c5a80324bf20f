package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestTheCrawlerSendsWhatItMayAndSaysWhatNot(t *testing.T) {
	tier.Gate(t)
	web := site.Serve(hosts()...)
	defer web.Close()
	start := &url.URL{Scheme: "http", Host: "rules.example", Path: "/"}
	var out strings.Builder
	if err := crawl(t.Context(), &out, web.Transport(), start); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"refused  http://rules.example/private/: disallowed by line 5: Disallow: /private/ (user-agent: ExampleBot)\n",
		"sent     http://rules.example/private/notice: 200 OK\n",
		"sent     http://missing.example/anything: 404 Not Found\n",
		"refused  http://moved.example/old/1: disallowed by line 2: Disallow: /old/ (user-agent: *)\n",
		"sent     http://slow.example/2: 200 OK, to be listed nowhere\n",
		"refused  http://down.example/: disallowed: robots.txt is unreachable\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
	pages := map[string]int{"rules.example": 3, "slow.example": 3, "missing.example": 2, "moved.example": 1}
	for _, n := range web.Counts() {
		if n.Pages != pages[n.Host] {
			t.Errorf("%s was asked for %d pages, want %d", n.Host, n.Pages, pages[n.Host])
		}
		if n.Host == "slow.example" && n.Apart < 300*time.Millisecond {
			t.Errorf("%s: %v apart, want 300 ms at least", n.Host, n.Apart)
		}
	}
}
