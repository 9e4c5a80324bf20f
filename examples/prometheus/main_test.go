package main

import (
	"strings"
	"testing"
)

func TestEachDecisionAndEachFetchIsCounted(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"refused  http://www.example/private: disallowed by line 2: Disallow: /private (user-agent: ExampleBot)\n",
		"refused  http://broken.example/: disallowed: robots.txt is unreachable\n",
		`robots_decisions_total{allowed="true",reason="no-rule"} 2` + "\n",
		`robots_decisions_total{allowed="true",reason="unavailable"} 1` + "\n",
		`robots_decisions_total{allowed="false",reason="rule"} 1` + "\n",
		`robots_decisions_total{allowed="false",reason="unreachable"} 1` + "\n",
		`robots_fetches_total{kind="first",status="200"} 1` + "\n", // for three requests
		`robots_fetches_total{kind="first",status="404"} 1` + "\n",
		`robots_fetches_total{kind="first",status="500"} 1` + "\n",
		"robots_fetch_seconds_count 3\n",
		"robots_unanswered_total 0\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
	// How many had to wait is for the machine to say; a second page after the first did.
	if waits := "robots_wait_seconds_count "; !strings.Contains(out.String(), waits) || strings.Contains(out.String(), waits+"0\n") {
		t.Errorf("no wait is counted in\n%s", &out)
	}
}
