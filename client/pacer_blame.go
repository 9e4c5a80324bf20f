package client

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// mistake is an error that the caller has to answer for, or Base.
type mistake string

func (e mistake) Error() string { return string(e) }

// blames reports whether a request that failed says something about the site: not where
// its caller gave up, or where it could not have been sent whatever the site does. Reading
// tells of a body that could not be read. That a Base names the caller's mistakes by a type
// of its own is not to be had: net/http has no types for them.
func blames(req *http.Request, reading *reading, err error) bool {
	select {
	//lint:ignore SA1019 http.Client.Timeout still closes it, perhaps before the context ends
	case <-req.Cancel: // nil: never
		return false
	default:
	}
	_, ours := err.(mistake)
	return !ours && req.Context().Err() == nil && !reading.failed() && sendable(req)
}

// sendable reports whether net/http would begin to send req.
func sendable(req *http.Request) bool {
	for name := range req.Trailer { // RFC 9110 §6.5.1
		switch http.CanonicalHeaderKey(name) {
		case "Content-Length", "Trailer", "Transfer-Encoding":
			return false
		}
	}
	return req.Header != nil && sendableFields(req.Header) && sendableFields(req.Trailer) &&
		(req.Method == "" || httpguts.ValidHeaderFieldName(req.Method)) && // a token, like a name
		(req.Body != nil || req.ContentLength == 0) &&
		!strings.ContainsFunc(req.URL.RequestURI(), func(r rune) bool { return r < ' ' || r == 0x7f })
}

func sendableFields(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return true
}

// reading watches how the body of a request is read, since the error of a RoundTrip does
// not tell a body that fails from a connection that does. A nil reading has nothing to
// watch.
type reading struct {
	length int64 // Request.ContentLength
	faulty atomic.Bool
}

func (r *reading) failed() bool { return r != nil && r.faulty.Load() }

// watchBody is req with a body that is watched: a copy, if there is a body.
func watchBody(req *http.Request) (*http.Request, *reading) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	r := &reading{length: req.ContentLength}
	out := shallowCopy(req, req)
	out.Body = &watchedBody{ReadCloser: req.Body, reading: r}
	if again := req.GetBody; again != nil {
		out.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				r.faulty.Store(true)
				return nil, err
			}
			return &watchedBody{ReadCloser: body, reading: r}, nil
		}
	}
	return out, r
}

// watchedBody is the body of a request, up to its Close: what is read of it after that,
// because the connection has failed, is no fault of the body.
type watchedBody struct {
	io.ReadCloser
	reading *reading
	n       int64 // what was read
	closed  atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	fails := err != nil && err != io.EOF
	short := err == io.EOF && b.n < b.reading.length
	long := b.reading.length > 0 && b.n > b.reading.length
	if (fails || short || long) && !b.closed.Load() {
		b.reading.faulty.Store(true)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}
