package turnstest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

func TestAStoreInMemoryPasses(t *testing.T) {
	Test(t, func(*testing.T) (a, b turns.Store) {
		m := new(Memory)
		return m, m
	})
}

// wrong is a Store with a fault: in the times that it keeps, in what goes in, or in what comes out.
type wrong struct {
	Memory
	apart                 bool                             // b is a Store of its own
	before                func(k *times, d *time.Duration) // Reserve
	pauses                func(k *times, d *time.Duration) // before Pause
	after                 func(k *times)                   // either
	key                   func(string) string
	never                 chan struct{} // ends
	deaf                  bool          // to the context
	punctual              bool          // late is part of the delay
	within, least, longer time.Duration
}

func (w *wrong) Reserve(ctx context.Context, key string, delay, late, within time.Duration) (time.Duration, bool, error) {
	ctx, key = w.change(ctx, key)
	if w.before != nil {
		w.before(w.at(key), &delay)
	}
	if w.punctual {
		delay, late = delay+late, 0
	}
	wait, ok, err := w.Memory.Reserve(ctx, key, delay, late, within+w.within)
	if w.after != nil {
		w.after(w.at(key))
	}
	return max(wait, w.least), ok, err
}

func (w *wrong) Pause(ctx context.Context, key string, d time.Duration) (time.Duration, error) {
	ctx, key = w.change(ctx, key)
	if w.pauses != nil {
		w.pauses(w.at(key), &d)
	}
	rest, err := w.Memory.Pause(ctx, key, d)
	if w.after != nil {
		w.after(w.at(key))
	}
	return rest + w.longer, err
}

func (w *wrong) change(ctx context.Context, key string) (context.Context, string) {
	if w.never != nil {
		<-w.never
	}
	if w.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	if w.key != nil {
		key = w.key(key)
	}
	return ctx, key
}

// copy is a Store with the same fault, and nothing kept.
func (w *wrong) copy() *wrong {
	return &wrong{before: w.before, pauses: w.pauses, after: w.after, key: w.key, deaf: w.deaf, punctual: w.punctual, within: w.within, least: w.least, longer: w.longer}
}

// at is for one goroutine at a time: the claim of those that ask at once has no such fault.
func (w *wrong) at(key string) *times {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times(key)
}

// A machine may be so busy that a sleep takes longer.
func TestABusyMachineChangesNoResult(t *testing.T) {
	for _, c := range claims {
		c.steps = slices.Clone(c.steps)
		for i := range c.steps {
			if c.steps[i].call == sleep {
				c.steps[i].d += 2 * s
			}
		}
		synctest.Test(t, func(t *testing.T) {
			m := new(Memory)
			if err := c.holds(t.Context(), "key", m, m); err != nil {
				t.Errorf("%s: got %v, want no error", c.name, err)
			}
		})
	}
}

func TestEveryFaultIsFound(t *testing.T) {
	for name, w := range map[string]*wrong{
		"each process has its own":   {apart: true},
		"no delay":                   {before: func(_ *times, d *time.Duration) { *d = 0 }},
		"a shorter delay":            {before: func(_ *times, d *time.Duration) { *d -= *d / 10 }},
		"a longer delay":             {before: func(_ *times, d *time.Duration) { *d += *d / 10 }},
		"a delay of an hour at most": {before: func(_ *times, d *time.Duration) { *d = min(*d, time.Hour) }},
		"a delay of seconds":         {before: func(_ *times, d *time.Duration) { *d = d.Truncate(time.Second) }},
		"last is not kept":           {before: func(k *times, _ *time.Duration) { k.last = time.Time{} }},
		"next is not kept":           {before: func(k *times, _ *time.Duration) { k.next = time.Time{} }},
		"the pause is not kept":      {before: func(k *times, _ *time.Duration) { k.resume = time.Time{} }},
		"a pause shortens another": {pauses: func(k *times, d *time.Duration) {
			if *d > 0 {
				k.resume = time.Time{}
			}
		}},
		"a pause never grows": {pauses: func(k *times, d *time.Duration) {
			if !k.resume.IsZero() {
				*d = 0
			}
		}},
		"a question ends the pause": {pauses: func(k *times, d *time.Duration) {
			if *d == 0 {
				k.resume = time.Time{}
			}
		}},
		"pauses add up": {pauses: func(k *times, d *time.Duration) {
			if *d > 0 {
				*d += max(time.Until(k.resume), 0)
			}
		}},
		"a pause is a start": {pauses: func(k *times, d *time.Duration) {
			if *d > 0 {
				k.last = time.Now().Add(*d)
			}
		}},
		"the rest of a pause that is over": {longer: 10 * time.Millisecond},
		"forgotten when the delay has passed": {before: func(k *times, _ *time.Duration) {
			if k.next.Before(time.Now()) {
				k.last = time.Time{}
			}
		}},
		"forgotten after a second": {before: func(k *times, _ *time.Duration) {
			if time.Since(k.last) > time.Second && time.Since(k.resume) > 0 {
				*k = times{}
			}
		}},
		"a pause of a second at most": {pauses: func(k *times, _ *time.Duration) {
			if time.Until(k.resume) < 2*time.Second {
				k.resume = time.Time{}
			}
		}},
		"unused time is saved up": {after: func(k *times) {
			if s := time.Now().Add(-time.Second); k.next.Before(s) {
				k.next = s
			}
		}, before: func(k *times, _ *time.Duration) {
			if !k.last.IsZero() && k.next.Before(time.Now()) {
				k.last = k.last.Add(-time.Hour)
				k.next = time.Time{}
			}
		}},
		"reserved beyond within":      {within: time.Hour},
		"within is a second at least": {within: 10 * time.Second},
		"nothing is free at once":     {least: 10 * time.Millisecond},
		"late is part of the delay":   {punctual: true},
		"one key":                     {key: func(string) string { return "" }},
		"keys without braces":         {key: strings.NewReplacer("{", "", "}", "").Replace},
		"keys of valid text":          {key: func(k string) string { return strings.ToValidUTF8(k, "") }},
		"keys of 200 bytes":           {key: func(k string) string { return k[:min(200, len(k))] }},
		"calls go on":                 {never: make(chan struct{})},
		"calls know no context":       {deaf: true},
	} {
		t.Run(name, func(t *testing.T) {
			found := slices.ContainsFunc(claims, func(c claim) (found bool) {
				synctest.Test(t, func(t *testing.T) {
					a, b := w.copy(), w.copy()
					if !w.apart {
						b = a
					}
					if w.never != nil {
						if c.name != "calls end with their context" {
							return // would go on for ever
						}
						a.never = make(chan struct{})
						defer close(a.never)
					}
					found = c.holds(t.Context(), "key", a, b) != nil
				})
				return found
			})
			if !found {
				t.Error("no test of the suite finds it")
			}
		})
	}
}
