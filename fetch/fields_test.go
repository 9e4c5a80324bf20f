package fetch

import (
	"errors"
	"testing"
	"time"
)

// One law for every field: if zero, its default; if negative, there is none.
func TestFieldsThatAreZeroOrNegative(t *testing.T) {
	failed := response{err: errors.New("no connection")}
	const never = 1 << 60
	const unbounded = 10_000
	for _, tt := range []struct {
		name       string
		f          *Fetcher
		timeout    time.Duration // below zero: none
		retries    int
		maxFetches int
	}{
		{"all zero", &Fetcher{}, 30 * time.Second, 2, 512},
		{"Timeout", &Fetcher{Timeout: -1}, never, 2, 512},
		{"Retries", &Fetcher{Retries: -1}, 30 * time.Second, 0, 512},
		{"MaxFetches", &Fetcher{MaxFetches: -1}, 30 * time.Second, 2, unbounded},
		{"all negative", &Fetcher{Timeout: -time.Hour, Retries: -7, MaxFetches: -7}, never, 0, unbounded},
	} {
		tt.f.once.Do(tt.f.setUp)
		r := resolution{Fetcher: tt.f}
		if got := min(r.timeout(), never); got != tt.timeout {
			t.Errorf("%s: Timeout %v, want %v", tt.name, got, tt.timeout)
		}
		if got := r.retries(failed); got != tt.retries {
			t.Errorf("%s: Retries %d, want %d", tt.name, got, tt.retries)
		}
		got := 0
		for got < unbounded && r.places.TryAcquire(1) {
			got++
		}
		if got != tt.maxFetches {
			t.Errorf("%s: MaxFetches %d, want %d", tt.name, got, tt.maxFetches)
		}
	}
}
