package cache

import (
	"context"
	"sync"
	"time"
)

// loading is the context of a load. It ends flightTimeout after the load began, or after
// its turn came, where it had to wait for one (package turn): what it waits for in a queue
// of ours is not the origin's fault. Without a turn it goes on for as long as it is wanted.
type loading struct {
	context.Context
	cancel context.CancelFunc
	wanted func() bool

	mu     sync.Mutex // guards what follows
	timer  *time.Timer
	end    time.Time
	queued bool // no turn yet
	late   bool // ended by the timer
}

func newLoading(wanted func() bool) *loading {
	l := &loading{wanted: wanted, end: time.Now().Add(flightTimeout)}
	l.Context, l.cancel = context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(flightTimeout, l.expire)
	return l
}

// putOff lets the time start anew; the lock is held.
func (l *loading) putOff() {
	l.end = time.Now().Add(flightTimeout)
	l.timer.Reset(flightTimeout)
}

func (l *loading) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case time.Now().Before(l.end): // it was just put off
	case l.queued && l.wanted():
		l.putOff()
	default:
		l.late = true
		l.cancel()
	}
}

// over ends what still runs.
func (l *loading) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.wanted = func() bool { return false } // a timer that was stopped may be kept for a while, but not the Cache with it
	l.cancel()
}

// Queue says that the load waits for its turn.
func (l *loading) Queue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = true
}

// Begin says that its turn has come.
func (l *loading) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Context.Err() != nil {
		return // too late: nothing comes of it
	}
	l.queued = false
	l.putOff()
}

// waits reports whether the load is still without its turn.
func (l *loading) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued
}

func (l *loading) Deadline() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end, true
}

func (l *loading) Err() error {
	err := l.Context.Err()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && l.late {
		return context.DeadlineExceeded
	}
	return err
}
