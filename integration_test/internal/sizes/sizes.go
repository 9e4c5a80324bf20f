// Package sizes is for tests: it says how large they are, and has the flag for that.
package sizes

import (
	"flag"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// Full runs tests at the sizes that the README states:
//
//	go test ./integration_test ./integration_test/load -run Cache -full -timeout 20m
var Full = flag.Bool("full", false, "run tests at the sizes that the README states; takes some minutes")

// Of is a twentieth of what -full asks for, and less under -short or the race detector.
func Of(whole int) int {
	switch {
	case *Full:
		return whole
	case testing.Short():
		return whole / 50 / proc.Slowdown()
	}
	return whole / 20 / proc.Slowdown()
}
