// Package unsent stops requests that must not be sent any more. A process that takes turns with others may be
// stopped between getting its turn and sending its request, and another then has the turn.
package unsent

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
)

// Check returns why a request must not be sent now, or nil.
type Check func() error

type key struct{}

// With returns a context for what sends requests of its own, such as a fetch.Fetcher.
func With(ctx context.Context, c Check) context.Context { return context.WithValue(ctx, key{}, c) }

// CheckOf returns what With was given, or a Check that never fails.
func CheckOf(ctx context.Context) Check {
	if c, ok := ctx.Value(key{}).(Check); ok {
		return c
	}
	return func() error { return nil }
}

// Guard returns the context of a request that is not sent if c fails when net/http has the connection, right
// before it writes. The request is then cancelled, and no other cleanup is needed: cancel ends the context.
func Guard(ctx context.Context, cancel func(error), c Check) context.Context {
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
