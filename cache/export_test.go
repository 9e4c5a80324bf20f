package cache

import (
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// WithoutSpread takes the jitter out of all lifetimes and waits, for tests that count
// seconds. Users have no such switch: expiry at one moment is a herd.
func (c *Cache) WithoutSpread() *Cache {
	c.terms.draw = func(_, hi float64) float64 { return min(hi, 1) }
	return c
}

// WithSteadyRetry has all attempts after a failure so far apart, for vectors that count them.
func (c *Cache) WithSteadyRetry(d time.Duration) *Cache {
	c.once.Do(c.init)
	c.terms.minRetry, c.terms.maxRetry = d, d
	return c
}

// WithTerms sets the lifetime of what states none, and for how long a copy is kept beyond its own, as caches of pages do.
func (c *Cache) WithTerms(defaultTTL, maxStale time.Duration) *Cache {
	c.once.Do(c.init)
	c.terms.defaultTTL, c.terms.maxStale = defaultTTL, maxStale
	return c
}

// HoldsUntil is what Get says, without a fetch behind its caller.
func (c *Cache) HoldsUntil(o fetch.Origin, src *Source) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.memory.recent.Peek(key{o, src.Reader, src.Dialect}); ok {
		return c.terms.until(e.state, time.Now())
	}
	return time.Time{}
}
