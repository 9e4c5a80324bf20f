package client

import (
	"context"
	"errors"
)

// ErrClosed is what RoundTrip, Decide and Lookup return after Close. (Where a Cache that
// was given to the Transport is closed first, they return cache.ErrClosed.)
var ErrClosed = errors.New("client: the Transport is closed")

// Close ends the fetches of robots.txt that are under way, and the Transport: whatever
// is asked of it from then on, or waits for a robots.txt in its own Cache, ends with ErrClosed. Requests
// that were let through before go on, and those that wait for the Pacer get their turn:
// their contexts end them. The idle connections of Base are closed.
//
// Close waits for the fetches and for the hooks of Trace, but no longer than ctx; the
// error says which of them have not ended. It may then be called again, to wait longer: it
// returns nil only if nothing is left. When it has returned, no hook is called any more. It is
// not for hooks, which would wait for themselves. A Transport that is never closed leaves
// nothing behind but idle connections, either: its fetches end by themselves.
//
// A Cache that was given to the Transport is not closed, since others may share it: a
// fetch that is under way there ends by itself, and who waits for it still gets the
// answer. Close that Cache after its Transports, if it has a Store, which is then given
// all that it is due.
func (t *Transport) Close(ctx context.Context) error {
	defer t.CloseIdleConnections()
	t.closed.Store(true)
	g := t.ready()
	var err error
	if g.ownCache {
		err = g.cache.Close(ctx)
	}
	return errors.Join(err, g.hooks.end(ctx))
}

// CloseIdleConnections passes the call on to Base, as http.Client expects.
func (t *Transport) CloseIdleConnections() {
	g := t.ready()
	if c, ok := g.base.(interface{ CloseIdleConnections() }); ok && g.misuse == nil {
		c.CloseIdleConnections()
	}
}

// open is ready, until Close.
func (t *Transport) open() (*gate, error) {
	if t.closed.Load() {
		return nil, ErrClosed
	}
	return t.ready(), nil
}
