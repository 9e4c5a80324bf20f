package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/fetch"
)

const (
	defaultSize     = 50_000
	defaultMaxBytes = 64 << 20
)

// memory is the first level: an index that is read without a lock, and the order of use, which
// has one. With the order alone (lru.Cache) every read would take the lock, and two readers
// would be slower than one.
type memory struct {
	index // of the entries in recent; changed under mu

	// added counts the entries added. The order of use matters only for eviction, so an entry
	// moves in it only once a part of the others could have been evicted.
	added atomic.Int64

	mu     sync.Mutex // guards what follows; nothing of others is called under it
	recent *simplelru.LRU[*entry, struct{}]
	bytes  int64 // sum of the entries' costs
	limit  int64

	stored bool // there is a Store behind it
}

func (m *memory) init(size int, limit int64) {
	m.limit = limit
	m.index.init()
	// For each entry that leaves the order of use; the lock is held.
	evicted := func(e *entry, _ struct{}) {
		m.remove(e) // unless it was replaced, and has left the index before
		m.bytes -= int64(e.cost)
	}
	m.recent, _ = simplelru.NewLRU(size, evicted) // errs only for a size below 1
}

// put publishes a state that a flight for agent has found. Flights of one place follow each
// other, so there is one writer for each entry.
func (m *memory) put(o place, s *state, r *fetch.Result, until, ends time.Duration, agent string) {
	cost := cost(o, s)
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.find(o)
	if cost > m.limit { // all others would have to go, and then it too
		if old != nil {
			m.recent.Remove(old)
		}
		return
	}
	e := old
	if old == nil || old.state.Load().own() != s.own() {
		e, s, r = newEntry(o, s, r)
	}
	m.bytes += cost - int64(e.cost)
	e.cost = int32(cost)
	e.state.Store(s)
	e.ends.Store(int64(ends))
	e.hold(r, until)
	m.family(e, old, agent)
	switch {
	case old == nil:
		m.added.Add(1)
		m.add(e)
		m.recent.Add(e, struct{}{})
	case old != e:
		m.slot(old).entry.Store(e) // a reader finds either
		m.recent.Remove(old)
		m.recent.Add(e, struct{}{})
	}
	m.first(e)
	for m.bytes > m.limit && m.recent.Len() > 0 {
		m.recent.RemoveOldest()
	}
}

// family sets e, which is to replace old, beside the other places of its origin, and keeps them
// within what one origin may take; the lock is held.
func (m *memory) family(e, old *entry, agent string) {
	if m.stored && !e.is(single) {
		e.know(old, agent)
	}
	for {
		count, bytes := 1, int64(e.cost)
		var oldest *entry
		for other := range m.of(e.origin) {
			if other == e || other == old {
				continue
			}
			count++
			bytes += int64(other.cost)
			if oldest == nil || other.noteAt.Load() < oldest.noteAt.Load() {
				oldest = other
			}
			e.joins(other)
			other.joins(e)
		}
		if oldest == nil || bytes <= maxOrigin && count <= maxPlaces {
			return
		}
		m.recent.Remove(oldest)
	}
}

// own returns the entry for the callers of src where it may be another than that of the place
// for all, which is given; nil if there is none.
func (m *memory) own(o fetch.Origin, src *Source, all *entry) *entry {
	agent := src.agent()
	if all == nil || all.is(varies) {
		if e := m.find(src.place(o).of(agent)); e != nil {
			return e
		}
	}
	if all != nil && all.isFor(agent) {
		return all
	}
	return nil
}

// first makes an entry the most recent one; the lock is held.
func (m *memory) first(e *entry) {
	m.recent.Get(e)
	e.noteAt.Store(m.added.Load() + int64(m.recent.Len()/16) + 1)
}

// used notes that an entry is in use. A reader never waits for that: if the lock is taken, the
// next reader does it.
func (m *memory) used(e *entry) {
	if m.added.Load() >= e.noteAt.Load() && m.mu.TryLock() {
		m.first(e)
		m.mu.Unlock()
	}
}

// extend lets a result hold for longer. If the lock is taken, the next reader does it.
func (m *memory) extend(e *entry, s *state, r *fetch.Result, until time.Duration) {
	if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	m.first(e)
	if e.state.Load() == s { // else a flight has landed meanwhile
		e.hold(r, until)
	}
}

// putOff is extend for a flight, after which there may be no reader in time.
func (m *memory) putOff(e *entry, s *state, r *fetch.Result, until time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.state.Load() == s {
		e.hold(r, until)
	}
}

// size returns how many entries there are, and what they cost.
func (m *memory) size() (entries int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent.Len(), m.bytes
}

// clear drops all entries and leaves no room for more.
func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent.Purge()
	m.limit = 0
}
