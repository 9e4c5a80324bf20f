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

// memory is the first level: a map that is read without a lock, and beside it the
// order of use under one. The order alone (lru.Cache) would need its lock for every
// read, and two readers are slower with it than one.
type memory struct {
	entries sync.Map // fetch.Origin to *entry

	mu     sync.Mutex // guards what follows; nothing is called under it
	recent *simplelru.LRU[*entry, struct{}]
	bytes  int64 // sum of the entries' costs
	limit  int64
}

// entry is an origin's place in memory. Up to until, a reader needs no more than result.
type entry struct {
	origin fetch.Origin
	until  atomic.Int64 // since Cache.base
	result atomic.Pointer[fetch.Result]

	state atomic.Pointer[state] // what both were made from; memory.mu guards changes of all three
	cost  int64                 // guarded by memory.mu
}

// hold publishes a result: before its time is up, so that a reader who sees the time
// sees the result or a later one.
func (e *entry) hold(r *fetch.Result, until time.Duration) {
	e.result.Store(r)
	e.until.Store(int64(until))
}

func (m *memory) init(size int, limit int64) {
	if size <= 0 {
		size = defaultSize
	}
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	m.limit = limit
	m.recent, _ = simplelru.NewLRU(size, m.evicted) // errs only for a size below 1
}

// evicted follows an entry out of the order of use; the lock is held.
func (m *memory) evicted(e *entry, _ struct{}) {
	m.entries.Delete(e.origin)
	m.bytes -= e.cost
}

func (m *memory) lookup(o fetch.Origin) *entry {
	if v, ok := m.entries.Load(o); ok {
		return v.(*entry)
	}
	return nil
}

// put publishes a state. Flights of one origin follow each other, so there is one
// writer for each entry.
func (m *memory) put(o fetch.Origin, s *state, r *fetch.Result, until time.Duration) {
	cost := cost(o, s)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.lookup(o)
	if e != nil {
		m.bytes -= e.cost
		e.cost = 0
	} else {
		e = &entry{origin: o.Clone()}
	}
	for m.bytes+cost > m.limit && m.recent.Len() > 0 {
		m.recent.RemoveOldest()
	}
	if m.bytes+cost > m.limit {
		return
	}
	e.state.Store(s)
	e.hold(r, until)
	e.cost = cost
	m.bytes += cost
	m.recent.Add(e, struct{}{})
	m.entries.Store(e.origin, e)
}

// extend lets a result hold on, and makes its entry the most recent one. A reader never
// waits for that: where the lock is taken, the next one does it.
func (m *memory) extend(e *entry, s *state, r *fetch.Result, until time.Duration) {
	if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	m.recent.Get(e)
	if e.state.Load() == s { // else a flight has landed meanwhile
		e.hold(r, until)
	}
}

// clear drops all entries, and leaves no room for more.
func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent.Purge()
	m.limit = 0
}
