package main

import (
	"context"
	"net/url"
	"sync"
	"time"
)

// frontier holds the URLs that are still to be visited, each once. It gives out the one
// whose site is free first: no worker stands in line for a slow site while another site
// could be asked.
type frontier struct {
	mu    sync.Mutex // guards what follows
	more  *sync.Cond // on mu: a URL came, a turn came, or the last visit ended
	queue []*url.URL
	free  map[string]time.Time // when to ask for the turn of a host, as a client.LateError said; zero: at once
	seen  map[string]bool
	busy  int // visits that may still find links
}

func newFrontier(start *url.URL) *frontier {
	f := &frontier{queue: []*url.URL{start}, free: map[string]time.Time{}, seen: map[string]bool{start.String(): true}}
	f.more = sync.NewCond(&f.mu)
	return f
}

// next waits for a URL whose site is free. It returns false when there will be none, or
// when ctx ends.
func (f *frontier) next(ctx context.Context) (*url.URL, bool) {
	defer context.AfterFunc(ctx, f.wake)()
	f.mu.Lock()
	defer f.mu.Unlock()
	for ctx.Err() == nil && (len(f.queue) > 0 || f.busy > 0) {
		i, wait := f.first()
		if i >= 0 && wait <= 0 {
			u := f.queue[i]
			f.queue = append(f.queue[:i], f.queue[i+1:]...)
			f.busy++
			return u, true
		}
		f.sleep(i >= 0, wait)
	}
	return nil, false
}

// sleep waits for news, and for no longer than wait if there is a turn to wait for.
func (f *frontier) sleep(turn bool, wait time.Duration) {
	if turn {
		defer time.AfterFunc(wait, f.wake).Stop()
	}
	f.more.Wait()
}

// wake takes the lock so that it comes before or after a look at the queue, not between the
// look and the sleep.
func (f *frontier) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.more.Broadcast()
}

// first returns the place of the URL that may be asked for first, and how long until
// then; -1 if there is none. A crawler of many pages keeps a queue per site.
func (f *frontier) first() (place int, wait time.Duration) {
	place = -1
	for i, u := range f.queue {
		if d := time.Until(f.free[u.Host]); place < 0 || d < wait {
			place, wait = i, max(d, 0)
		}
	}
	return place, wait
}

// later puts a URL back whose site is not free until then.
func (f *frontier) later(u *url.URL, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free[u.Host] = until
	f.queue = append(f.queue, u)
	f.end()
}

// done ends a visit that found links.
func (f *frontier) done(links []*url.URL) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range links {
		if !f.seen[u.String()] {
			f.seen[u.String()] = true
			f.queue = append(f.queue, u)
		}
	}
	f.end()
}

// end is called with mu held.
func (f *frontier) end() {
	f.busy--
	f.more.Broadcast()
}

func (f *frontier) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) + f.busy
}
