package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
)

// ask sends the request for one hop, and repeats it after a failure that may pass.
func (r *resolution) ask(ctx context.Context, h hop) response {
	for try := 0; ; try++ {
		a := r.attempt(ctx, h)
		// Clients that failed together must not return together: this is "full jitter", of 250 ms, then up to 4 s.
		pause := max(rand.N(250*time.Millisecond<<min(try, 4)), a.retryAfter)
		if try >= r.retries(a) || r.attempts >= maxAttempts || time.Until(r.until) <= pause {
			return a
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return a
		}
		if r.turns.next(h.url, 0, r.until) != nil {
			return a // the origin is asked again, later
		}
	}
}

func (r *resolution) retries(a response) int {
	n := max(cmp.Or(r.Retries, defaultRetries), 0)
	switch {
	case a.err == nil && (a.status < 500 || a.status > 599), permanent(a.err):
		return 0
	case a.err != nil && a.status != 0: // it broke off
		return min(n, 1)
	}
	return n
}

// permanent reports whether err would recur.
func permanent(err error) bool {
	_, final := errors.AsType[harden.Final](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	dns, name := errors.AsType[*net.DNSError](err)
	return final || certificate || name && dns.IsNotFound || errors.Is(err, errSign)
}

func (r *resolution) attempt(ctx context.Context, h hop) response {
	if r.attempts == maxAttempts {
		return response{err: harden.Final("too many requests for one robots.txt")}
	}
	limit := r.timeout()
	if limit > 0 {
		limit /= 2
	}
	ctx, cancel := harden.WithTimeout(ctx, limit, "complete answer to one request")
	defer cancel()
	for _, u := range []*url.URL{h.url, {Host: h.origin.HostField()}} { // either may be what a proxy is asked for
		if err := r.guard.CheckHost(u.Hostname(), len(r.chain)); err != nil {
			return response{err: err}
		}
	}
	r.attempts++
	base := r.base
	if h.origin != r.asked && h.origin.scheme == schemeHTTPS { // else only a proxy could ask for a certificate
		base = r.abroad
	}
	leashed, leash := r.guard.Leash(ctx, len(r.chain), h.address(), h.origin.scheme == schemeHTTP, r.turns.check)
	req := r.request(leashed, h)
	// RoundTrippers, and functions set in an *http.Transport, may ignore their context.
	// Fetch must not, so it waits for either.
	done, given := make(chan response), r.given
	go func() {
		a := r.exchange(base, req, leash, given)
		select {
		case done <- a:
		case <-ctx.Done():
			r.memory.Release(a.held)
		}
	}()
	select {
	case a := <-done:
		r.held += a.held
		r.given = append(given[:len(given):len(given)], a.given...)
		if errors.Is(a.err, errSign) {
			r.ended = fmt.Errorf("fetch: %s: %w", cut(r.asked.String()), a.err)
		}
		return a
	case <-ctx.Done():
		return response{err: context.Cause(ctx)}
	}
}

// request returns the request for h. It is made from nothing: what a page request carries
// has no place in it.
func (r *resolution) request(ctx context.Context, h hop) *http.Request {
	req := &http.Request{
		Method: http.MethodGet, URL: h.url, Host: h.origin.HostField(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Accept":          {"text/plain, */*;q=0.5"},
			"Accept-Encoding": {"gzip"}, // if we say so, net/http leaves decoding, and its errors, to us
		},
	}
	if r.UserAgent != "" {
		req.Header.Set("User-Agent", r.UserAgent)
	}
	if r.stored != "" && h.String() == r.stored {
		setValidators(req.Header, r.prev.Header)
	}
	return req.WithContext(ctx)
}

// exchange sends req, reads what is needed of the response, and closes its body. It may
// outlive its attempt, so it touches nothing of r that a later one could.
func (r *resolution) exchange(base http.RoundTripper, req *http.Request, leash *harden.Leash, before []credential) (a response) {
	defer func() {
		if p := recover(); p != nil {
			a = response{held: a.held, err: harden.Final(fmt.Sprintf("panic in the transport: %v", p))}
		}
		if a.err != nil {
			r.memory.Release(a.held)
			a.held = 0
		}
	}()
	var given []credential
	// Ours: what Sign adds is of no copy that we have.
	asked := req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Modified-Since") != ""
	if r.Sign != nil && req.URL.Scheme != "ftp" {
		var err error
		if req, err = signed(req, r.Sign); err != nil {
			return response{err: err}
		}
		if given, err = credentials(req, before); err != nil {
			return response{err: err}
		}
		leash.Own = req.Header
	}
	if err := r.turns.check(); err != nil { // a base may tell httptrace nothing
		return response{err: harden.Final(err.Error())}
	}
	res, err := base.RoundTrip(req)
	now := time.Now()
	if res != nil && res.Body != nil {
		defer res.Body.Close()
	}
	credential := leash.Credential()
	r.warn(credential)
	refused := leash.RefusedByProxy(res, err)
	switch {
	case err != nil && refused:
		return response{status: http.StatusProxyAuthRequired, at: now, err: harden.ErrProxyAuth}
	case err != nil:
		return response{err: harden.Cause(req.Context(), err)}
	case res == nil:
		return response{err: harden.Final("the transport returned neither a response nor an error")}
	}
	a = response{status: res.StatusCode, at: now, asked: asked, credential: credential, given: given}
	if a.header, a.err = kept(res.Header); a.err == nil && refused {
		a.err = harden.ErrProxyAuth
	}
	r.vary(&a, req.Header)
	if a.err == nil {
		a.err = r.read(req.Context(), &a, res)
	}
	// On some multiplexed streams a read ends with io.EOF once we have closed them ourselves.
	// A time-out would then pass for the end of the file.
	if a.err == nil {
		a.err = context.Cause(req.Context())
	}
	return a
}

// credential is a field that Sign gave to an origin, see harden.IsCredential.
type credential struct {
	field string // with its value
	to    Origin
}

// credentials returns what Sign gave req of them. It is an error if another origin got the same before: Sign is asked
// about each hop, and a server must not get by a redirect what is meant for another.
func credentials(req *http.Request, before []credential) (given []credential, err error) {
	to, err := OriginOfRequest(req)
	for name, values := range req.Header {
		c := credential{name + ": " + strings.Join(values, ", "), to}
		if !harden.IsCredential(name) {
			continue
		}
		if slices.ContainsFunc(before, func(b credential) bool { return b.field == c.field && b.to != c.to }) {
			err = harden.Final(fmt.Sprintf("redirect to another origin, %s, not followed: "+
				"Sign gives it the same credentials (%s)", cut(to.String()), cut(name)))
		}
		given = append(given, c)
	}
	return given, err
}

// read adds to a what its status gives a meaning: the file, or when to come back.
func (r *resolution) read(ctx context.Context, a *response, res *http.Response) (err error) {
	if res.Body == nil { // only net/http promises one
		res.Body = http.NoBody
	}
	if a.status >= 200 && a.status <= 399 {
		if err := wellNamed(a.header); err != nil {
			return err
		}
	}
	a.retryAfter = RetryAfter(a.status, a.header, a.at)
	if outcomeOf(a.status, r.Dialect) == rules {
		a.body, err = readFile(res, func() error { return r.admit(ctx, a) })
	}
	return err
}

// admit waits for the memory of a file that is longer than usual. That it has to is no failure of
// the origin, nor is what comes of it.
func (r *resolution) admit(ctx context.Context, a *response) error {
	waited, err := take(ctx, r.memory, fileShare)
	if waited {
		r.crowded.Store(true)
	}
	if err != nil {
		return harden.Final(errCrowded.Error())
	}
	a.held = fileShare
	return nil
}

// warn logs, once, that the transport adds a credential, if it does. A handler that panics must not
// change what the origin answered.
func (f *Fetcher) warn(credential string) {
	if credential == "" || f.warned.Swap(true) {
		return
	}
	defer func() { _ = recover() }()
	slog.Warn("fetch: the transport adds credentials to requests for robots.txt, and so gives them to every origin: "+
		"put what adds them above the gate, not below it", "field", credential)
}

// wellNamed refuses white space in a field's name (RFC 9112 §5.1). net/http keeps such a
// field under another name. The length, the coding or the range of the body, or where a
// redirect leads, would then not count.
func wellNamed(h http.Header) error {
	for name := range h {
		if strings.ContainsAny(name, " \t") {
			return harden.Final(fmt.Sprintf("white space in the field name %q", cut(name)))
		}
	}
	return nil
}

// kept copies a response's header: a field must not hold the memory that the whole header
// was read into. Cookies are dropped.
func kept(h http.Header) (http.Header, error) {
	size := 0
	c := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			if size += len(name) + len(v); size > harden.MaxHeader {
				return nil, harden.Final("more than 64 KiB of header were sent")
			}
			if name != "Set-Cookie" {
				c[strings.Clone(name)] = append(c[name], strings.Clone(v))
			}
		}
	}
	return c, nil
}

// maxValidator bounds what is sent back of a response. Validators have some dozens of bytes.
const maxValidator = 1 << 10

// storedURL returns the URL that prev's file came from: only there may its validators be
// sent. It returns "" if there is no file to validate, or it was read in another dialect.
func (r *resolution) storedURL(first hop) string {
	p := r.prev
	switch {
	case p == nil, p.Err != nil, p.Policy == nil, p.Dialect != r.Dialect, p.StatusCode < 200, p.StatusCode > 299:
		return ""
	case p.userAgent != "" && p.userAgent != r.agent():
		return "" // a 304 by date would give us what was written for another
	case len(p.Redirects) > 0:
		return p.Redirects[len(p.Redirects)-1]
	}
	return first.String()
}

// setValidators makes a request conditional (RFC 9110 §13.1.2, §13.1.3). The stored header
// may come from a store that others write to, so only what can be an entity-tag (§8.8.3) is sent.
func setValidators(req, stored http.Header) {
	tag := stored.Get("ETag")
	opaque := strings.TrimPrefix(tag, "W/")
	notOpaque := func(c rune) bool { return c < ' ' || c == '"' || c == 0x7f }
	if n := len(opaque); n >= 2 && len(tag) <= maxValidator && opaque[0] == '"' && opaque[n-1] == '"' &&
		!strings.ContainsFunc(opaque[1:n-1], notOpaque) {
		req.Set("If-None-Match", tag)
	}
	if t, err := http.ParseTime(stored.Get("Last-Modified")); err == nil {
		req.Set("If-Modified-Since", t.UTC().Format(http.TimeFormat))
	}
}

// renews reports whether a 304 speaks of prev (RFC 9111 §4.3.4). Its ETag must be prev's, or
// without one its Last-Modified, if it has either. Weak comparison suffices: either way the
// server says that the file in hand is good. But a server that compares dates also says so
// if an older file was put back under its older date.
func (r *resolution) renews(a response) bool {
	opaque := func(h http.Header) string { return strings.TrimPrefix(h.Get("ETag"), "W/") }
	if tag := opaque(a.header); tag != "" {
		return tag == opaque(r.prev.Header)
	}
	modified := a.header.Get("Last-Modified")
	return modified == "" || modified == r.prev.Header.Get("Last-Modified")
}

func (r *resolution) renewed(h hop, a response) *Result {
	header, err := kept(updated(r.prev.Header, a.header))
	if err != nil { // each 304 may add to it
		return r.unreachable(h, a, err)
	}
	a.header = header
	a.varies = a.varies || r.prev.userAgent != "" // a Vary that is too long is not kept
	res := r.conclude(a, r.prev.Policy)
	res.StatusCode, res.Body, res.Truncated = r.prev.StatusCode, r.prev.Body, r.prev.Truncated
	return res
}

// updated returns stored as RFC 9111 §3.2 updates it. Age and Date describe one message
// only: the stored ones go even if the 304 has none.
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
