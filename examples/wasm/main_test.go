package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestAPageDecidesWithoutAServer(t *testing.T) {
	tier.Nightly(t)
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skipf("%v: apt-get install chromium", err)
	}
	var out strings.Builder
	if err := run(t.Context(), &out, false); err != nil {
		t.Fatal(err)
	}
	if want := "allowed by line 3: Allow: /private/open/ (user-agent: *)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
