package proc_test

import (
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// Two tests whose servers had one port talked to the server of one of them.
func TestAPortIsOneTestsAlone(t *testing.T) {
	taken := map[string]bool{}
	for range 500 { // of 20,000: some six come twice where nothing keeps them
		port := proc.FreePort(t)
		if taken[port] {
			t.Fatalf("port %s was given twice", port)
		}
		taken[port] = true
	}
}
