package main

import (
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

// Every page meets what it asked for, and those that nothing may lead to are not asked for.
func TestTheCrawlerKeepsWhatItMay(t *testing.T) {
	web := site.Serve(host)
	defer web.Close()
	var out strings.Builder
	if err := crawl(&out, web, "http://www.example/"); err != nil {
		t.Fatal(err)
	}
	want := `http://www.example/              kept
http://www.example/essays/1      not sent: robots.txt line 4, Content-Usage: "/essays/ train-ai=n, search=y"
http://www.example/news          kept
http://www.example/private/x     not sent: Disallow: /private/
http://www.example/reserved      dropped: meta at byte 0, tdm-reservation: "1"
http://www.example/report        dropped: header line 1, page rule: "noai"
http://www.example/list          kept, links not followed
`
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
	if n := web.Counts()[0].Pages; n != 5 {
		t.Errorf("the site was asked for %d pages, want 5", n)
	}
}
