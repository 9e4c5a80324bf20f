package turnstest

import (
	"context"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

// Memory is a turns.Store in the memory of one process, for tests: Pacers that share it are a fleet. Its zero value is
// ready. It forgets nothing, and must not be copied.
type Memory struct {
	mu   sync.Mutex // guards keys
	keys map[string]*times
}

// times are those of one key. Zero is the far past.
type times struct{ last, next, resume time.Time }

var _ turns.Store = (*Memory)(nil)

// Reserve implements turns.Store.
func (m *Memory) Reserve(ctx context.Context, key string, delay, late, within time.Duration) (time.Duration, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, t, delay := time.Now(), m.times(key), max(delay, 0)
	at := latest(now, t.next, t.resume)
	if !t.last.IsZero() {
		at = latest(at, t.last.Add(delay))
	}
	wait := at.Sub(now)
	if wait > max(within, 0) {
		return wait, false, ctx.Err()
	}
	t.last = at.Add(max(late, 0))
	t.next = t.last.Add(delay)
	return wait, true, ctx.Err()
}

// Pause implements turns.Store.
func (m *Memory) Pause(ctx context.Context, key string, d time.Duration) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, t := time.Now(), m.times(key)
	if d > 0 {
		t.resume = latest(t.resume, now.Add(d))
	}
	return max(t.resume.Sub(now), 0), ctx.Err()
}

func (m *Memory) times(key string) *times {
	if m.keys == nil {
		m.keys = map[string]*times{}
	}
	if m.keys[key] == nil {
		m.keys[key] = new(times)
	}
	return m.keys[key]
}

func latest(all ...time.Time) (last time.Time) {
	for _, t := range all {
		if t.After(last) {
			last = t
		}
	}
	return last
}
