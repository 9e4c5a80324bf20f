package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// errSign is wrapped by the errors of Signed, and so by that of a Fetch whose Sign failed. That says nothing
// about the site.
var errSign = errors.New("not sent, because Sign failed")

// Signed returns a copy of req with the header that sign gives it, and the body that it leaves.
// sign gets a copy of its own, with its own URL and header; what it changes there after it
// returned is not sent. It must not change the method, the URL, the host or the User-Agent, which
// were decided on: that is an error. It is exported for package client, which signs pages as this
// one signs robots.txt; programs do not need it.
func signed(req *http.Request, sign func(*http.Request) error) (*http.Request, error) {
	var copies struct {
		its, out http.Request
		url      url.URL
	}
	copies.its, copies.out, copies.url = *req, *req, *req.URL
	its, out := &copies.its, &copies.out
	its.URL, its.Header, its.Trailer = &copies.url, req.Header.Clone(), req.Trailer.Clone()
	its.TransferEncoding = slices.Clone(req.TransferEncoding)
	if its.Header == nil {
		its.Header = make(http.Header, 3)
	}
	if err := sign(its); err != nil {
		return nil, fmt.Errorf("%w: %w", errSign, err)
	}
	changed := ""
	switch {
	case its.Method != req.Method:
		changed = "method"
	case its.URL == nil || *its.URL != *req.URL:
		changed = "URL"
	case its.Host != req.Host:
		changed = "host"
	case !slices.Equal(its.Header["User-Agent"], req.Header["User-Agent"]):
		changed = "User-Agent"
	}
	if changed != "" {
		return nil, fmt.Errorf("%w: it changed the %s, which was decided on", errSign, changed)
	}
	if err := checkHeader(its.Header); err != nil {
		return nil, fmt.Errorf("%w: %w", errSign, err)
	}
	out.Header = make(http.Header, len(its.Header))
	for key, values := range its.Header {
		if out.Header[key] = req.Header[key]; !slices.Equal(values, req.Header[key]) {
			out.Header[key] = slices.Clone(values)
		}
	}
	out.Body, out.GetBody, out.ContentLength = its.Body, its.GetBody, its.ContentLength
	return out, nil
}

// checkHeader returns an error if h has a key such as "user-agent" or "content-Length": net/http
// would send it beside, or instead of, the field that was decided on or that says where the
// request ends. For HTTP/1.1 net/http looks only at canonical keys; for HTTP/2 it ignores case.
// It is exported for package client, whose requests meet the same; programs do not need it.
func checkHeader(h http.Header) error {
	for key := range h {
		for _, own := range [...]string{"User-Agent", "Host", "Content-Length", "Transfer-Encoding"} {
			if len(key) == len(own) && key != own && strings.EqualFold(key, own) {
				return fmt.Errorf("the header key %q is not what is decided for: "+
					"use Header.Set, which writes it %q, or set Request.Host or ContentLength", key, own)
			}
		}
	}
	return nil
}
