package main

import (
	"strings"
	"testing"
)

func TestWhatIsDisallowedIsNotServedFromThePageCache(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sent     http://www.example/public gave 200 from the site\n",
		"sent     http://www.example/public gave 200 from the page cache\n",
		"refused  http://www.example/public for OtherBot: disallowed by line 5: Disallow: / (user-agent: OtherBot)\n",
		"refused  http://www.example/private for ExampleBot: disallowed by line 2: Disallow: /private (user-agent: ExampleBot)\n",
		"in the page cache: [http://www.example/public]\n", // and not robots.txt
		"www.example saw 1 pages and 1 robots.txt asked for",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
}
