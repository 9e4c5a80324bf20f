package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestTheBrowserSendsOnlyWhatRobotsTxtAllows(t *testing.T) {
	tier.Nightly(t)
	var out strings.Builder
	err := run(t.Context(), &out)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("%v: apt-get install chromium", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`page     http://www.example/ is "Welcome"` + "\n",
		"refused  http://www.example/private/face.png: disallowed by line 2: Disallow: /private/ ", // an image
		"refused  http://www.example/private/: disallowed by line 2: Disallow: /private/ ",
		"no page  http://www.example/private/: ",
		"refused  http://other.example/archive/1: disallowed by line 3: Disallow: /archive/ ", // the hop of a redirect
		"other.example saw 0 pages and 1 robots.txt asked for\n",
		"www.example saw 3 pages and 1 robots.txt asked for", // the start, its script, the redirect
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
}
