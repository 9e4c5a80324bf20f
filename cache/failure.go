package cache

import (
	"slices"
	"sync"
)

// OnStoreFailure has f called for each call of the Store that fails: op is "get", "put"
// or "lock", origin is the key: fetch.Origin's String, perhaps with " as " and a hash. While a failing Store is left alone there
// are no calls, and so no failures. f runs where others wait, with no lock held: it must
// return soon, and not ask the Cache. Its panics are dropped. stop ends that.
//
// Logger hears only of the first of many failures; this is for those who count them.
func (c *Cache) OnStoreFailure(f func(op, origin string, err error)) (stop func()) {
	return c.failures.add(f)
}

// watchers are those who want to hear of each failure. The zero value has none.
type watchers struct {
	mu  sync.Mutex // guards all; what it holds is replaced, not changed
	all []*func(op, origin string, err error)
}

func (w *watchers) add(f func(op, origin string, err error)) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(slices.Clip(w.all), &f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = slices.DeleteFunc(slices.Clone(w.all), func(g *func(op, origin string, err error)) bool { return g == &f })
	}
}

func (w *watchers) tell(op, origin string, err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	all := w.all
	w.mu.Unlock()
	for _, f := range all {
		calm(func() { (*f)(op, origin, err) })()
	}
}

// calm returns f without its panics: of those who watch, and of locks that are given back,
// which run where a panic would end the process.
func calm(f func()) func() {
	return func() {
		defer func() { _ = recover() }()
		f()
	}
}
