//go:build !linux

package policy_test

import "time"

// processorTime is how long a processor works on f, if it is free for one of three runs.
func processorTime(f func()) time.Duration { return time.Duration(fastest(3, f)) }
