package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

// ask sends the request for one hop, and sends it again after a failure that may pass.
func (r *resolution) ask(ctx context.Context, h hop) answer {
	for try := 0; ; try++ {
		a := r.attempt(ctx, h)
		pause := max(backoff(try), a.retryAfter)
		if try >= r.retries(a) || r.attempts >= maxAttempts || time.Until(r.until) <= pause {
			return a
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return a
		}
	}
}

// retries is how often a request is repeated after a.
func (r *resolution) retries(a answer) int {
	n := max(orDefault(r.Retries, defaultRetries), 0)
	switch {
	case a.err == nil && (a.status < 500 || a.status > 599), permanent(a.err):
		return 0
	case a.err != nil && a.status != 0: // it broke off
		return min(n, 1)
	}
	return n
}

// permanent reports whether err would come again.
func permanent(err error) bool {
	if _, ok := errors.AsType[final](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}

// backoff is a random pause below 250 ms, 500 ms, 1 s and so on up to 4 s: "full jitter",
// so that clients which failed together do not return together.
func backoff(try int) time.Duration {
	return rand.N(250 * time.Millisecond << min(try, 4))
}

// attempt sends one request.
func (r *resolution) attempt(ctx context.Context, h hop) answer {
	if r.attempts == maxAttempts {
		return answer{err: final("too many requests for one robots.txt")}
	}
	r.attempts++
	ctx, cancel := withTimeout(ctx, orDefault(r.AttemptTimeout, defaultAttemptTimeout), "complete answer to one request")
	defer cancel()
	if err := r.guard.checkHost(h.url.Hostname(), len(r.chain)); err != nil {
		return answer{err: err}
	}
	base := r.base
	if h.origin != r.asked && h.origin.scheme == schemeHTTPS { // else only a proxy could ask for a certificate
		base = r.abroad
	}
	ctx = withLeash(ctx, &r.guard, len(r.chain))
	req := r.request(httptrace.WithClientTrace(ctx, leashOf(ctx).trace(h)), h)
	// A RoundTripper need not return when its context ends, nor a function that the caller
	// has set in an *http.Transport. Fetch does.
	done := make(chan answer, 1)
	go func() { done <- r.exchange(base, req) }()
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
		return answer{err: context.Cause(ctx)}
	}
}

// request is made from nothing: what a page request carries has no place in it.
func (r *resolution) request(ctx context.Context, h hop) *http.Request {
	req := &http.Request{
		Method: http.MethodGet, URL: h.url, Host: h.origin.Host(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Accept":          {"text/plain, */*;q=0.5"},
			"Accept-Encoding": {"gzip"}, // said by us, so that net/http leaves decoding, and its errors, to us
		},
	}
	if r.UserAgent != "" {
		req.Header.Set("User-Agent", r.UserAgent)
	}
	if h.String() == r.stored {
		setValidators(req.Header, r.prev.Header)
	}
	return req.WithContext(ctx)
}

// exchange sends req and reads what is needed of the answer. It closes the body. It
// touches nothing of r that a later attempt could: it may outlive its own.
func (r *resolution) exchange(base http.RoundTripper, req *http.Request) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: final(fmt.Sprintf("panic in the transport: %v", p))}
		}
	}()
	l := leashOf(req.Context())
	res, err := base.RoundTrip(req)
	if res != nil && res.Body != nil {
		defer res.Body.Close()
	}
	credential := l.credential.Load()
	if credential != nil {
		r.warn(*credential)
	}
	switch {
	case errors.Is(err, errProxyAuth), // to CONNECT; what is below another transport tells its reason phrase only
		err != nil && l.detour.Load() && strings.HasSuffix(err.Error(), http.StatusText(http.StatusProxyAuthRequired)):
		return answer{status: http.StatusProxyAuthRequired, at: time.Now(), err: errProxyAuth}
	case err != nil:
		return answer{err: cause(req.Context(), err)}
	case res == nil:
		return answer{err: final("the transport returned neither a response nor an error")}
	case res.Body == nil:
		res.Body = http.NoBody
	}
	a = answer{status: res.StatusCode, at: time.Now(), asked: hasValidators(req.Header)}
	if credential != nil {
		a.credential = *credential
	}
	if a.header, a.err = kept(res.Header); a.err != nil {
		return a
	}
	if a.status == http.StatusProxyAuthRequired && (l.proxied.Load() || l.detour.Load()) {
		a.err = errProxyAuth
		return a
	}
	if a.status >= 200 && a.status <= 399 {
		if a.err = wellNamed(a.header); a.err != nil {
			return a
		}
	}
	a.retryAfter = RetryAfter(a.status, a.header, a.at)
	if outcomeOf(a.status, r.Dialect) == rules {
		a.body, a.truncated, a.err = readFile(res)
	}
	// Where reading a connection that we have closed ourselves says io.EOF, as it does on
	// some multiplexed streams, a time-out would pass for the end of the file.
	if a.err == nil {
		a.err = context.Cause(req.Context())
	}
	return a
}

// warn says once that the transport adds credentials to what it is given. A handler that
// panics has no say in what the origin answered.
func (f *Fetcher) warn(credential string) {
	if f.warned.Swap(true) {
		return
	}
	defer func() { _ = recover() }()
	slog.Warn("fetch: the transport adds credentials to requests for robots.txt, and so gives them to every origin: put what adds them above the gate, not below it", "field", credential)
}

// wellNamed refuses white space in a field's name (RFC 9112 §5.1). net/http keeps such a field
// under another name, so that one which says how long, how coded or how much of the file the
// body is, or where a redirect leads, would count for nothing.
func wellNamed(h http.Header) error {
	for name := range h {
		if strings.ContainsAny(name, " \t") {
			return final(fmt.Sprintf("white space in the field name %q", cut(name)))
		}
	}
	return nil
}

// withTimeout gives ctx an end and, for the Result, the reason of it.
func withTimeout(ctx context.Context, d time.Duration, missing string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no %s within %v", missing, d))
}

// cause prefers the reason why ctx ended to what became of the connection then.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// kept copies a response's header, so that the memory it was read into is not held by a
// field of it. Cookies are nobody's business after the response.
func kept(h http.Header) (http.Header, error) {
	size := 0
	c := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			if size += len(name) + len(v); size > maxHeader {
				return nil, final("more than 64 KiB of header were sent")
			}
			if name != "Set-Cookie" {
				c[strings.Clone(name)] = append(c[name], strings.Clone(v))
			}
		}
	}
	return c, nil
}
