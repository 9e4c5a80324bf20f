package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/examples/internal/site"
)

func TestTheCrawlerShowsEveryKindOfAnswer(t *testing.T) {
	web := site.Serve(hosts()...)
	defer web.Close()
	var out bytes.Buffer
	if err := crawl(t.Context(), &out, io.Discard, web, "http://rules.example/"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"http://rules.example/private/ ",
		"disallowed by line 5: Disallow: /private/",
		"allowed by line 6: Allow: /private/notice$",
		"robots.txt is unavailable",
		"robots.txt is unreachable",
		"http://müller.example/geheim/1",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output does not show %q:\n%s", want, out.String())
		}
	}
	for _, n := range web.Counts() {
		want := map[string]int{"down.example": 3, "recovers.example": 2}[n.Host]
		if want == 0 {
			want = 1
		}
		if n.Robots != want {
			t.Errorf("%s: robots.txt was fetched %d times, want %d", n.Host, n.Robots, want)
		}
	}
}
