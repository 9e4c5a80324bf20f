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

// withTurns returns a context for a Fetch that is paced, as package client does. Fetch calls check
// right before each request: an error means that the turn is lost, perhaps because the process was
// stopped. Before each further request it calls next, with its URL and the status that redirected
// to it, or 0 for a retry; next waits for its turn, at most until the given time. If either returns
// an error, the request is not sent. Fetch does not call next when it repeats a request at once because
// its validators brought a 304 or 412 of no use. withTurns is exported for package client, which has
// the Pacer; programs do not need it.
func withTurns(ctx context.Context, check func() error, next func(u *url.URL, status int, until time.Time) error) context.Context {
	return context.WithValue(ctx, turnsKey{}, turns{check, next})
}

// turnsOf returns what withTurns was given, or what lets all be sent.
func turnsOf(ctx context.Context) turns {
	if t, ok := ctx.Value(turnsKey{}).(turns); ok {
		return t
	}
	return turns{func() error { return nil }, func(*url.URL, int, time.Time) error { return nil }}
}
