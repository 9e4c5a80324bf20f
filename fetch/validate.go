package fetch

import (
	"cmp"
	"maps"
	"net/http"
	"strings"
)

// maxValidator bounds what is sent back of an answer. Validators are some dozens of octets.
const maxValidator = 1 << 10

// storedURL returns the URL that prev's file came from, which alone its validators may be
// sent to; "" if there is no file to validate, or it was read in another dialect.
func (r *resolution) storedURL(first hop) string {
	p := r.prev
	switch {
	case p == nil, p.Err != nil, p.Policy == nil, p.Dialect != r.Dialect, p.StatusCode < 200, p.StatusCode > 299:
		return ""
	case p.UserAgent != "" && p.UserAgent != r.agent():
		return "" // a 304 by date would give us what was written for another
	case len(p.Redirects) > 0:
		return p.Redirects[len(p.Redirects)-1]
	}
	return first.String()
}

// setValidators makes a request conditional (RFC 9110 §13.1.2, §13.1.3). The stored header
// may come from a store that others write to: what is no validator is not sent.
func setValidators(req, stored http.Header) {
	if tag := stored.Get("ETag"); len(tag) <= maxValidator && strings.HasSuffix(tag, `"`) && !strings.ContainsFunc(tag, isControl) {
		req.Set("If-None-Match", tag)
	}
	if t, err := http.ParseTime(stored.Get("Last-Modified")); err == nil {
		req.Set("If-Modified-Since", t.UTC().Format(http.TimeFormat))
	}
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

func hasValidators(req http.Header) bool {
	return req.Get("If-None-Match") != "" || req.Get("If-Modified-Since") != ""
}

// renews reports whether a 304 speaks of prev: its ETag, or without one its Last-Modified,
// must be prev's, if it has either (RFC 9111 §4.3.4). Weak comparison does: either way the
// server says that the file in hand is good. But a server that compares dates only says so
// of the older file, too, that was put back under its older date.
func (r *resolution) renews(a answer) bool {
	opaque := func(h http.Header) string { return strings.TrimPrefix(h.Get("ETag"), "W/") }
	if tag := opaque(a.header); tag != "" {
		return tag == opaque(r.prev.Header)
	}
	modified := a.header.Get("Last-Modified")
	return modified == "" || modified == r.prev.Header.Get("Last-Modified")
}

// renewed returns prev as a 304 renews it.
func (r *resolution) renewed(h hop, a answer) *Result {
	header, err := kept(updated(r.prev.Header, a.header))
	if err != nil { // a little more of it each time
		return r.unreachable(h, a, err)
	}
	a.header = header
	res := r.conclude(a, r.prev.Policy)
	res.UserAgent = cmp.Or(res.UserAgent, r.prev.UserAgent) // a Vary that is too long is not kept
	res.StatusCode, res.Body, res.Truncated = r.prev.StatusCode, r.prev.Body, r.prev.Truncated
	return res
}

// updated is RFC 9111 §3.2. Age and Date say when and how old one message was, so that
// the stored ones go even if the 304 has none.
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
