package main

import (
	"strings"
	"testing"
)

func TestEachDecisionIsASpanBelowItsRequestAndEachFetchOneOfItsOwn(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sent     http://www.example/public gave 200\n",
		"refused  http://www.example/private: disallowed by line 2: Disallow: /private (user-agent: ExampleBot)\n",
		"refused  http://broken.example/: disallowed: robots.txt is unreachable\n",
		`span "robots fetch" below "": Unset
  robots.origin=http://www.example
  http.response.status_code=200
`,
		`span "robots decide" below "get http://www.example/private": Unset
  url.full=http://www.example/private
  robots.token=ExampleBot
  robots.allowed=false
  robots.reason=rule
  robots.line=2
`,
		`span "robots fetch" below "": Error
  robots.origin=http://broken.example
  http.response.status_code=500
`,
		`span "robots wait" below "get http://www.example/public": Unset
  url.full=http://www.example/public
`,
		`span "robots decide" below "get http://broken.example/": Error
`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
	if n := strings.Count(out.String(), `span "robots fetch"`); n != 2 {
		t.Errorf("%d fetches, want one for each host", n)
	}
}
