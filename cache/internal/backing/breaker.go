package backing

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	breakAfter = 5               // failures in a row
	breakFor   = 5 * time.Second // until the next attempt
)

// errDown is for a part of the Store that fails, or that there is not.
var errDown = errors.New("cache: the store fails, or has no locks")

// breaker keeps calls from a part of a Store that fails, and says so once. Reading and
// writing have one each: a replica that lost its master still answers, but takes nothing.
type breaker struct {
	part string
	log  *slog.Logger

	errors   atomic.Uint64 // calls that failed, and values that were amiss
	answered atomic.Uint64 // calls that did not fail

	mu       sync.Mutex // guards what follows
	failures int        // in a row
	failed   time.Time  // when the latest of them was
	next     time.Time  // no call before, while open
}

// ready reports whether allow would.
func (b *breaker) ready(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures < breakAfter || !now.Before(b.next)
}

// allow reports whether to call. While the breaker is open it allows one call in five
// seconds, to find out.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures >= breakAfter {
		if now.Before(b.next) {
			return false
		}
		b.next = now.Add(breakFor) // before the call: others are not to try, too
	}
	return true
}

// done counts the outcome of a call. It logs without the lock: a handler may use the Cache.
func (b *breaker) done(began, now time.Time, err error) {
	defer func() { _ = recover() }() // of a log handler, whose panic would end the process
	if from, to := b.count(began, now, err); from < breakAfter && to == breakAfter {
		b.log.Warn("cache: the store fails and is left alone for now", "part", b.part, "error", err)
	} else if from >= breakAfter && to == 0 {
		b.log.Info("cache: the store works again", "part", b.part)
	}
}

func (b *breaker) count(began, now time.Time, err error) (from, to int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from = b.failures
	switch {
	case err == nil:
		b.failures = 0
		b.answered.Add(1)
		return from, 0
	case from < breakAfter && !began.Before(b.failed): // those that fail together are one failure
		b.failures++
		b.failed = now
	}
	b.errors.Add(1)
	b.next = now.Add(breakFor)
	return from, b.failures
}
