package client

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/robotsgate/robotsgate/fetch"
	"golang.org/x/net/http/httpguts"
)

// blames reports whether a request that failed says something about the site. It does not
// if its caller gave up, or if it could not have been sent whatever the site does. body
// tells of a body that could not be read. net/http has no types for a caller's mistakes,
// so what a Base rejects for reasons of its own still counts.
func blames(req *http.Request, body *bodyWatch, err error) bool {
	select {
	//lint:ignore SA1019 http.Client.Timeout still closes it, perhaps before the context ends
	case <-req.Cancel: // nil: never
		return false
	default:
	}
	_, ours := err.(mistake)
	return !ours && req.Context().Err() == nil && !unsent(err) && !body.failed() && sendable(req)
}

// unsent reports whether err is of a request that this process did not send: it must not, or has no descriptor left.
func unsent(err error) bool {
	switch fetch.CauseOf(err) {
	case "destination_ip_prohibited", "proxy_configuration_error", "proxy_internal_error":
		return true
	}
	return false
}

// sendable reports whether net/http would begin to send req.
func sendable(req *http.Request) bool {
	for name := range req.Trailer { // RFC 9110 §6.5.1
		switch http.CanonicalHeaderKey(name) {
		case "Content-Length", "Trailer", "Transfer-Encoding":
			return false
		}
	}
	for _, h := range []http.Header{req.Header, req.Trailer} {
		for name, values := range h {
			if !httpguts.ValidHeaderFieldName(name) ||
				slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
				return false
			}
		}
	}
	return req.Header != nil &&
		(req.Method == "" || httpguts.ValidHeaderFieldName(req.Method)) && // a token, like a name
		(req.Body != nil || req.ContentLength == 0) &&
		!strings.ContainsFunc(req.URL.RequestURI(), func(r rune) bool { return r < ' ' || r == 0x7f })
}

// bodyWatch watches how the body of a request is read. The error of a RoundTrip does not
// tell a body that fails from a connection that does. A nil bodyWatch watches nothing.
type bodyWatch struct {
	length int64 // Request.ContentLength
	faulty atomic.Bool
}

func (r *bodyWatch) failed() bool { return r != nil && r.faulty.Load() }

// watchBody returns req with its body watched: a copy, if there is a body that may fail. Others reach Base as
// they are: it sends the header and such a body in one write, and files without copying them.
func watchBody(req *http.Request) (*http.Request, *bodyWatch) {
	if !hasBody(req) {
		return req, nil
	}
	if n, ok := knownLength(req.Body); ok {
		r := new(bodyWatch)
		r.faulty.Store(req.ContentLength > 0 && req.ContentLength != n)
		return req, r
	}
	r := &bodyWatch{length: req.ContentLength}
	out := shallowCopy(req, req)
	out.Body = &watchedBody{ReadCloser: req.Body, watch: r}
	if again := req.GetBody; again != nil {
		out.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				r.faulty.Store(true)
				return nil, err
			}
			return &watchedBody{ReadCloser: body, watch: r}, nil
		}
	}
	return out, r
}

// What io.NopCloser makes of a reader, without WriteTo and with.
var nopCloser, nopCloserWriterTo = reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(new(bytes.Reader)))

// knownLength returns how much a body has that cannot fail, or fails for reasons that no Read tells: one in
// memory, or a file.
func knownLength(body io.ReadCloser) (n int64, ok bool) {
	if f, ok := body.(*os.File); ok {
		info, err := f.Stat()
		at, seek := f.Seek(0, io.SeekCurrent)
		if err != nil || seek != nil || !info.Mode().IsRegular() {
			return 0, false
		}
		return info.Size() - at, true
	}
	if t := reflect.TypeOf(body); t != nopCloser && t != nopCloserWriterTo {
		return 0, false
	}
	switch r := reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		return int64(r.(interface{ Len() int }).Len()), true
	}
	return 0, false
}

// watchedBody is the body of a request, up to its Close. What is read after that, because
// the connection has failed, is no fault of the body.
type watchedBody struct {
	io.ReadCloser
	watch  *bodyWatch
	n      int64 // what was read
	closed atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	fails := err != nil && err != io.EOF
	short := err == io.EOF && b.n < b.watch.length
	long := b.watch.length > 0 && b.n > b.watch.length
	if (fails || short || long) && !b.closed.Load() {
		b.watch.faulty.Store(true)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// shallowCopy returns a copy of req, or out if that is one already.
func shallowCopy(out, req *http.Request) *http.Request {
	if out == req {
		out = new(http.Request)
		*out = *req
	}
	return out
}
