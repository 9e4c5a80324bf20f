package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestAPageDecidesWithoutAServer(t *testing.T) {
	tier.Nightly(t)
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skipf("%v: apt-get install chromium", err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, false); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^package policy for browsers: .* MB with gzip\n` +
		`allowed by line 3: Allow: /private/open/ \(user-agent: \*\)\nfirst answer after \d+ ms\n$`)
	if !want.Match(out.Bytes()) {
		t.Errorf("got\n%s", &out)
	}
}
