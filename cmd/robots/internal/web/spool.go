package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// Spool is where bytes lie until a client has sent them all, or has taken them: a client may be slow, and
// memory is no place to wait for it. What is long lies in a file, which has no name any more. A Spool is for
// one goroutine, and is written before it is read.
type Spool struct {
	room  *Memory  // of all spools, on disk
	taken []func() // a unit of it each
	size  int64
	tail  []byte // what is not in the file
	file  *os.File
}

const (
	spoolUnit = 256 << 10
	spoolTail = 32 << 10
)

// ErrFull tells that the spools have no room.
var ErrFull = errors.New("too much is being sent or taken")

// NewSpool returns an empty spool in room, or ErrFull. It has to be closed.
func NewSpool(room *Memory) (*Spool, error) {
	s := &Spool{room: room}
	return s, s.grow(1)
}

// grow takes room for n more bytes, in whole units: a spool of a few bytes takes one, so their number is
// bounded, too.
func (s *Spool) grow(n int) error {
	for s.size += int64(n); s.size > int64(len(s.taken))*spoolUnit; {
		release := s.room.TryTake(spoolUnit)
		if release == nil {
			return ErrFull
		}
		s.taken = append(s.taken, release)
	}
	return nil
}

// Write appends p. With ErrFull nothing of p is kept, and the spool can only be closed.
func (s *Spool) Write(p []byte) (int, error) {
	if err := s.grow(len(p)); err != nil {
		return 0, err
	}
	if len(s.tail)+len(p) > spoolTail {
		if err := s.flush(); err != nil {
			return 0, err
		}
		if len(p) >= spoolTail {
			return s.file.Write(p)
		}
	}
	s.tail = append(s.tail, p...)
	return len(p), nil
}

// flush writes what is not in the file yet.
func (s *Spool) flush() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "robots-serve-"); err != nil {
			return err
		}
		os.Remove(s.file.Name()) // it lives until it is closed
	}
	_, err = s.file.Write(s.tail)
	s.tail = s.tail[:0]
	return err
}

// Size is how many bytes have been written.
func (s *Spool) Size() int64 { return s.size - 1 } // it begins with 1

// Reader returns what has been written from a place on. It may be called again, for another place.
func (s *Spool) Reader(from int64) (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.tail[from:]), nil
	}
	err := s.flush()
	return io.NewSectionReader(s.file, from, s.Size()-from), err
}

// Close forgets all of it, and gives its room back. It may be called twice.
func (s *Spool) Close() {
	if s.file != nil {
		s.file.Close()
	}
	for _, release := range s.taken {
		release()
	}
	s.taken = nil
}

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

// Unwrap is for http.ResponseController.
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

// Read sets the deadline before it looks at Ends, so that it cannot put off the one that Start sets when Ends
// ends.
func (d *Duplex) Read(p []byte) (int, error) {
	d.control.SetReadDeadline(time.Now().Add(d.Patience))
	if err := d.Ends.Err(); err != nil {
		return 0, err
	}
	n, err := d.Request.Body.Read(p)
	if err == io.EOF { // net/http goes on reading, to see a client that hangs up
		d.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Write writes to the answer, and sends it: the client may wait for it before it sends more.
func (d *Duplex) Write(p []byte) (int, error) {
	d.control.SetWriteDeadline(time.Now().Add(d.Patience))
	n, err := d.Writer.Write(p)
	if err != nil {
		return n, err
	}
	return n, d.control.Flush()
}
