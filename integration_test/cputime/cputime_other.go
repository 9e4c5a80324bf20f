//go:build !linux

package cputime

import "time"

// Of is how long a processor works on f, if it is free for one of three runs.
func Of(f func()) time.Duration {
	var took [3]time.Duration
	for i := range took {
		start := time.Now()
		f()
		took[i] = time.Since(start)
	}
	return min(took[0], took[1], took[2])
}
