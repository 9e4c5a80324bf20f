package cache

import (
	"sync/atomic"
	"time"
)

// elapsed returns the time since t by the slower and by the faster of the two clocks.
// What ends a permission is measured by the faster, what grants one by the slower.
// A t in the future, as a foreign or a turned-back clock leaves it, is long ago.
func elapsed(now, t time.Time) (least, most time.Duration) {
	mono, wall := now.Sub(t), now.Round(0).Sub(t.Round(0))
	if mono < -clockSlack {
		return 0, 1<<63 - 1
	}
	return max(0, min(mono, wall)), max(0, mono, wall)
}

// clockSlack is how far two machines' clocks may differ without harm.
const clockSlack = time.Minute

// clock counts the time since it was set up, by the faster of the two clocks. Reading both
// takes twice as long as the monotonic one, and all of a hit is hardly more than that; so
// the wall clock is looked at once a second, and what it has gained is added.
type clock struct {
	start   time.Time
	skew    atomic.Int64 // what is added to the monotonic clock
	lead    atomic.Int64 // of the wall clock over the monotonic one, when last looked at
	compare atomic.Int64 // when to look again
}

func (c *clock) init(now time.Time) { c.start = now }

func (c *clock) now() time.Duration {
	mono := int64(time.Since(c.start))
	if due := c.compare.Load(); mono >= due && c.compare.CompareAndSwap(due, mono+int64(time.Second)) {
		c.look(time.Now())
	}
	return time.Duration(mono + c.skew.Load())
}

// at converts a time.
func (c *clock) at(now time.Time) time.Duration {
	return now.Sub(c.start) + time.Duration(c.skew.Load())
}

// look compares the clocks. A wall clock that was set ahead, or a monotonic one that
// stood still, brings expiry nearer; one that was set back does not put it off. A clock that
// is slewed does neither. One goroutine at a time may look: now sees to that.
func (c *clock) look(now time.Time) {
	lead := now.Round(0).Sub(c.start.Round(0)) - now.Sub(c.start)
	gained := lead - time.Duration(c.lead.Load())
	if gained.Abs() < time.Second {
		return
	}
	c.lead.Store(int64(lead))
	// A clock that goes to and fro adds up, but not to more than time can be.
	const most = 1 << 62
	skew := c.skew.Load()
	c.skew.Store(skew + min(int64(max(0, gained)), most-skew))
}
