package main

import (
	"context"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// asker sees to it that each origin is asked for its robots.txt once, many at the same
// time, and never twice for an outage: an origin that could not be reached stays so
// for the run.
type asker struct {
	lookup func(context.Context, fetch.Origin) (*fetch.Result, error)
	slots  chan struct{} // one for each origin that may be asked at a time

	// work is the context of lookups. It outlives the caller's for a while, so that
	// an answer under way at an interruption is not asked for again in the next run.
	work    context.Context
	running sync.WaitGroup

	mu     sync.Mutex
	asks   map[fetch.Origin]*ask
	most   int  // bounds asks, but for those under way
	closed bool // no more lookups are to begin
}

// maxAsks is how many origins a run remembers to have asked. One that was forgotten
// costs one more look into the cache.
const maxAsks = 1 << 17

// ask is one origin's question. result is set once done is closed, and kept only if
// the origin is unreachable: any other lives in the cache, which is bounded in octets.
type ask struct {
	done   chan struct{}
	result *fetch.Result
}

// start asks o unless that was done before. It waits for a slot.
func (a *asker) start(ctx context.Context, o fetch.Origin) *ask {
	a.mu.Lock()
	k, known := a.asks[o]
	if !known {
		a.forget()
		k = &ask{done: make(chan struct{})}
		a.asks[o.Clone()] = k // o may hold on to the whole line
	}
	a.mu.Unlock()
	if known || ctx.Err() != nil { // select would take a slot as gladly
		return k
	}
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return k // never done; but everybody who waits for it has ctx too
	}
	if !a.begin() {
		<-a.slots
		return k
	}
	go func() {
		defer a.running.Done()
		defer func() { <-a.slots }()
		defer close(k.done)
		if r, err := a.lookup(a.work, o); err == nil && unreachable(r) {
			k.result = r
		}
	}()
	return k
}

// begin says whether a lookup may begin. If so, it must call running.Done.
func (a *asker) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.running.Add(1)
	}
	return !a.closed
}

// forget makes room for one more.
func (a *asker) forget() {
	if len(a.asks) < a.most {
		return
	}
	for o, k := range a.asks {
		select {
		case <-k.done:
			delete(a.asks, o)
		default:
		}
	}
}

// end lets no more lookups begin and waits for those under way, but not for longer
// than grace.
func (a *asker) end(grace time.Duration) {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		a.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(grace):
	}
}

func unreachable(r *fetch.Result) bool {
	return r.Policy.Reason() == policy.ReasonUnreachable
}
