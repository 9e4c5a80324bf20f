package cache

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

// mark says that an origin had rules, when they came and until when they were to be kept. It stands for rules that a
// Store may not have (no-store), that are too long for it, or that it did not take: a status of the moment does not
// permit what they forbid. The zero mark is none. One that has ended says that there are no rules any more.
type mark struct {
	Received time.Time `json:"received"`
	Until    time.Time `json:"rules_until"`
}

// debts are the marks that a Store is owed, for rules that it did not take.
type debts struct {
	mu   sync.Mutex // guards what follows
	owed map[string]*debt
	busy bool // a goroutine pays them
}

type debt struct {
	mark
	paying bool // a write of it, or of the rules themselves, is under way
}

// owe notes a mark of the rules of a key, until they are written. The zero mark removes it.
func (d *debts) owe(key string, m mark) *debt {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.owed, key)
	if m == (mark{}) || len(d.owed) >= maxOwed {
		return nil
	}
	o := &debt{mark: m, paying: true}
	d.owed[key] = o
	return o
}

func (d *debts) owes(key string) mark {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.owed[key]; o != nil {
		return o.mark
	}
	return mark{}
}

// next hands out a debt to be paid.
func (d *debts) next() (key string, o *debt) {
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
func (d *debts) paid(key string, o *debt, err error) (others bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o != nil {
		if o.paying = false; err == nil && d.owed[key] == o {
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

// pay writes all that is owed, until something fails. The error says what is left.
func (b *backing) pay(ctx context.Context) error {
	var paying errgroup.Group
	for range payers {
		paying.Go(func() error {
			for key, o := b.debts.next(); o != nil; key, o = b.debts.next() {
				err := error(errDown)
				if b.writes.enter(ctx, writeTimeout) {
					err = b.payOne(ctx, key, o.mark)
					b.writes.leave()
				}
				if b.debts.paid(key, o, err); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := paying.Wait()
	b.debts.mu.Lock()
	defer b.debts.mu.Unlock()
	if b.debts.busy = false; err != nil {
		return fmt.Errorf("cache: marks of %d origins are not in the store: %w", len(b.debts.owed), err)
	}
	return nil
}

// payOne writes a mark, unless the Store has something newer. It also asks a Store that is left alone.
func (b *backing) payOne(ctx context.Context, key string, m mark) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	data, err := b.store.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrMiss) {
		return err
	}
	if rec, _, err := decodeRecord(key, data); err == nil && !m.Received.After(rec.received()) {
		return nil
	}
	data, err = m.record(key).encode(nil)
	if err != nil {
		return err
	}
	return b.store.Put(ctx, key, data, max(time.Until(m.Until), time.Minute))
}
