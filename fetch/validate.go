package fetch

import (
	"maps"
	"net/http"
	"strings"
)

// storedURL returns the URL that prev's file came from: only there may its validators be sent. It returns "" if there
// is no file to validate.
func (r *resolution) storedURL(first hop) string {
	p := r.prev
	switch {
	case p == nil, p.Err != nil, p.Policy == nil, p.StatusCode < 200, p.StatusCode > 299:
		return ""
	case len(p.Redirects) > 0:
		return p.Redirects[len(p.Redirects)-1]
	}
	return first.String()
}

// setValidators makes a request conditional (RFC 9110 §13.1.2, §13.1.3). The stored header may come from a store that
// others write to, so only what can be an entity-tag (§8.8.3) is sent.
func setValidators(req, stored http.Header) {
	tag := stored.Get("ETag")
	opaque := strings.TrimPrefix(tag, "W/")
	notOpaque := func(c rune) bool { return c < ' ' || c == '"' || c == 0x7f }
	if n := len(opaque); n >= 2 && len(tag) <= 1<<10 && opaque[0] == '"' && opaque[n-1] == '"' &&
		!strings.ContainsFunc(opaque[1:n-1], notOpaque) {
		req.Set("If-None-Match", tag)
	}
	if t, err := http.ParseTime(stored.Get("Last-Modified")); err == nil {
		req.Set("If-Modified-Since", t.UTC().Format(http.TimeFormat))
	}
}

// renews reports whether a 304 is about prev (RFC 9111 §4.3.4): its ETag is prev's or, without one, its Last-Modified,
// or it has neither. Weak comparison suffices, since the server says that the file we have is good. A server that
// compares dates says so too, wrongly, if an older file was put back with its older date.
func (r *resolution) renews(a response) bool {
	opaque := func(h http.Header) string { return strings.TrimPrefix(h.Get("ETag"), "W/") }
	if tag := opaque(a.header); tag != "" {
		return tag == opaque(r.prev.Header)
	}
	modified := a.header.Get("Last-Modified")
	return modified == "" || modified == r.prev.Header.Get("Last-Modified")
}

// renewed returns prev as a 304 renews it, or nil if that is about another copy or makes the header too long.
func (r *resolution) renewed(h hop, a response) *Result {
	header, err := copyHeader(updated(r.prev.Header, a.header))
	if err != nil || !r.renews(a) {
		return nil
	}
	a.header = header
	res := r.conclude(a, r.prev.Policy)
	res.Dialect = r.prev.Dialect
	res.StatusCode = r.prev.StatusCode
	res.Body = r.prev.Body
	res.Truncated = r.prev.Truncated
	wall := ""
	if r.prev.Wall { // without its file, prev may show no sign of one
		wall = "what answered before"
	}
	return r.checkWall(h, a, res, wall)
}

// updated returns stored as RFC 9111 §3.2 updates it. Age and Date describe one message only: the stored ones go even
// if the 304 has none.
func updated(stored, by http.Header) http.Header {
	h := maps.Clone(stored)
	if h == nil {
		h = http.Header{}
	}
	h.Del("Age")
	h.Del("Date")
	for name, values := range by {
		switch name {
		case "Connection", "Content-Length", "Content-Encoding", "Content-Range", "Content-Type":
			continue // about the 304 itself, or about a body that it does not have
		}
		h[name] = values
	}
	return h
}
