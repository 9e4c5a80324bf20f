package web

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"
)

// Leases are things that clients hold for a time, each by an ID that cannot be guessed: who knows it may end
// the lease. Each lease has an element in Bounded, from Reserve to Take or End. Time, Lapsed and Bounded must
// not change after the first call.
type Leases[T any] struct {
	Time    time.Duration // until one lapses
	Lapsed  func(T)       // is called for each that is not taken
	Bounded chan struct{} // its capacity is how many there may be

	mu   sync.Mutex // guards held
	held map[string]held[T]
}

// held is what one lease is about, with the timer that ends it.
type held[T any] struct {
	it     T
	lapses *time.Timer
}

// Reserve makes room for one more, and reports whether there is any. What is reserved has to
// be given to Add, or given up with Release.
func (l *Leases[T]) Reserve() bool {
	select {
	case l.Bounded <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release gives up what Reserve reserved.
func (l *Leases[T]) Release() { <-l.Bounded }

// Add begins a lease, for which there must be room. Its time begins here.
func (l *Leases[T]) Add(it T) (id string, until time.Time) {
	id, until = rand.Text(), time.Now().Add(l.Time) // 130 bits
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string]held[T])
	}
	l.held[id] = held[T]{it, time.AfterFunc(l.Time, func() { l.End(id) })}
	return id, until
}

// Take ends a lease, and reports whether there was one. Of two who end the same, one gets it. Lapsed is not
// called.
func (l *Leases[T]) Take(id string) (it T, ok bool) {
	l.mu.Lock()
	h, ok := l.held[id]
	delete(l.held, id)
	l.mu.Unlock()
	if ok {
		h.lapses.Stop()
		l.Release()
	}
	return h.it, ok
}

// End ends a lease as its time does: Lapsed is called, without the lock, if it was still there.
func (l *Leases[T]) End(id string) {
	if it, ok := l.Take(id); ok {
		l.Lapsed(it)
	}
}

// Close ends all leases as their time does. What is added meanwhile is not among them.
func (l *Leases[T]) Close() {
	l.mu.Lock()
	ids := slices.Collect(maps.Keys(l.held))
	l.mu.Unlock()
	for _, id := range ids {
		l.End(id)
	}
}
