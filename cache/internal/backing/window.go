package backing

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

const (
	// maxLags is by how many times its own lag a process prolongs its patience with a Store: a
	// call has its turn of the processor so often.
	maxLags = 4

	// maxLate is which part of a window a process may be late. With more, it has not given the
	// Store its time, and the window begins again.
	maxLate = 8
)

// ErrBusy means that callers queue for a Store with locks, which has answered some of
// them during this Look.
var ErrBusy = errors.New("cache: too many calls of the store are under way")

// window is how long a call may take. With a part that counts answers, it begins again as long
// as the Store answers those that came before: where many callers queue, the Store is slow and
// not silent. But a call that others overtake is not waited for: one shard of many may be silent.
type window struct {
	length time.Duration
	end    time.Time // in any case
	part   *breaker  // whose answers count; nil: no other call's do
	seen   uint64    // how many it had when the window began
	most   uint64    // how many it may have before this call is overtaken; zero: any number

	begin time.Time
	due   time.Time // when the timer fires
	timer *time.Timer
	lag   time.Duration // how late this process was to see that
}

// enter waits for a slot. fair reports whether as much as least of the time is then left.
func (w *window) enter(slots chan<- struct{}, least time.Duration) (fair, entered bool) {
	w.begin = time.Now()
	w.due, w.timer = w.begin.Add(w.length), time.NewTimer(w.length)
	for {
		select {
		case slots <- struct{}{}:
			now := time.Now()
			if w.answered() { // the wait was for calls that ended: this one gets a whole window
				w.begin = now
				w.prolong(now)
			}
			// If all slots were used eight times since, the Store answers, but not this call.
			if w.part != nil {
				w.most = w.seen + 8*uint64(cap(slots))
			}
			return w.due.Sub(now) >= least, true
		case <-w.timer.C:
			if w.over() {
				return false, false
			}
		}
	}
}

// over reports whether to wait no more, now that the timer has fired. Otherwise it is set again.
func (w *window) over() bool {
	if w.part == nil {
		return true
	}
	// Where a thousand goroutines are ready to run, so may be the one that has the answer.
	runtime.Gosched()
	now := time.Now()
	w.lag = now.Sub(w.due)
	if w.answered() && (w.most == 0 || w.seen <= w.most) || w.lag > w.length/maxLate {
		w.begin = now
	}
	return !w.prolong(now)
}

// prolong sets the timer for the end of the window, and reports whether that is ahead.
func (w *window) prolong(now time.Time) bool {
	w.due = w.begin.Add(w.length + maxLags*w.lag)
	if w.due.After(w.end) {
		w.due = w.end
	}
	left := w.due.Sub(now)
	if left <= 0 {
		return false
	}
	w.timer.Reset(left)
	return true
}

// answered reports whether the Store has answered any call since the window began.
func (w *window) answered() bool {
	if w.part == nil {
		return false
	}
	before := w.seen
	w.seen = w.part.answered.Load()
	return w.seen > before
}

// within calls f and waits for it no longer than w. Waiting for a slot counts against that. A
// call that fails with less than least of the time left is ErrBusy: it had no fair chance. Calls
// that never return are few, because each keeps its slot. If f returns after that time, its
// value goes to late.
func within[T any](slots chan struct{}, w window, least time.Duration,
	f func(context.Context) (T, error), late func(T),
) (T, error) {
	var none T
	fair, entered := w.enter(slots, least)
	defer w.timer.Stop()
	if !entered {
		return none, ErrBusy
	}
	// A window can begin again, a context cannot: it has the last end. What is left sooner is canceled.
	ctx, cancel := context.WithDeadline(context.Background(), w.end)
	defer cancel()
	type result struct {
		v   T
		err error
	}
	// Without a buffer a value has one taker: the caller, or late once the caller has left.
	returned, left := make(chan result), make(chan struct{})
	go call(ctx, f, func(v T, err error) {
		select {
		case returned <- result{v, err}:
		case <-left:
			if late != nil && err == nil {
				late(v)
			}
		}
		<-slots // last: with all slots taken, nothing runs
	})
	for over := false; !over; {
		select {
		case r := <-returned:
			if r.err != nil && !fair {
				return none, ErrBusy
			}
			return r.v, r.err
		case <-w.timer.C:
			over = w.over()
		}
	}
	close(left)
	if !fair {
		return none, ErrBusy
	}
	return none, context.DeadlineExceeded
}

// call calls f, and then end with what it came to, even if f panics or ends its goroutine.
func call[T any](ctx context.Context, f func(context.Context) (T, error), end func(T, error)) {
	var v T
	err := errors.New("cache: the store ended its goroutine")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cache: the store panicked: %v", p)
		}
		end(v, err)
	}()
	v, err = f(ctx)
}
