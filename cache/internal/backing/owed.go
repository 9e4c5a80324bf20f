package backing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	maxOwed = 10_000 // marks, of some 150 bytes
	payers  = 16     // that write them at a time
)

// Mark says that an origin had rules, when they came and until when they were to be kept. It stands for rules that a
// Store may not have (no-store), that are too long for it, or that it did not take: a status of the moment does not
// permit what they forbid. The zero mark is none. One that has ended says that there are no rules any more.
type Mark struct {
	Received time.Time `json:"received"`
	Until    time.Time `json:"rules_until"`
}

// debts are the marks that a Store is owed, for rules that it did not take.
type debts struct {
	mu   sync.Mutex // guards what follows
	owed map[string]*Debt
	busy bool // a goroutine pays them
}

// Debt is a mark that is owed.
type Debt struct {
	Mark
	paying bool // a write of it, or of the rules themselves, is under way
}

// Owe notes a mark of the rules of a key, until they are written. The zero mark removes it.
func (d *debts) Owe(key string, m Mark) *Debt {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.owed, key)
	if m == (Mark{}) || len(d.owed) >= maxOwed {
		return nil
	}
	o := &Debt{Mark: m, paying: true}
	d.owed[key] = o
	return o
}

// Owes returns the mark that is owed, or the zero mark.
func (d *debts) Owes(key string) Mark {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.owed[key]; o != nil {
		return o.Mark
	}
	return Mark{}
}

// next hands out a debt to be paid.
func (d *debts) next() (key string, o *Debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, o = range d.owed {
		if !o.paying {
			o.paying = true
			return key, o
		}
	}
	return "", nil
}

// paid ends a debt, or takes it back after an error. Otherwise it reports whether to pay the others now.
func (d *debts) paid(key string, o *Debt, err error) (others bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o != nil {
		o.paying = false
		if err == nil && d.owed[key] == o {
			delete(d.owed, key)
		}
	}
	if err != nil || d.busy {
		return false
	}
	for _, o := range d.owed {
		d.busy = d.busy || !o.paying
	}
	return d.busy
}

// Pay writes all that is owed, until something fails. The error says what is left.
func (g *Guard) Pay(ctx context.Context) error {
	var paying errgroup.Group
	for range payers {
		paying.Go(func() error {
			for key, o := g.Debts.next(); o != nil; key, o = g.Debts.next() {
				err := error(errDown)
				if g.writes.enter(ctx) {
					err = g.payOne(ctx, key, o.Mark)
					g.writes.leave()
				}
				g.Debts.paid(key, o, err)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := paying.Wait()
	g.Debts.mu.Lock()
	defer g.Debts.mu.Unlock()
	g.Debts.busy = false
	if err != nil {
		return fmt.Errorf("cache: marks of %d origins are not in the store: %w", len(g.Debts.owed), err)
	}
	return nil
}

// payOne writes a mark, unless the Store has something newer. It also asks a Store that is left alone.
func (g *Guard) payOne(ctx context.Context, key string, m Mark) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	data, err := g.store.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrMiss) {
		return err
	}
	if rec, _, err := decode(key, data); err == nil && !m.Received.After(rec.received()) {
		return nil
	}
	return g.store.Put(ctx, key, m.Record(key).Encode(nil), max(time.Until(m.Until), time.Minute))
}
