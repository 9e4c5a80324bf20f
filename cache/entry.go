package cache

import (
	"net/http"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

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
