package unsent

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ErrSign is wrapped by the errors of Sign. Such a request says nothing about the site.
var ErrSign = errors.New("not sent, because Sign failed")

// Sign returns a copy of req that sign has signed. The copy is sign's own down to the URL and the slices. A
// signature is for what was decided on: so it is an error if sign changes the method, the URL, the host
// or the User-Agent.
func Sign(req *http.Request, sign func(*http.Request) error) (*http.Request, error) {
	out := new(http.Request)
	*out = *req
	u := *req.URL
	out.URL, out.Header, out.Trailer = &u, req.Header.Clone(), req.Trailer.Clone()
	out.TransferEncoding = slices.Clone(req.TransferEncoding)
	if out.Header == nil {
		out.Header = make(http.Header, 3)
	}
	if err := sign(out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSign, err)
	}
	changed := ""
	switch {
	case out.Method != req.Method:
		changed = "method"
	case out.URL == nil || *out.URL != *req.URL:
		changed = "URL"
	case out.Host != req.Host:
		changed = "host"
	}
	for key, values := range out.Header { // net/http looks at canonical keys, HTTP/2 ignores case
		if strings.EqualFold(key, "User-Agent") && !slices.Equal(values, req.Header[key]) {
			changed = "User-Agent"
		}
	}
	if len(out.Header["User-Agent"]) != len(req.Header["User-Agent"]) {
		changed = "User-Agent"
	}
	if changed != "" {
		return nil, fmt.Errorf("%w: it changed the %s, which was decided on", ErrSign, changed)
	}
	return out, nil
}
