// Package turn lets work that has to wait for its turn say so to who measures its time: to
// wait in a queue of our own is no fault of what the work is about.
package turn

import "context"

// Clock measures the work that a context is for.
type Clock interface {
	Queue() // the work has to wait for its turn
	Begin() // its turn has come: its time starts now
}

type key struct{}

// With returns a context whose work is measured by c.
func With(ctx context.Context, c Clock) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Of returns the clock of a context, or one that measures nothing.
func Of(ctx context.Context) Clock {
	if c, ok := ctx.Value(key{}).(Clock); ok {
		return c
	}
	return none{}
}

type none struct{}

func (none) Queue() {}
func (none) Begin() {}
