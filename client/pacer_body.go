package client

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// pacedBody is a response body that gives its request's place back when it is closed,
// read to its end, fails, or the request's context ends (then net/http has closed the
// connection, so that nothing is under way even if the caller forgets to close).
type pacedBody struct {
	io.ReadCloser
	pacer *Pacer
	lane  *lane
	once  sync.Once   // gives the place back
	stop  func() bool // ends the watch on the context
}

// pacedStream is the body of a 101 answer, which is the connection itself: it can be
// written to as well (net/http documents io.Writer for it).
type pacedStream struct {
	*pacedBody
	io.Writer
}

// holdPlace wraps body, so that the place at l is held until the body is done with.
func (p *Pacer) holdPlace(ctx context.Context, l *lane, body io.ReadCloser) io.ReadCloser {
	b := &pacedBody{ReadCloser: body, pacer: p, lane: l}
	b.stop = context.AfterFunc(ctx, b.over)
	if w, ok := body.(io.Writer); ok {
		return &pacedStream{b, w}
	}
	return b
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *pacedBody) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// WriteTo leaves the way to copy to what is wrapped and to w, as io.Copy would have it
// without us.
func (b *pacedBody) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, b.ReadCloser)
	b.done()
	return n, err
}

func (b *pacedBody) done() {
	b.stop()
	b.over()
}

func (b *pacedBody) over() {
	b.once.Do(func() { b.pacer.end(b.lane) })
}

// CloseWrite ends our half of an upgraded connection, where net/http can.
func (s *pacedStream) CloseWrite() error {
	if c, ok := s.ReadCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
