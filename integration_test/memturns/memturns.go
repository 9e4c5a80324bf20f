// Package memturns is a turns.Store in the memory of one process, for tests: what redisturns
// does in Redis, in Go.
package memturns

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

// Store implements turns.Store. The zero value is ready to use.
type Store struct {
	// Fault, if not nil, may fail or delay a call, or lose its answer (after).
	Fault func(ctx context.Context, origin string, after bool) error

	mu      sync.Mutex
	origins map[string]*origin
}

type origin struct {
	last, granted, resume time.Time
	strain                int
	longest               time.Duration // of all delays
	kept                  time.Time     // until when robots.txt may still turn out to ask for more
	till                  time.Time     // when nothing of this matters any more
	held                  []place
	queue                 []waiter
}

type place struct {
	turn string
	till time.Time
}

type waiter struct {
	turn string
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
func (s *Store) Take(ctx context.Context, key string, a turns.Ask) (turns.Reply, error) {
	if err := s.fault(ctx, key, false); err != nil {
		return turns.Reply{}, err
	}
	s.mu.Lock()
	answer := s.origin(key, a.Turn).take(a, time.Now())
	s.mu.Unlock()
	return answer, s.fault(ctx, key, true)
}

// Tell implements turns.Store.
func (s *Store) Tell(ctx context.Context, key string, n turns.Report) error {
	if err := s.fault(ctx, key, false); err != nil {
		return err
	}
	s.mu.Lock()
	s.origin(key, n.Turn).tell(n, time.Now())
	s.mu.Unlock()
	return s.fault(ctx, key, true)
}

func (s *Store) fault(ctx context.Context, key string, after bool) error {
	if s.Fault != nil {
		return s.Fault(ctx, key, after)
	}
	return ctx.Err()
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
		if lapsed := !p.till.After(now); !lapsed {
			return false
		}
		if p.till.After(o.last) {
			o.last = p.till
		}
		return true
	})
	o.queue = slices.DeleteFunc(o.queue, func(w waiter) bool { return w.turn != turn && !w.due.Add(grace).After(now) })
	return o
}

func (o *origin) take(a turns.Ask, now time.Time) turns.Reply {
	i := slices.IndexFunc(o.held, func(p place) bool { return p.turn == a.Turn })
	has := i >= 0
	var own place
	if has {
		own = o.held[i]
	}
	if a.Kind == turns.Robots {
		a.Delay = max(a.Delay, o.longest)
	}
	o.leave(a.Turn)
	at := slices.IndexFunc(o.queue, func(w waiter) bool { return w.turn == a.Turn })
	if at >= 0 {
		o.queue = slices.Delete(o.queue, at, at+1)
	}
	switch {
	case has || at < 0 && (a.Kind == turns.Visitor || a.Kind == turns.Robots):
		at = 0
	case at < 0:
		at = len(o.queue)
	}
	due := o.earliest(a.Delay, a.Kind == turns.Visitor, now)
	full := a.Kind != turns.Robots && o.full(a)
	if has && !o.last.After(own.till.Add(-a.Lease)) { // there was no request since
		due, full = now, false
		if o.resume.After(now) {
			due = o.resume
		}
	}
	if at == 0 && !full && !due.After(now) {
		if a.Kind == turns.Visit {
			o.granted = now
		} else if o.last = now; a.Places > 0 {
			o.held = append(o.held, place{a.Turn, now.Add(a.Lease)})
		}
		o.save(a, now)
		return turns.Reply{Taken: true, Strain: o.strain}
	}
	if has {
		o.held = append(o.held, own) // it is perhaps not the answer that was lost, but a question that is late
	}
	least := due
	if soonest := now.Add(a.Delay); full && soonest.After(due) {
		least = soonest
	}
	due = o.expect(a, at, full, due, now)
	w := waiter{a.Turn, due, make(chan struct{})}
	o.queue = slices.Insert(o.queue, at, w)
	o.save(a, now)
	return turns.Reply{Strain: o.strain, Pause: max(o.resume.Sub(now), 0), Wait: due.Sub(now), Least: least.Sub(now), Wake: w.wake}
}

// expect returns when the one who waits at a place of the queue should ask again.
func (o *origin) expect(a turns.Ask, at int, full bool, due, now time.Time) time.Time {
	switch {
	case at > 0:
		ahead := o.queue[at-1].due
		if next := ahead.Add(a.Delay); next.After(due) {
			due = next
		}
		if !due.After(now) { // it is late, and may be dead
			due = ahead.Add(grace)
		}
	case full:
		first := slices.MinFunc(o.held, func(a, b place) int { return a.till.Compare(b.till) })
		due = first.till.Add(a.Delay)
	}
	return due
}

func (o *origin) tell(n turns.Report, now time.Time) {
	switch n.Event {
	case turns.Ended:
		o.leave(n.Turn)
		o.last = now
	case turns.Dropped:
		o.leave(n.Turn)
		o.queue = slices.DeleteFunc(o.queue, func(w waiter) bool { return w.turn == n.Turn })
	case turns.Renewed:
		if o.leave(n.Turn); n.Places > 0 {
			o.held = append(o.held, place{n.Turn, now.Add(n.Lease)})
		}
	case turns.Failed:
		if n.Pause > 0 {
			o.pause(n.Pause, now)
			break
		}
		if o.unit(n.Delay) < time.Hour {
			o.strain++
		}
		o.pause(o.unit(n.Delay), now)
	case turns.Answered:
		if o.strain--; o.strain > 0 {
			o.pause(o.unit(n.Delay), now)
		}
		o.strain = max(o.strain, 0)
	}
	o.save(n.Ask, now)
}

func (o *origin) unit(delay time.Duration) time.Duration {
	return min(max(delay, time.Second)<<min(o.strain, 12), time.Hour)
}

func (o *origin) pause(d time.Duration, now time.Time) {
	if resume := now.Add(d); resume.After(o.resume) {
		o.resume = resume
	}
}

// leave gives a place back.
func (o *origin) leave(turn string) {
	o.held = slices.DeleteFunc(o.held, func(p place) bool { return p.turn == turn })
}

func (o *origin) full(a turns.Ask) bool { return a.Places > 0 && len(o.held) >= a.Places }

func (o *origin) earliest(delay time.Duration, visitor bool, now time.Time) time.Time {
	from := o.last
	if !visitor && o.granted.After(from) {
		from = o.granted
	}
	return slices.MaxFunc([]time.Time{now, from.Add(delay), o.resume}, time.Time.Compare)
}

// save keeps the state for as long as it matters.
func (o *origin) save(a turns.Ask, now time.Time) {
	o.tellFirst(a, now)
	o.longest = max(o.longest, a.Delay)
	if keep := now.Add(a.Lease + a.Keep); a.Keep > 0 && keep.After(o.kept) {
		o.kept = keep
	}
	ends := []time.Time{o.last.Add(o.longest), o.granted.Add(o.longest), o.resume, o.kept}
	if o.strain > 0 {
		ends = append(ends, now.Add(2*o.unit(o.longest)), o.resume.Add(2*o.unit(o.longest)))
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
	if len(o.queue) == 0 || o.full(a) {
		return
	}
	w := &o.queue[0]
	if due := o.earliest(a.Delay, false, now); due.Before(w.due.Add(-time.Millisecond)) {
		w.due = due
		wake := w.wake
		w.wake = make(chan struct{})
		time.AfterFunc(due.Sub(now), func() { close(wake) })
	}
}
