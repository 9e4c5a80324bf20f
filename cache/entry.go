package cache

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/robotsgate/robotsgate/fetch"
)

// entry is an origin's place in memory. Up to until, a reader needs no more than result.
// What a reader needs stands together: an origin that was not asked for lately has to be
// brought from far, which takes longer than all the rest.
type entry struct {
	until  atomic.Int64 // by Cache.clock
	result atomic.Pointer[fetch.Result]
	noteAt atomic.Int64 // memory.added, from which on a use is to be noted again
	origin fetch.Origin
	kind
	flags atomic.Uint32 // apart, varies, single
	name  [32]byte      // the text of origin, if it fits
	own   fetch.Result  // state.own, as a copy

	ends  atomic.Int64          // when the result holds no longer, see Cache.Until
	state atomic.Pointer[state] // what until, result and ends were made from; memory.mu guards changes of all four
	cost  int32                 // in bytes; memory.mu guards it

	// The User-Agent of a single place. In a place for all, those that the Store has no place of
	// their own for; nil: there is no Store. memory.mu guards changes.
	agents atomic.Pointer[[]string]
}

// The flags of an entry. Those of a place for all change under memory.mu.
const (
	apart  = 1 << iota // a caller's own place may be another one: of an entry that varies, or with a Store
	varies             // memory has had single places beside this one for all
	single             // its place is that of one User-Agent; never changes
)

const (
	maxOrigin = 2 << 20 // bytes of one origin, in all its places,
	maxPlaces = 256     // of which it has so many
)

func (e *entry) is(flag uint32) bool { return e.flags.Load()&flag != 0 }

// newEntry makes a place for an origin, and returns s and r with its copy in the place of
// s.own. They refer to no other entry, or that would be kept as long as this one.
func newEntry(o place, s *state, r *fetch.Result) (*entry, *state, *fetch.Result) {
	e := &entry{own: *s.own()}
	if e.kind = o.kind; o.agent != "" {
		e.flags.Store(single)
		e.agents.Store(&[]string{o.agent})
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
	if !e.is(single) {
		return place{Origin: e.origin, kind: e.kind}
	}
	return place{e.origin, (*e.agents.Load())[0], e.kind}
}

// seen returns what a caller that found e has seen; e may be nil.
func (e *entry) seen() *state {
	if e == nil {
		return nil
	}
	return e.state.Load()
}

// know notes that the Store has no place of agent's own, beside what is known from old.
func (e *entry) know(old *entry, agent string) {
	known := []string{agent}
	if old != nil && len(*old.agents.Load()) < maxPlaces {
		known = append(without(*old.agents.Load(), agent), agent)
	}
	e.agents.Store(&known)
	e.flags.Or(apart)
}

// joins notes in an entry for all that memory has, and the Store may have, a place of a User-Agent
// beside it. One of another kind says nothing about those of this.
func (e *entry) joins(other *entry) {
	if e.kind != other.kind || e.is(single) || !other.is(single) {
		return
	}
	e.flags.Or(apart | varies)
	if known := e.agents.Load(); known != nil {
		fewer := without(*known, (*other.agents.Load())[0])
		e.agents.Store(&fewer)
	}
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == one })
}

// isFor reports whether an entry in the place for all is for a User-Agent that has no place of
// its own in memory. With a Store, it is once the Store was asked for that place.
func (e *entry) isFor(agent string) bool {
	agents := e.agents.Load()
	return agents == nil || slices.Contains(*agents, agent)
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
		n += 6*word + (int64(len(o.agent))+15)&^15
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
	n += (int64(len(r.Body)) + 15) &^ 15
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
	if len(h) > 8 {
		n *= 2
	}
	for _, lines := range h {
		n += stringsCost(lines)
	}
	return n
}
