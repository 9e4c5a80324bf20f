package cache

import (
	"context"
	"sync"
	"time"
)

// loading is the context of a load. It ends flightTimeout after the load began, or after
// its turn came, where it had to wait for one (package turn): what the load waits for in a
// queue of ours is not the origin's fault, and no time of its.
type loading struct {
	context.Context
	cancel  context.CancelFunc
	timeout time.Duration

	mu     sync.Mutex // guards what follows
	timer  *time.Timer
	end    time.Time
	queued bool // no turn yet
	late   bool // ended by the timer
}

func newLoading(timeout time.Duration) *loading {
	l := &loading{timeout: timeout, end: time.Now().Add(timeout)}
	l.Context, l.cancel = context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(timeout, l.expire)
	return l
}

func (l *loading) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.end) {
		return // it was just put off
	}
	l.late = true
	l.cancel()
}

// over ends what still runs.
func (l *loading) over() {
	l.timer.Stop()
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
	l.queued, l.end = false, time.Now().Add(l.timeout)
	l.timer.Reset(l.timeout)
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
