package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
	"github.com/robotsgate/robotsgate/policy"
)

// ask sends the request for one hop, and repeats it after a failure that may be temporary.
func (r *resolution) ask(h hop) (response, error) {
	a, err := r.attempt(h, r.latestStart())
	for try := 0; err == nil && try < r.retries(a) && r.attempts < maxAttempts; try++ {
		// Full jitter, of 250 ms and then up to 4 s: clients that failed together must not return together.
		if !r.pause(max(rand.N(250*time.Millisecond<<min(try, 4)), a.retryAfter)) {
			break
		}
		wasCrowded := r.crowded
		again, retryErr := r.attempt(h, time.Now().Add(r.rest()))
		if _, isNoTurn := errors.AsType[noTurnError](retryErr); isNoTurn || r.crowded && !wasCrowded {
			r.crowded = wasCrowded // the retry failed because of us: the answer before it counts
			return a, nil
		}
		if retryErr != nil {
			return response{}, retryErr
		}
		a = again
	}
	return a, err
}

// latestStart is when the wait for the turn of a hop must end, to leave what is left of Timeout before the caller's
// deadline, or half of the time until then if that is less.
func (r *resolution) latestStart() time.Time {
	if end, ok := r.caller.Deadline(); ok {
		return end.Add(-min(r.rest(), time.Until(end)/2))
	}
	return time.Now().Add(never)
}

const never = 1 << 62 // nanoseconds: 146 years

// rest is what is left of Timeout or, without one, a time for what needs a bound in any case.
func (r *resolution) rest() time.Duration {
	if r.Timeout < 0 {
		return defaultTimeout
	}
	return r.left
}

// pause waits for d if there is time for that, and reports whether it did.
func (r *resolution) pause(d time.Duration) bool {
	if end, ok := r.caller.Deadline(); d >= r.rest() || ok && time.Until(end) <= d {
		return false
	}
	r.left -= d
	select {
	case <-time.After(d):
		return true
	case <-r.own.Done():
		return false
	}
}

func (r *resolution) retries(a response) int {
	n := max(cmp.Or(r.Retries, defaultRetries), 0)
	switch {
	case a.err == nil && (a.status < 500 || a.status > 599), permanent(a.err):
		return 0
	case a.err != nil && a.status != 0: // the response broke off
		return min(n, 1)
	}
	return n
}

// permanent reports whether err would recur.
func permanent(err error) bool {
	_, final := errors.AsType[harden.FinalError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	dns, name := errors.AsType[*net.DNSError](err)
	reply, ftp := errors.AsType[*textproto.Error](err) // RFC 959 §4.2.1: sites count logins that they refused
	_, ours := errors.AsType[*Failure](err)
	return final || ours || certificate || name && dns.IsNotFound ||
		ftp && reply.Code/100 == 5 || errors.Is(err, ErrNotPublic)
}

// attempt sends one request, if its turn comes in time, and reads what is needed of the response. An error means that
// it was not sent.
func (r *resolution) attempt(h hop, latest time.Time) (a response, err error) {
	if r.attempts == maxAttempts {
		return response{err: harden.FinalError("too many requests for one robots.txt")}, nil
	}
	for _, u := range []*url.URL{h.url, {Host: h.origin.HostField()}} { // a proxy may be asked for either
		if err := r.guard.CheckHost(u.Hostname(), len(r.chain)); err != nil {
			return response{err: err}, nil
		}
	}
	wait, cancel := context.WithDeadline(r.caller, latest)
	defer cancel()
	s := &sending{r: r, hop: h, ctx: wait}
	defer s.end()
	var through http.RoundTripper = s
	if r.Through != nil {
		through = r.Through(s)
	}
	req := r.request(wait, h)
	res, err := through.RoundTrip(req)
	switch {
	case s.err != nil:
		return response{}, s.err
	case err != nil && s.begun.IsZero():
		return response{}, noTurnError{err}
	case err != nil:
		return s.broken(err), nil
	}
	defer res.Body.Close()
	a = s.receive(res)
	a.validated = req.Header["If-None-Match"] != nil || req.Header["If-Modified-Since"] != nil
	return a, nil
}

// request returns the request for h. It is made from scratch: nothing of a page request has a place in it.
func (r *resolution) request(ctx context.Context, h hop) *http.Request {
	req := &http.Request{
		Method: http.MethodGet, URL: h.url, Host: h.origin.HostField(),
		Header: http.Header{
			"Accept":          {"text/plain, */*;q=0.5"},
			"Accept-Encoding": {"gzip"}, // set by us, it leaves decoding, and its errors, to us
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

// sending is one request on its way, and the wire that Fetcher.Through gets.
type sending struct {
	r        *resolution
	hop      hop
	ctx      context.Context // of the request: for its wait, and then on the wire
	cancel   context.CancelFunc
	begun    time.Time       // when it had its place and its clock began
	hardened *harden.Request // nil if the Transport cannot be hardened
	err      error           // why it was not sent
}

// RoundTrip waits for a place in MaxFetches, starts the clock, and sends the request.
func (s *sending) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.err = s.r.places.Acquire(s.r.caller, 1); s.err != nil {
		<-s.ctx.Done() // it ends with caller: what sent req sees by its context that no site has failed
		s.err = noTurnError{fmt.Errorf("fetch: no place (MaxFetches): %w", s.err)}
		return nil, s.err
	}
	limit, missing := s.r.timeout()/2, "complete answer to one request"
	if s.r.left < limit {
		limit, missing = max(s.r.left, 0), "complete answer to the last request"
	}
	s.begun = time.Now()
	s.ctx, s.cancel = harden.WithTimeout(s.r.own, limit, missing)
	s.r.attempts++
	req = req.WithContext(s.ctx)
	if s.r.Sign != nil && s.hop.origin.scheme != schemeFTP {
		req = req.Clone(s.ctx)
		if err := s.r.Sign(req); err != nil {
			s.err = fmt.Errorf("fetch: %s: not sent, because Sign failed: %w", cut(s.r.asked.String()), err)
			return nil, s.err
		}
	}
	return s.wire().RoundTrip(req)
}

// wire returns what sends the request: a hardened copy of the Transport, where that is possible.
func (s *sending) wire() http.RoundTripper {
	base := cmp.Or(s.r.Transport, http.DefaultTransport)
	t, ok := base.(*http.Transport)
	if !ok || s.hop.origin.scheme == schemeFTP {
		return base
	}
	secure := s.hop.origin.scheme == schemeHTTPS
	s.hardened = &harden.Request{
		Context: s.ctx, Guard: &s.r.guard, Redirects: len(s.r.chain), TLS: secure,
		Anonymous: secure && s.hop.origin != s.r.asked, // else only a proxy could ask for a certificate
	}
	return s.hardened.Transport(t)
}

// end stops the clock and gives the place back.
func (s *sending) end() {
	if !s.begun.IsZero() {
		s.cancel()
		s.r.left -= time.Since(s.begun)
		s.r.places.Release(1)
	}
}

// broken returns the response of a request that got no answer.
func (s *sending) broken(err error) response {
	a := response{at: time.Now(), err: harden.Cause(s.ctx, err)}
	switch said := err.Error(); { // by net/http, perhaps below another RoundTripper
	case s.hop.origin.scheme == schemeFTP && strings.HasPrefix(said, "unsupported protocol scheme"):
		a.err = &Failure{"the Transport does not speak ftp: RegisterProtocol an ftp.Transport of fetch/ftp", misconfigured}
	case strings.HasSuffix(said, http.StatusText(http.StatusProxyAuthRequired)): // to CONNECT
		a.err = harden.ErrProxyAuth
	}
	return a
}

// receive reads what is needed of res. A 407 is the site's own only if no proxy can have sent it.
func (s *sending) receive(res *http.Response) (a response) {
	a = response{status: res.StatusCode, at: time.Now(), cookie: len(res.Header["Set-Cookie"]) > 0}
	a.header, a.err = copyHeader(res.Header)
	if a.status == http.StatusProxyAuthRequired && (s.hardened == nil || s.hardened.Asks) {
		a.err = harden.ErrProxyAuth
	}
	if a.err == nil {
		a.err = s.read(&a, res)
	}
	// Reading some multiplexed streams returns io.EOF once we have closed them ourselves. A time-out would then pass for
	// the end of the file.
	if s.ctx.Err() != nil {
		a.err = context.Cause(s.ctx)
	}
	if a.err != nil {
		a.body = nil
		s.r.memory.Release(s.r.held)
		s.r.held = 0
	}
	return a
}

// read adds to a what its status calls for: the file, or when to come back.
func (s *sending) read(a *response, res *http.Response) (err error) {
	if a.status >= 200 && a.status <= 399 {
		if err := checkFieldNames(a.header); err != nil {
			return err
		}
	}
	a.retryAfter = RetryAfter(a.status, a.header, a.at)
	if outcomeOf(a.status, policy.RFC9309) == rules {
		a.body, err = readFile(res, s.admit)
	}
	return err
}

// admit waits for the memory of a file that is longer than usual. To have to wait is no failure of the origin, nor is
// what that leads to.
func (s *sending) admit() error {
	if !s.r.memory.TryAcquire(fileShare) {
		s.r.crowded = true
		if s.r.memory.Acquire(s.ctx, fileShare) != nil {
			return errCrowded
		}
	}
	s.r.held = fileShare
	return nil
}

// checkFieldNames refuses white space in a field's name (RFC 9112 §5.1). net/http keeps such a field under another
// name, so the length, the coding or the range of the body, or where a redirect leads, would be missed.
func checkFieldNames(h http.Header) error {
	for name := range h {
		if strings.ContainsAny(name, " \t") {
			return harden.FinalError(fmt.Sprintf("white space in the field name %q", cut(name)))
		}
	}
	return nil
}

// copyHeader copies a response's header, without cookies: no field must keep the memory of the whole header alive.
func copyHeader(h http.Header) (http.Header, error) {
	size := 0
	c := make(http.Header, len(h))
	for name, values := range h {
		for _, v := range values {
			if size += len(name) + len(v); size > harden.MaxHeader {
				return nil, &Failure{"more than 64 KiB of header were sent", tooLong}
			}
			if name != "Set-Cookie" {
				c[strings.Clone(name)] = append(c[name], strings.Clone(v))
			}
		}
	}
	return c, nil
}
