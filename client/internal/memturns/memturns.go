// Package memturns is the reference implementation of turns.Store, in the memory of one process. The tests of
// client.Pacer run over it, and so do those of package turnstest. No program needs it: one process keeps its pace
// with a Pacer without Turns.
//
// Its rules are those of package rules. It adds what a fleet needs: names and leases of places, who waits to ask
// again, and when an origin is forgotten.
package memturns

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace/rules"
	"github.com/robotsgate/robotsgate/client/turns"
)

// Store implements turns.Store. The zero value is ready to use.
type Store struct {
	// Fault, if not nil, may fail or delay a call, or lose its answer (after).
	Fault func(ctx context.Context, origin string, after bool) error

	mu      sync.Mutex // guards origins
	origins map[string]*origin
}

type origin struct {
	rules.Origin
	longest time.Duration // of all delays
	kept    time.Time     // until when robots.txt may still turn out to ask for more
	till    time.Time     // when nothing of this matters any more
	held    []place
	queue   []waiter
}

type place struct {
	turn string
	till time.Time
}

type waiter struct {
	turn string
	kind turns.Kind
	due  time.Time
	wake chan struct{}
}

const grace = 250 * time.Millisecond

// Forget is what a server does that starts anew.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origins = nil
}

// Take implements turns.Store.
func (s *Store) Take(ctx context.Context, key string, a turns.Ask) (answer turns.Reply, err error) {
	err = s.do(ctx, key, a.Turn, func(o *origin) { answer = o.take(a, time.Now()) })
	return answer, err
}

// Tell implements turns.Store.
func (s *Store) Tell(ctx context.Context, key string, n turns.Report) error {
	return s.do(ctx, key, n.Turn, func(o *origin) { o.tell(n, time.Now()) })
}

func (s *Store) do(ctx context.Context, key, turn string, f func(*origin)) error {
	fault := s.Fault
	if fault == nil {
		fault = func(ctx context.Context, _ string, _ bool) error { return ctx.Err() }
	}
	if err := fault(ctx, key, false); err != nil {
		return err
	}
	s.mu.Lock()
	f(s.origin(key, turn))
	s.mu.Unlock()
	return fault(ctx, key, true)
}

// origin returns what is known of an origin, without what has lapsed.
func (s *Store) origin(key, turn string) *origin {
	if s.origins == nil {
		s.origins = map[string]*origin{}
	}
	now := time.Now()
	o := s.origins[key]
	if o == nil || !o.till.After(now) {
		o = new(origin)
		s.origins[key] = o
	}
	o.held = slices.DeleteFunc(o.held, func(p place) bool {
		if p.till.After(now) {
			return false
		}
		o.Last = rules.Later(o.Last, p.till) // its process died: the request may have gone on until then
		return true
	})
	o.queue = slices.DeleteFunc(o.queue, func(w waiter) bool { return w.turn != turn && !w.due.Add(grace).After(now) })
	return o
}

func (o *origin) take(a turns.Ask, now time.Time) turns.Reply {
	if a.Kind == turns.Robots {
		a.Delay = max(a.Delay, o.longest)
	}
	own, has := o.leave(a.Turn)
	at := o.placeOf(a, has)
	due, full := o.earliest(a, now)
	if has && !o.Last.After(own.till.Add(-a.Lease)) { // there was no request since
		due, full = rules.Later(now, o.Resume), false
	}
	if at == 0 && !full && !due.After(now) {
		o.Start(a.Kind, now)
		if a.Kind != turns.Visit {
			o.hold(a, now)
		}
		o.save(a, now)
		return turns.Reply{Taken: true, Strain: o.Strain}
	}
	if has {
		o.held = append(o.held, own) // it is perhaps not the answer that was lost, but a question that is late
	}
	w := waiter{a.Turn, a.Kind, o.expect(a, at, full, due, now), make(chan struct{})}
	o.queue = slices.Insert(o.queue, at, w)
	o.save(a, now)
	return turns.Reply{Strain: o.Strain, Pause: max(o.Resume.Sub(now), 0), Wait: w.due.Sub(now), Least: due.Sub(now), Wake: w.wake}
}

// placeOf takes a turn out of the queue. It returns its place there, or where it joins.
func (o *origin) placeOf(a turns.Ask, has bool) int {
	at := slices.IndexFunc(o.queue, func(w waiter) bool { return w.turn == a.Turn })
	if at >= 0 {
		o.queue = slices.Delete(o.queue, at, at+1)
	} else if at = slices.IndexFunc(o.queue, func(w waiter) bool { return rules.Rank(a.Kind) > rules.Rank(w.kind) }); at < 0 {
		at = len(o.queue)
	}
	if has {
		at = 0
	}
	return at
}

// expect returns when the one who waits at a place of the queue should ask again.
func (o *origin) expect(a turns.Ask, at int, full bool, due, now time.Time) time.Time {
	switch {
	case at > 0:
		ahead := o.queue[at-1].due
		due = rules.Later(due, ahead.Add(a.Delay))
		if !due.After(now) { // it is late, and may be dead
			due = ahead.Add(grace)
		}
	case full:
		first := slices.MinFunc(o.held, func(a, b place) int { return a.till.Compare(b.till) })
		due = rules.Later(due, first.till.Add(a.Delay))
	}
	return due
}

func (o *origin) tell(n turns.Report, now time.Time) {
	switch n.Event {
	case turns.Ended:
		o.leave(n.Turn)
		o.Last = now
	case turns.Dropped:
		o.leave(n.Turn)
		o.queue = slices.DeleteFunc(o.queue, func(w waiter) bool { return w.turn == n.Turn })
	case turns.Renewed:
		o.leave(n.Turn)
		o.hold(n.Ask, now)
	case turns.Failed, turns.Answered:
		o.Answered(n.Event == turns.Failed, n.Pause, n.Delay, now)
	}
	o.save(n.Ask, now)
}

// hold takes a place.
func (o *origin) hold(a turns.Ask, now time.Time) {
	if a.Places > 0 {
		o.held = append(o.held, place{a.Turn, now.Add(a.Lease)})
	}
}

// leave gives a place back, and returns it, if the turn has one.
func (o *origin) leave(turn string) (own place, has bool) {
	i := slices.IndexFunc(o.held, func(p place) bool { return p.turn == turn })
	if i < 0 {
		return own, false
	}
	own = o.held[i]
	o.held = slices.Delete(o.held, i, i+1)
	return own, true
}

// earliest is when the turn can come at best. If it has to wait for a place, one has to be given back first.
func (o *origin) earliest(a turns.Ask, now time.Time) (due time.Time, full bool) {
	o.Underway = len(o.held)
	from, full := o.From(a.Kind, a.Places, now)
	return rules.Later(rules.Later(now, from.Add(a.Delay)), o.Resume), full
}

// save keeps the state for as long as it matters.
func (o *origin) save(a turns.Ask, now time.Time) {
	o.tellFirst(a, now)
	o.longest = max(o.longest, a.Delay)
	if a.Keep > 0 {
		o.kept = rules.Later(o.kept, now.Add(a.Lease+a.Keep))
	}
	ends := []time.Time{o.Last.Add(o.longest), o.Granted.Add(o.longest), o.Resume, o.kept}
	if o.Strain > 0 {
		ends = append(ends, rules.Later(now, o.Resume).Add(2*o.Pause(o.longest)))
	}
	for _, p := range o.held {
		ends = append(ends, p.till.Add(o.longest))
	}
	for _, w := range o.queue {
		ends = append(ends, w.due.Add(grace))
	}
	o.till = slices.MaxFunc(ends, time.Time.Compare)
}

// tellFirst wakes the first who waits if it can go sooner than it was told.
func (o *origin) tellFirst(a turns.Ask, now time.Time) {
	if len(o.queue) == 0 {
		return
	}
	w := &o.queue[0]
	a.Kind = turns.Page
	if due, full := o.earliest(a, now); !full && due.Before(w.due.Add(-time.Millisecond)) {
		w.due = due
		wake := w.wake
		w.wake = make(chan struct{})
		time.AfterFunc(due.Sub(now), func() { close(wake) })
	}
}
