// Package cputime tells tests how long a processor works on something, which a busy machine does not
// change as it changes what a clock tells.
package cputime

import (
	"math"
	"time"
)

// Least returns the shortest of several runs of f: what it takes when no garbage is collected, and no
// other program has the processor's caches.
func Least(runs int, f func()) time.Duration {
	least := time.Duration(math.MaxInt64)
	for range runs {
		least = min(least, Of(f))
	}
	return least
}
