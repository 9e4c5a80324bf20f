package fetch

import (
	"errors"
	"testing"
	"time"
)

// One law for every field: if zero, its default; if negative, there is none.
func TestFieldsThatAreZeroOrNegative(t *testing.T) {
	const unbounded = 10_000
	for _, c := range []struct {
		field, timeout time.Duration
		retries        int
		places         int
	}{
		{0, 30 * time.Second, 2, 512},
		{-1, never, 0, unbounded},
		{-7, never, 0, unbounded},
	} {
		f := &Fetcher{Timeout: c.field, Retries: int(c.field), MaxFetches: int(c.field)}
		f.setUp()
		places := 0
		for places < unbounded && f.places.TryAcquire(1) {
			places++
		}
		retries := (&resolution{Fetcher: f}).retries(response{err: errors.New("no connection")})
		if f.timeout() != c.timeout || retries != c.retries || places != c.places {
			t.Errorf("%d: got %v, %d, %d, want %v", c.field, f.timeout(), retries, places, c)
		}
	}
}
