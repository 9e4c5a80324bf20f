package site

// Origins stands before a Gate for the length of a run of filter. A list is answered as one: an origin that
// was asked about once is not asked again, whatever its header says or however often it failed.

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Origins looks up the robots.txt of each origin once in a run, many at the same time. A result, even a
// failure, is kept until the run ends.
type Origins struct {
	run    cache.Cache // what this run has found out
	source cache.Source
	slots  *semaphore.Weighted // one for each lookup under way
	most   int64

	mu       sync.Mutex // guards what follows
	underway map[fetch.Origin]*Lookup
	done     int // lookups that have ended
	failures int // in failed

	failed sync.Map // of fetch.Origin to *fetch.Result: run may have no room for them, and each may take 30 s again
}

// Lookup is one that was begun.
type Lookup struct {
	Done    chan struct{} // closed when all that waited have the result
	since   time.Time
	waiters []Waiter // guarded by the mu of Origins
}

// Waiter is what waits for a result.
type Waiter interface{ Found(*fetch.Result) }

// Within waits until k is done, but no longer than ctx, and reports whether it is.
func (k *Lookup) Within(ctx context.Context) bool {
	select {
	case <-k.Done:
	case <-ctx.Done():
	}
	select {
	case <-k.Done: // even if both have come
		return true
	default:
		return false
	}
}

const maxFailed = 1 << 16 // some 30 MB

// BesideOrigins is what of the memory for rules is left to the Cache that is before the store. The two may hold the
// rules of different origins.
const BesideOrigins = 32 << 20

// NewOrigins returns origins that are looked up with find, in the --cache or over the network, at most so many at a time.
// A list may come back to an origin after a million lines, so the cache is larger than a crawler's. Beyond its bounds an
// origin is looked up again. It has no Store: that of --cache is behind find.
func NewOrigins(find func(context.Context, fetch.Origin) (*fetch.Result, time.Time, error), dialect policy.Dialect, most int) *Origins {
	const forTheRun = math.MaxInt64 // a Cache cuts it to a century
	load := func(ctx context.Context, o fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
		r, _, err := find(ctx, o)
		if err != nil && ctx.Err() == nil { // a Cache keeps no error, and the run would ask again
			r, err = &fetch.Result{Policy: policy.Unreachable(), Err: err, Time: time.Now()}, nil
		}
		return r, err
	}
	return &Origins{
		run: cache.Cache{
			MaxBytes: maxPolicies - BesideOrigins,
			MinTTL:   forTheRun,
		},
		source:   cache.Source{Load: load, Dialect: dialect},
		slots:    semaphore.NewWeighted(int64(most)),
		most:     int64(most),
		underway: map[fetch.Origin]*Lookup{},
	}
}

// Known returns the result of a lookup that has ended, or nil. It never waits.
func (s *Origins) Known(o fetch.Origin) *fetch.Result {
	if r, ok := s.failed.Load(o); ok {
		return r.(*fetch.Result)
	}
	r, _, _ := s.run.Get(context.Background(), o, &cache.Source{Dialect: s.source.Dialect})
	return r
}

// Start looks up o, unless that is under way or done. It waits for a slot. The lookup outlives ctx: an
// answer that is under way at an interruption need not be asked for in the next run. It calls w with the result, and is
// Done behind that; if it is nil, w was called. A result is held no longer: rules take up to 2 MB.
func (s *Origins) Start(ctx context.Context, o fetch.Origin, w Waiter) (*Lookup, error) {
	k, r := s.asked(o, false, w)
	if k == nil && r == nil {
		if err := s.slots.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		k, r = s.asked(o, true, w)
	}
	if r != nil {
		w.Found(r)
	}
	return k, nil
}

// asked returns what looks o up, or the result. If there is neither, it begins a lookup in a slot.
func (s *Origins) asked(o fetch.Origin, slot bool, w Waiter) (k *Lookup, r *fetch.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k = s.underway[o]; k == nil {
		r = s.Known(o)
	}
	switch {
	case slot && (k != nil || r != nil):
		s.slots.Release(1)
	case slot:
		k, o = &Lookup{Done: make(chan struct{}), since: time.Now()}, o.Clone() // o may hold on to the whole line
		s.underway[o] = k
		go s.find(o, k)
	}
	if k != nil {
		k.waiters = append(k.waiters, w)
	}
	return k, r
}

func (s *Origins) find(o fetch.Origin, k *Lookup) {
	defer close(k.Done)
	defer s.slots.Release(1)
	r, _, err := s.run.Get(context.Background(), o, &s.source) // has a deadline of its own
	if err != nil {
		r = &fetch.Result{Policy: policy.Unreachable(), Err: err}
	}
	s.mu.Lock()
	delete(s.underway, o)
	s.done++
	if r.Err != nil && s.failures < maxFailed {
		s.failures++
		s.failed.Store(o, r)
	}
	s.mu.Unlock()
	for _, w := range k.waiters {
		w.Found(r)
	}
	k.waiters = nil // a Lookup outlives them
}

// End waits for the lookups under way, but no longer than grace. What has ended by then is in the store.
// Nothing may Start any longer.
func (s *Origins) End(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	s.slots.Acquire(ctx, s.most) // an error says that some are still under way
}

// Progress returns how many lookups have ended and how many are under way, and the host of the oldest of these. Lookups
// start in the order of the lines, so the first line without an answer waits for that one.
func (s *Origins) Progress() (done, pending int, host string, waits time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, k := range s.underway {
		if d := time.Since(k.since); d > waits {
			host, waits = o.URLHost(), d
		}
	}
	return s.done, len(s.underway), host, waits
}
