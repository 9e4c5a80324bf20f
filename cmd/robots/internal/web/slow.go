package web

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Duplex is a request whose body is read while the answer is written. Neither may stall for
// longer than Patience: a client that does loses its connection.
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
	return context.AfterFunc(d.Ends, func() { d.control.SetReadDeadline(time.Now()) })
}

// Read reads the body.
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

// Write writes to the answer, and sends it.
func (d *Duplex) Write(p []byte) (int, error) {
	d.control.SetWriteDeadline(time.Now().Add(d.Patience))
	n, err := d.Writer.Write(p)
	if err != nil {
		return n, err
	}
	return n, d.control.Flush()
}
