package web

// Clients at their own pace: what they send and take has a deadline for each piece.

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/semaphore"
)

// Paced writes to a client that may take so long for each piece. Without a deadline of each, an answer that
// is long and a client that is slow could not be told from one that stalls.
type Paced struct {
	http.ResponseWriter
	Patience time.Duration
}

func (p *Paced) Write(b []byte) (int, error) {
	http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.Patience))
	return p.ResponseWriter.Write(b)
}

func (p *Paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// CloseIfUnread has the connection close after the answer, unless the body has been read to its end by then. net/http
// would read what is left of it first, and a client that waits for the answer may send no more. Left on a connection
// that goes on, it would pass for the next request (RFC 9112 §9.3).
func CloseIfUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
		r.Body = &unread{r.Body, w.Header()}
	}
}

type unread struct {
	io.ReadCloser
	answer http.Header
}

func (u *unread) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err == io.EOF {
		u.answer.Del("Connection")
	}
	return n, err
}

// Duplex is a request whose body is read while the answer is written. Neither may stall for longer than
// Patience: a client that does loses its connection. One goroutine may read while another writes.
type Duplex struct {
	Request  *http.Request
	Writer   http.ResponseWriter
	Patience time.Duration
	Ends     context.Context // the body ends with it, as a failure

	control *http.ResponseController
	cause   atomic.Pointer[error]
}

// Start must be called before Read and Write. The function that it returns ends what it began.
func (d *Duplex) Start() (stop func() bool) {
	d.control = http.NewResponseController(d.Writer)
	d.control.EnableFullDuplex() // HTTP/2 has no need of it, and says so
	if u, ok := d.Request.Body.(*unread); ok {
		u.answer.Del("Connection")
		d.Request.Body = u.ReadCloser
	}
	return context.AfterFunc(d.Ends, func() { d.control.SetReadDeadline(time.Now()) })
}

// Read sets the deadline before it looks at Ends, so that it cannot put off the one that Start sets when Ends ends.
func (d *Duplex) Read(p []byte) (n int, err error) {
	d.control.SetReadDeadline(time.Now().Add(d.Patience))
	if err = d.Ends.Err(); err == nil {
		n, err = d.Request.Body.Read(p)
	}
	if err == io.EOF {
		d.control.SetReadDeadline(time.Time{}) // net/http goes on reading, to see a client that hangs up
		// RFC 9110 §6.5.1. To a program that takes trailers for fields, Host there would name another site.
		maps.DeleteFunc(d.Request.Trailer, func(name string, _ []string) bool { return !httpguts.ValidTrailerHeader(name) })
	}
	if err != nil {
		d.cause.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Cause is why reading ended, or nil.
func (d *Duplex) Cause() error {
	if err := d.cause.Load(); err != nil {
		return *err
	}
	return nil
}

// Close does nothing: what is left of the body may still have to be read, and the server closes it.
func (d *Duplex) Close() error { return nil }

// Write writes to the answer, and sends it: the client may wait for it before it sends more.
func (d *Duplex) Write(p []byte) (int, error) {
	d.control.SetWriteDeadline(time.Now().Add(d.Patience))
	n, err := d.Writer.Write(p)
	if err != nil {
		return n, err
	}
	return n, d.control.Flush()
}

// Places bound how many there are of something at a time: their capacity is the most, and their length what is taken.
type Places chan struct{}

// Take takes a place, which Free gives back. It does not wait: it reports whether there was one.
func (p Places) Take() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p Places) Free() { <-p }

// Memory admits by bytes, since their number is a stranger's choice. What is taken has to be given back by Release.
type Memory struct {
	left *semaphore.Weighted
	held atomic.Int64
	idle *time.Timer // gives memory back to the system: without work, nothing else collects for two minutes
}

// NewMemory returns a Memory of so many bytes.
func NewMemory(most int64) *Memory {
	m := &Memory{left: semaphore.NewWeighted(most), idle: time.AfterFunc(time.Hour, debug.FreeOSMemory)}
	m.idle.Stop()
	return m
}

// Take waits, in the order of the calls, until n bytes are left, or for ctx. Their holder must not wait for a client.
func (m *Memory) Take(ctx context.Context, n int64) error {
	err := m.left.Acquire(ctx, n)
	if err == nil {
		m.held.Add(n)
	}
	return err
}

// TryTake takes n bytes and does not wait: it reports whether so much is left. They may be held for as long as a client
// takes.
func (m *Memory) TryTake(n int64) bool {
	ok := m.left.TryAcquire(n)
	if ok {
		m.held.Add(n)
	}
	return ok
}

func (m *Memory) Release(n int64) {
	m.left.Release(n)
	if m.held.Add(-n) == 0 {
		m.idle.Reset(time.Second)
	}
}

// Buffer holds what a client sends or takes, in memory of Room. It has to be released.
type Buffer struct {
	Room  *Memory
	Bytes []byte

	taken int64
}

const piece = 32 << 10

var ErrFull = errors.New("too much is being sent or taken")

// Write appends p, or returns ErrFull. What grows may need its length twice.
func (b *Buffer) Write(p []byte) (int, error) {
	for b.taken < 2*int64(len(b.Bytes)+len(p)) {
		if !b.Room.TryTake(piece) {
			return 0, ErrFull
		}
		b.taken += piece
	}
	b.Bytes = append(b.Bytes, p...)
	return len(p), nil
}

// Release forgets all of it. It may be called twice.
func (b *Buffer) Release() {
	b.Room.Release(b.taken)
	b.taken, b.Bytes = 0, nil
}
