// Package rules has the rules of a turn at one origin, as turns.Store states them: what a request keeps its
// distance from, who goes first, when a place is free, and how pauses grow. Package pace keeps them for one
// process, redisturns in Redis, and memturns for a fleet in tests.
package rules

import (
	"math/rand/v2"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

// Origin is what is known of the requests at one origin. The zero value is that of an origin never asked.
// It has no lock and no clock: the time is an argument, and so is the delay.
type Origin struct {
	Last     time.Time // the latest start or end of a request
	Granted  time.Time // the latest Visit, not yet used perhaps
	Resume   time.Time // no start before: the site asked for a pause, or suffers
	Strain   int       // failures, less the good answers since; never negative
	Underway int       // places that are taken
}

// From is what the delay of a turn runs from. If every place is taken (full), a request has to end first: no
// sooner than now. Robots.txt waits for no place: a body that the caller leaves open must not make the
// origin unreachable. If places is zero, there are any number.
func (o *Origin) From(k turns.Kind, places int, now time.Time) (from time.Time, full bool) {
	switch {
	case k != turns.Robots && places > 0 && o.Underway >= places:
		return now, true
	case k == turns.Visitor:
		return o.Last, false
	}
	return Later(o.Last, o.Granted), false
}

// Start gives a turn.
func (o *Origin) Start(k turns.Kind, now time.Time) {
	if k == turns.Visit {
		o.Granted = now
		return
	}
	o.Last = now
	o.Underway++
}

// End gives a place back. Another may have started since now was read.
func (o *Origin) End(now time.Time) {
	o.Last = Later(o.Last, now)
	o.Underway--
}

// Rank tells who goes first: a turn goes before those of a lower rank that were asked for earlier. Robots.txt goes
// before all, since the others may be waiting for what it says.
func Rank(k turns.Kind) int {
	switch k {
	case turns.Robots:
		return 2
	case turns.Visitor:
		return 1
	}
	return 0
}

// longestPause bounds the pauses that the site did not ask for.
const longestPause = time.Hour

// Answered notes how the site does. asked is the pause that it asked for with a failure; zero: none.
func (o *Origin) Answered(failed bool, asked, delay time.Duration, now time.Time) {
	switch {
	case failed && asked > 0: // the site knows best
		o.Resume = Later(o.Resume, now.Add(asked))
		return
	case failed && o.Pause(delay) < longestPause:
		o.Strain++
	case !failed && o.Strain > 0:
		o.Strain--
	}
	if o.Strain > 0 {
		o.Resume = Later(o.Resume, now.Add(Jittered(o.Pause(delay))))
	}
}

// Pause is how long to stay away under the present strain. Each failure doubles it, and each good answer
// halves it: a site that comes back does not meet the full load at once.
func (o *Origin) Pause(delay time.Duration) time.Duration {
	unit := min(max(delay, time.Second), longestPause)
	return min(unit<<min(o.Strain, 12), longestPause)
}

// Jittered is d give or take a fifth. The origins of one failing server, and the crawlers of one failing site,
// then do not come back together.
func Jittered(d time.Duration) time.Duration { return d*4/5 + rand.N(d*2/5) }

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
