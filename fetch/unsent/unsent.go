// Package unsent stops requests that must not be sent any more. A process that takes turns with others may be
// stopped between getting its turn and sending its request, and another then has the turn.
//
// It is for package client, which takes the turns, and package fetch, which sends requests of its own.
package unsent

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"net/url"
	"time"
)

// Check returns why a request must not be sent now, or nil. A nil Check lets all be sent.
type Check func() error

// Err is the Check.
func (c Check) Err() error {
	if c == nil {
		return nil
	}
	return c()
}

// Turn waits, until a time, for the turn of a request for u that is part of a fetch but not its first: what a
// redirect with some status leads to, or a retry (status 0). The error says that it may not be sent.
type Turn func(u *url.URL, status int, until time.Time) error

type key struct{}

type turnKey struct{}

// WithTurn returns a context for what sends several requests, such as a fetch.Fetcher.
func WithTurn(ctx context.Context, t Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// TurnOf returns what WithTurn was given, or what lets all be sent.
func TurnOf(ctx context.Context) Turn {
	if t, ok := ctx.Value(turnKey{}).(Turn); ok {
		return t
	}
	return func(*url.URL, int, time.Time) error { return nil }
}

// With returns a context for what sends requests of its own, such as a fetch.Fetcher.
func With(ctx context.Context, c Check) context.Context { return context.WithValue(ctx, key{}, c) }

// CheckOf returns what With was given, or nil.
func CheckOf(ctx context.Context) Check {
	c, _ := ctx.Value(key{}).(Check)
	return c
}

// Guard returns the context of a request that is not sent if c fails when net/http has the connection, right
// before it writes; cancel then ends it.
func Guard(ctx context.Context, cancel func(error), c Check) context.Context {
	if c == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		err := c()
		if err == nil {
			return
		}
		cancel(err)
		// HTTP/2 looks at the context before it writes. HTTP/1 writes first.
		if c, ok := got.Conn.(*tls.Conn); !ok || c.ConnectionState().NegotiatedProtocol != "h2" {
			got.Conn.Close()
		}
	}})
}
