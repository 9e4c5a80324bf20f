package serve

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// leases are the turns that clients hold for a time, each by an ID that cannot be guessed: who knows it may end the
// turn. Each has a place in Bounded, taken before Add, until Take or End.
type leases struct {
	Time    time.Duration // until one lapses
	Bounded web.Places

	mu   sync.Mutex // guards held
	held map[string]lease
}

// lease is a turn with the timer that ends it.
type lease struct {
	turn   *client.Turn
	lapses *time.Timer
}

// Add begins a lease. Its time begins here.
func (l *leases) Add(turn *client.Turn) (id string, until time.Time) {
	id, until = rand.Text(), time.Now().Add(l.Time) // 130 bits
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[id] = lease{turn, time.AfterFunc(l.Time, func() { l.End(id) })}
	return id, until
}

// Take ends a lease and returns its turn, or nil if there is none. Of two who end the same, one gets it.
func (l *leases) Take(id string) *client.Turn {
	l.mu.Lock()
	h, ok := l.held[id]
	delete(l.held, id)
	l.mu.Unlock()
	if ok {
		h.lapses.Stop()
		l.Bounded.Free()
	}
	return h.turn
}

// End ends a lease as its time does, and the turn with it, without the lock.
func (l *leases) End(id string) {
	if turn := l.Take(id); turn != nil {
		turn.End()
	}
}

// Close ends all leases as their time does. What is added meanwhile is not among them.
func (l *leases) Close() {
	l.mu.Lock()
	ids := slices.Collect(maps.Keys(l.held))
	l.mu.Unlock()
	for _, id := range ids {
		l.End(id)
	}
}
