package cache

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
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

	// turn counts the entries added. The order of use matters only for eviction, so an entry
	// moves in it only once a part of the others could have been evicted.
	turn atomic.Int64

	mu     sync.Mutex // guards what follows; nothing is called under it
	recent *simplelru.LRU[*entry, struct{}]
	bytes  int64 // sum of the entries' costs
	limit  int64
}

// entry is an origin's place in memory. Up to until, a reader needs no more than result.
// What a reader needs stands together: an origin that was not asked for lately has to be
// brought from far, which takes longer than all the rest.
type entry struct {
	until   atomic.Int64 // by Cache.clock
	result  atomic.Pointer[fetch.Result]
	turn    atomic.Int64 // of memory, from which a use is to be noted again
	origin  fetch.Origin
	dialect policy.Dialect // of own
	varies  bool           // own is for its UserAgent only
	cost    int32          // in bytes, guarded by memory.mu; here because there is room
	name    [32]byte       // the text of origin, if it fits
	own     fetch.Result   // state.own, as a copy

	ends  atomic.Int64          // when the result holds no longer, see Cache.Until
	state atomic.Pointer[state] // what until, result and ends were made from; memory.mu guards changes of all four
	agent *string               // of its place; nil: that for all

	renewing atomic.Bool // a fetch that no reader waits for is under way, or has just had no turn
	overdue  atomic.Bool // a fetch is under way that readers have waited for long enough
}

// newEntry makes a place for an origin, and returns s and r with its copy in the place of
// s.own. They refer to no other entry, or that would be kept as long as this one.
func newEntry(o place, s *state, r *fetch.Result) (*entry, *state, *fetch.Result) {
	e := &entry{own: *s.own()}
	e.dialect, e.varies = e.own.Dialect, e.own.UserAgent != ""
	if agent := o.agent; agent != "" {
		e.agent = &agent
	}
	e.origin = e.keep(o.Origin)
	moved := *s
	switch {
	case s.answer == nil:
		moved.failure = &e.own
	case s.failure == nil:
		moved.answer = &e.own
	default:
		failure := *s.failure
		moved.answer, moved.failure = &e.own, &failure
	}
	switch r {
	case s.answer:
		r = moved.answer
	case s.failure:
		r = moved.failure
	}
	return e, &moved, r
}

// keep returns o with its text in the entry, if it fits there. Elsewhere, it would have to be
// brought from far too: a question about one of 200,000 origins takes a sixth longer. To keep
// what keep returns is to keep the entry, so it is not given away.
func (e *entry) keep(o fetch.Origin) fetch.Origin {
	if u := o.RobotsURL(); len(u.Host) <= len(e.name) {
		u.Host = unsafe.String(&e.name[0], copy(e.name[:], u.Host))
		if kept, _ := fetch.OriginOf(u); kept == o { // not so under another name
			return kept
		}
	}
	return o.Clone()
}

func (e *entry) place() place {
	if e.agent == nil {
		return place{Origin: e.origin, dialect: e.dialect}
	}
	return place{e.origin, *e.agent, e.dialect}
}

// hold publishes a result, and then its time: a reader that sees the time sees this result or
// a later one.
func (e *entry) hold(r *fetch.Result, until time.Duration) {
	e.result.Store(r)
	e.until.Store(int64(until))
}

func (m *memory) init(size int, limit int64) {
	m.limit = limit
	m.index.init()
	m.recent, _ = simplelru.NewLRU(size, m.evicted) // errs only for a size below 1
}

// evicted is called for each entry that leaves the order of use; the lock is held. An entry
// that was replaced has left the index before.
func (m *memory) evicted(e *entry, _ struct{}) {
	m.remove(e)
	m.bytes -= int64(e.cost)
}

// put publishes a state. Flights of one origin follow each other, so there is one
// writer for each entry.
func (m *memory) put(o place, s *state, r *fetch.Result, until, ends time.Duration) {
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
	switch {
	case old == nil:
		m.turn.Add(1)
		m.add(e)
		m.recent.Add(e, struct{}{})
	case old != e:
		m.replace(old, e)
		m.recent.Remove(old)
		m.recent.Add(e, struct{}{})
	}
	m.first(e)
	for m.bytes > m.limit && m.recent.Len() > 0 {
		m.recent.RemoveOldest()
	}
}

// first makes an entry the most recent one; the lock is held.
func (m *memory) first(e *entry) {
	m.recent.Get(e)
	e.turn.Store(m.turn.Load() + int64(m.recent.Len()/16) + 1)
}

// used notes that an entry is in use. A reader never waits for that: if the lock is taken, the
// next reader does it.
func (m *memory) used(e *entry) {
	if m.turn.Load() >= e.turn.Load() && m.mu.TryLock() {
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

const word = int64(unsafe.Sizeof(uintptr(0)))

// cost estimates the heap that an origin takes, within 20 %.
func cost(o place, s *state) int64 {
	const (
		node = 20 * word // in the map and the list, with their slack
		room = int64(unsafe.Sizeof(entry{})+unsafe.Sizeof(state{})) + node
	)
	n := room
	if o.agent != "" {
		n += 2*word + (int64(len(o.agent))+15)&^15
	}
	if size := len(o.Origin.String()) - len("http://"); size > len(entry{}.name) {
		n += int64(size+15) &^ 15
	}
	for _, r := range [...]*fetch.Result{s.answer, s.failure, s.assumed} {
		if r == nil {
			continue
		}
		n += resultCost(r)
		if r != s.own() { // which is part of the entry
			n += int64(unsafe.Sizeof(*r))
		}
	}
	return n
}

// resultCost estimates what the result keeps alive besides itself. Shared policies have a Size
// of zero.
func resultCost(r *fetch.Result) int64 {
	n := int64(r.Policy.Size()) + headerCost(r.Header) + stringsCost(r.Redirects) + (int64(len(r.UserAgent))+15)&^15
	for _, h := range r.RedirectHeaders {
		n += word + headerCost(h)
	}
	if r.Err != nil {
		n += 4*word + int64(len(r.Err.Error()))
	}
	return n
}

func headerCost(h http.Header) (n int64) {
	if len(h) == 0 {
		return 0
	}
	n = 47 * word // a map of up to eight fields
	for _, lines := range h {
		n += stringsCost(lines)
	}
	return n
}

func stringsCost(all []string) (n int64) {
	for _, s := range all {
		n += 2*word + (int64(len(s))+15)&^15 // with what is lost to the size classes
	}
	return n
}
