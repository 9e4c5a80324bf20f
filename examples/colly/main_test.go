package main

import (
	"strings"
	"testing"
)

func TestCollySendsOnlyWhatRobotsTxtAllows(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sent     GET  http://www.example/ gave 200\n",
		"sent     GET  http://www.example/public gave 200\n",
		"refused  GET  http://www.example/private/: disallowed by line 2: Disallow: /private/ ",
		"refused  GET  http://other.example/archive/1: disallowed by line 3: Disallow: /archive/ ", // the hop of a redirect
		"refused  HEAD http://www.example/private/report: disallowed by line 2: Disallow: /private/ ",
		"other.example saw 0 pages and 1 robots.txt asked for\n",
		"www.example saw 3 pages and 1 robots.txt asked for\n", // the start, the public page, the redirect
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
}
