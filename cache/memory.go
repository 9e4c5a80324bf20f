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

// entry is an origin's place in memory.
type entry struct {
	origin fetch.Origin
	view   atomic.Pointer[view]
	cost   int64 // guarded by memory.mu
}

// view is what a state amounts to up to a moment. Up to then a reader needs no more
// than the result.
type view struct {
	state  *state
	result *fetch.Result
	until  time.Duration // since Cache.base
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
func (m *memory) put(o fetch.Origin, v *view) {
	cost := cost(o, v.state)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.lookup(o)
	if e != nil {
		m.bytes -= e.cost
		e.cost = 0
	} else {
		e = &entry{origin: o}
	}
	for m.bytes+cost > m.limit && m.recent.Len() > 0 {
		m.recent.RemoveOldest()
	}
	if m.bytes+cost > m.limit {
		return
	}
	e.view.Store(v)
	e.cost = cost
	m.bytes += cost
	m.recent.Add(e, struct{}{})
	m.entries.Store(o, e)
}

// used makes an entry the most recent one. A reader never waits for it: where the lock
// is taken, the entry's next close look does it.
func (m *memory) used(e *entry) {
	if m.mu.TryLock() {
		m.recent.Get(e)
		m.mu.Unlock()
	}
}

// clear drops all entries, and leaves no room for more.
func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent.Purge()
	m.limit = 0
}
