package cache

import (
	"math"
	"net/http"
	"reflect"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/fetch"
)

const defaultMaxBytes = 64 << 20

// entry is what memory has of an origin. Cache.mu guards it.
type entry struct {
	state  *state
	landed               // what Get returns until look
	look   time.Duration // when to look at the state again, by the monotonic clock since Cache.start
	cost   int64         // in bytes
}

// memory is the first level. Cache.mu guards it.
type memory struct {
	recent *simplelru.LRU[key, *entry]
	bytes  int64 // sum of the entries' costs
	limit  int64
}

func (m *memory) init(limit int64) {
	m.limit = limit
	m.recent, _ = simplelru.NewLRU(math.MaxInt, func(_ key, e *entry) { m.bytes -= e.cost }) // errs only for a size below 1
}

// put makes s the state of k and returns its entry, or nil if s does not fit. A new entry holds no result yet.
func (m *memory) put(k key, s *state) *entry {
	bytes := cost(k, s)
	if bytes > m.limit { // it would evict all others, and then itself
		m.recent.Remove(k)
		return nil
	}
	e, ok := m.recent.Get(k)
	if !ok {
		e = new(entry)
		m.recent.Add(k, e)
	}
	m.bytes += bytes - e.cost
	e.state, e.cost = s, bytes
	for m.bytes > m.limit {
		m.recent.RemoveOldest()
	}
	return e
}

const word = 8

// The fixed sizes of an entry (itself, its state, its node in map and list, with their slack) and of a Result.
var (
	entryCost  = int64(reflect.TypeFor[entry]().Size()+reflect.TypeFor[state]().Size()) + 28*word
	resultSize = int64(reflect.TypeFor[fetch.Result]().Size())
)

// cost estimates the heap that an origin takes, within 20 %.
func cost(k key, s *state) int64 {
	n := entryCost + textCost(len(k.Origin.String())-len("http://"))
	for i, r := range [...]*fetch.Result{s.answer, s.failure, s.assumed, s.moment} {
		if r != nil && (i < 3 || r != s.failure) { // moment may be failure itself
			n += resultCost(r)
		}
	}
	return n
}

// resultCost estimates what a result takes, with what it keeps alive. Shared policies have a Size of zero.
func resultCost(r *fetch.Result) int64 {
	n := resultSize + int64(r.Policy.Size()) + headerCost(r.Header) + textsCost(r.Redirects) + textCost(len(r.Body))
	for _, h := range r.RedirectHeaders {
		n += word + headerCost(h)
	}
	if r.Err != nil {
		n += 4*word + textCost(len(r.Err.Error()))
	}
	return n
}

func headerCost(h http.Header) (n int64) {
	if len(h) == 0 {
		return 0
	}
	n = 47 * word // a map of up to eight fields
	if len(h) > 8 {
		n *= 2
	}
	for _, lines := range h {
		n += textsCost(lines)
	}
	return n
}

func textsCost(all []string) (n int64) {
	for _, s := range all {
		n += 2*word + textCost(len(s))
	}
	return n
}

// textCost rounds a length up to the size classes of the allocator.
func textCost(length int) int64 { return (int64(length) + 15) &^ 15 }
