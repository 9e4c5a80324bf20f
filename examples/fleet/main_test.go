package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// TestMain lets copies of the test be the workers.
func TestMain(m *testing.M) {
	if os.Getenv("FLEET_WORKER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheFleetProvesWhatItSays(t *testing.T) {
	tier.Nightly(t)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	var out strings.Builder
	if err := fleet(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	want := "the sites saw 0 requests for a page that is not allowed, 300 for the 300 robots.txt,\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("want %q in the output, got\n%s", want, &out)
	}
}
