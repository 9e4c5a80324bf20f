package load_test

import (
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// lateness is how much later than his deadline a caller may return.
const lateness = 50 * time.Millisecond

// vigil measures how late a caller is, and what of that is not the library's: in these
// tests a client and all servers of the internet share a few cores, which their floods
// and other processes keep busy for longer than lateness now and then.
type vigil struct {
	deadline time.Time
	control  *time.Timer
	woke     atomic.Int64 // how late a goroutine was that waited for the deadline alone, in ns
	delays   metrics.Float64Histogram
	starved  time.Duration
}

func keepVigil(deadline time.Time) *vigil {
	v := &vigil{deadline: deadline, delays: schedulerDelays(), starved: starvedSoFar()}
	v.woke.Store(-1)
	v.control = time.AfterFunc(time.Until(deadline), func() { v.woke.Store(int64(time.Since(deadline))) })
	return v
}

// handovers is how often a caller on his way out may have to wait for his turn to run: for
// a lock of the gate, of the connection pool or of the internet that all servers share,
// when his context wakes him, when he was interrupted. A process with a thousand callers
// that is short of processors pays for each of them.
const handovers = 8

// end returns how late it is, and how much of that is excused.
func (v *vigil) end() (late, excused time.Duration) {
	late = time.Since(v.deadline)
	if v.control.Stop(); late <= lateness {
		return late, 0
	}
	return late, min(late, v.excuse())
}

// excuse is what the control is late, what the scheduler let goroutines wait that were ready to run,
// and what the system let threads wait, which the scheduler does not know.
func (v *vigil) excuse() time.Duration {
	control := time.Duration(v.woke.Load())
	if control < 0 { // it has not even woken
		control = max(0, time.Since(v.deadline))
	}
	control += max(0, proc.Starved()-v.starved)
	after := schedulerDelays()
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if after.Counts[i] > v.delays.Counts[i] {
			longest := min(after.Buckets[i+1], 10) // the last bucket has no upper end
			return control + handovers*time.Duration(longest*float64(time.Second))
		}
	}
	return control
}

// starvedSoFar is proc.Starved, as it was 0.1 s ago at most: thousands of callers ask.
func starvedSoFar() time.Duration {
	starving.Lock()
	defer starving.Unlock()
	if time.Since(starving.at) > 100*time.Millisecond {
		starving.at, starving.all = time.Now(), proc.Starved()
	}
	return starving.all
}

var starving struct {
	sync.Mutex
	at  time.Time
	all time.Duration
}

// schedulerDelays is how often a goroutine has waited how long to run.
func schedulerDelays() metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	h := *s[0].Value.Float64Histogram()
	h.Counts = slices.Clone(h.Counts)
	return h
}
