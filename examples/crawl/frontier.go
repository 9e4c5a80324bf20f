package main

import (
	"net/url"
	"sync"
)

// frontier holds the URLs that are still to be visited, each once.
type frontier struct {
	mu    sync.Mutex // guards what follows
	more  *sync.Cond // on mu: a URL came, or the last visit ended
	queue []*url.URL
	seen  map[string]bool
	busy  int // visits that may still find links
}

func newFrontier(start string) *frontier {
	f := &frontier{seen: map[string]bool{}, busy: 1}
	f.more = sync.NewCond(&f.mu)
	u, err := url.Parse(start)
	if err != nil {
		f.done(nil)
		return f
	}
	f.done([]*url.URL{u})
	return f
}

// next waits for a URL. It returns false when there will be none.
func (f *frontier) next() (*url.URL, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) == 0 && f.busy > 0 {
		f.more.Wait()
	}
	if len(f.queue) == 0 {
		return nil, false
	}
	u := f.queue[0]
	f.queue = f.queue[1:]
	f.busy++
	return u, true
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
	f.busy--
	f.more.Broadcast()
}

func (f *frontier) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) + f.busy
}
