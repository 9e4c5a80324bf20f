package cache

// WithoutSpread takes the jitter out of all lifetimes and waits, for tests that count
// seconds. Users have no such switch: expiry at one moment is a herd.
func (c *Cache) WithoutSpread() *Cache {
	c.noSpread = true
	return c
}

// WithSteadyRetry has all attempts MinRetry apart, for vectors that count them.
func (c *Cache) WithSteadyRetry() *Cache {
	c.once.Do(c.init)
	c.terms.maxRetry = c.terms.minRetry
	return c
}
