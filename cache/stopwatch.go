package cache

import (
	"sync"
	"sync/atomic"
	"time"
)

// elapsed returns the time since t by the slower and by the faster of the two clocks. The wall
// clock jumps when it is set, and the monotonic one stands still while a machine sleeps. So
// what ends a permission is measured by the faster, and what grants one by the slower. If t
// is in the future, as a foreign or a turned-back clock leaves it, it counts as long ago.
func elapsed(now, t time.Time) (least, most time.Duration) {
	mono, wall := now.Sub(t), now.Round(0).Sub(t.Round(0))
	if mono < -clockSlack {
		return 0, 1<<63 - 1
	}
	return max(0, min(mono, wall)), max(0, mono, wall)
}

// clockSlack is how far two machines' clocks may differ without harm.
const clockSlack = time.Minute

// stopwatch counts the time since it was started, by the faster of the two clocks. To read
// both takes twice as long as to read the monotonic one, which is most of what a hit costs.
// So it looks at the wall clock once a second, and adds what that has gained.
type stopwatch struct {
	start time.Time
	skew  atomic.Int64 // what is added to the monotonic clock
	next  atomic.Int64 // when to look at the wall clock

	mu   sync.Mutex    // held while one goroutine looks
	lead time.Duration // of the wall clock over the monotonic one, at the last look
}

func (c *stopwatch) now() time.Duration {
	mono := int64(time.Since(c.start))
	if mono >= c.next.Load() && c.mu.TryLock() {
		c.look(time.Now())
		c.next.Store(mono + int64(time.Second))
		c.mu.Unlock()
	}
	return time.Duration(mono + c.skew.Load())
}

func (c *stopwatch) at(now time.Time) time.Duration {
	return now.Sub(c.start) + time.Duration(c.skew.Load())
}

// look compares the clocks; the lock is held. If the wall clock was set ahead, or the monotonic
// one stood still, expiry comes nearer. If the wall clock was set back, expiry is not put off.
// A clock that is slewed does neither.
func (c *stopwatch) look(now time.Time) {
	lead := now.Round(0).Sub(c.start.Round(0)) - now.Sub(c.start)
	gained := lead - c.lead
	if gained.Abs() < time.Second {
		return
	}
	c.lead = lead
	// The gains of a clock that goes to and fro add up, but not to more than time can be.
	const most = 1 << 62
	skew := c.skew.Load()
	c.skew.Store(skew + min(int64(max(0, gained)), most-skew))
}
