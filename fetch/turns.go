package fetch

import (
	"context"
	"net/url"
	"time"
)

type turns struct {
	check func() error
	next  func(u *url.URL, status int, until time.Time) error
}

type turnsKey struct{}

// WithTurns returns a context for a Fetch whose requests need turns, as package client has them.
// check is called right before each request, and returns why that must not be sent now: a process
// that was stopped after it got its turn has lost it. next waits, until a time, for the turn of a
// request for u that is part of the Fetch but not its first: what a redirect with some status leads
// to, or a retry (status 0). If it returns an error, the request is not sent.
func WithTurns(ctx context.Context, check func() error, next func(u *url.URL, status int, until time.Time) error) context.Context {
	return context.WithValue(ctx, turnsKey{}, turns{check, next})
}

// turnsOf returns what WithTurns was given, or what lets all be sent.
func turnsOf(ctx context.Context) turns {
	if t, ok := ctx.Value(turnsKey{}).(turns); ok {
		return t
	}
	return turns{func() error { return nil }, func(*url.URL, int, time.Time) error { return nil }}
}
