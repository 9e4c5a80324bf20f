// Package tier says which tests run. ROBOTSGATE_TIER is the one switch, of all packages and modules:
//
//	(unset)   what every go test runs: no server, nothing that waits, no download
//	gate      what .ci/run adds: servers, and what takes seconds
//	nightly   what .ci/nightly adds: browsers, other languages, fleets, load, minutes of luck
//
// A test says at its top to which tier it belongs. One that says nothing belongs to the first.
package tier

import (
	"os"
	"testing"
)

// Gate skips a test, unless the gate or the nightly run asks for it.
func Gate(t testing.TB) {
	t.Helper()
	if !AtGate() {
		t.Skip("runs with ROBOTSGATE_TIER=gate")
	}
}

// Nightly skips a test, unless the nightly run asks for it.
func Nightly(t testing.TB) {
	t.Helper()
	if !AtNight() {
		t.Skip("runs with ROBOTSGATE_TIER=nightly")
	}
}

// AtGate reports whether this is a run of the gate, or of the night.
func AtGate() bool { return os.Getenv("ROBOTSGATE_TIER") == "gate" || AtNight() }

// AtNight reports whether this is a run of the night.
func AtNight() bool { return os.Getenv("ROBOTSGATE_TIER") == "nightly" }
