package web

// Room for what strangers ask and send: Places for how many there may be, and a Memory for how much, in memory and on
// disk, where a Spool takes its room from one. What a request needs is taken before it is made, so the sum of all stays
// below the bound.

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Places bound how many there are of something at a time: their capacity is the most, and their length what is taken.
type Places chan struct{}

// Take takes a place, which Free gives back. It does not wait: it reports whether there was one.
func (p Places) Take() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

// Free gives back what Take took.
func (p Places) Free() { <-p }

// Memory admits work by the bytes that it may take, since their number is a stranger's choice. Work waits for
// its turn in the order in which it comes: small work cannot keep large work waiting for ever.
type Memory struct {
	most int64
	left *semaphore.Weighted

	mu   sync.Mutex // guards what follows
	held int64
	much bool        // since the memory was given back
	idle *time.Timer // gives it back
}

// large is what is worth giving back to the system.
const large = 16 << 20

// NewMemory returns a Memory of so many bytes.
func NewMemory(most int64) *Memory {
	m := &Memory{most: most, left: semaphore.NewWeighted(most)}
	m.idle = time.AfterFunc(time.Hour, debug.FreeOSMemory) // without work, nothing else collects for two minutes
	m.idle.Stop()
	return m
}

// Take waits until n bytes are left, or all of them if n is more, or for ctx. The caller has to give them
// back, and must not wait for a client before. release may be called more than once.
func (m *Memory) Take(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, m.most)
	if err := m.left.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return m.took(n), nil
}

// TryTake takes n bytes and does not wait. It returns nil if too little is left. What it took may
// be held while a client is waited for.
func (m *Memory) TryTake(n int64) (release func()) {
	if !m.left.TryAcquire(n) {
		return nil
	}
	return m.took(n)
}

// took counts n bytes that were acquired. When all are given back, and they were many, the runtime is told to
// return them to the system a second later, unless new work comes.
func (m *Memory) took(n int64) (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held += n
	m.much = m.much || m.held >= large
	m.idle.Stop()
	return sync.OnceFunc(func() {
		m.left.Release(n)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.held -= n; m.held == 0 && m.much {
			m.much = false
			m.idle.Reset(time.Second)
		}
	})
}

// Held is how much is taken, for the metrics.
func (m *Memory) Held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}
