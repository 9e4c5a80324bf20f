package fetch

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
	"github.com/robotsgate/robotsgate/policy"
)

// Result is what an origin answered. Fetch does not change it after returning it. It may be shared; its maps and slices
// must not be modified.
type Result struct {
	// Policy is never nil in what Fetch returns. Its decisions give the reason: a rule of the file,
	// policy.ReasonUnavailable, or policy.ReasonUnreachable.
	Policy *policy.Policy

	// Err says why the origin is unreachable; nil if and only if it is not. It is a *Failure: text of at most 1 KiB
	// without control characters, and the kind of the failure. It wraps nothing: a time-out of ours is not the caller's.
	Err error

	// Time is when the answer came, or when it was given up.
	Time time.Time

	// Dialect is the dialect that Policy was read in. Fetch reads by policy.RFC9309, and In in another.
	Dialect policy.Dialect

	// Truncated reports whether the file is longer than 500 KiB, the least that RFC 9309 §2.5 has a crawler parse. Parse
	// drops the line that the limit cuts: half of "Disallow: /private" is "Disallow: /".
	Truncated bool

	// StatusCode and Header are those of the last response, after redirects; 0 and nil if none came. Header is
	// without Set-Cookie. If a 304 renewed the Result, StatusCode is the stored one, and Header is updated by the 304
	// (RFC 9111 §3.2). Over FTP, Header is empty. StatusCode is 200 for a file (with Err set, it broke off), 404 if the
	// site refused to send one, and otherwise 0, where Err quotes its reply.
	StatusCode int
	Header     http.Header

	// Wall reports whether the answer looks like that of a wall in front of the site, a login or a test for bots, and
	// not like its robots.txt: a 401 or 403, a firewall's header, a page or anything else without a line of a
	// robots.txt, a redirect loop with a cookie. RFC 9309 knows no walls, and all of these permit everything. See
	// Fetcher.ObeyWalls. False if Err is set.
	Wall bool

	// Body is the decoded file, up to 500 KiB and one byte, which tells Parse that the file is longer. It is nil if no
	// file was read; an empty file is empty but not nil.
	Body []byte

	// Redirects are the URLs that were redirected to, in order; nil if there were none. The last gave the answer.
	Redirects []string

	// RedirectHeaders are what each redirect says about its reuse (RFC 9111), in the order of Redirects: Age,
	// Cache-Control, Date, Expires and Vary.
	RedirectHeaders []http.Header

	// RetryAfter is how long the server asks to stay away, with a temporary status such as 429 or a 5xx (RFC 9110
	// §10.2.3): at most 24 h, 0 if it does not ask. Fetch waits that long after a 5xx, but only within Timeout.
	RetryAfter time.Duration
}

// String returns, in a line of at most 512 bytes, the error of r, or its status and what that led to.
func (r Result) String() string {
	switch {
	case r.Err != nil:
		text := cutTo(r.Err.Error(), 400)
		if r.StatusCode != 0 && !strings.Contains(text, statusText(r.StatusCode)) {
			text += fmt.Sprintf(" (status %d)", r.StatusCode)
		}
		return printable(text)
	case r.Policy == nil:
		return fmt.Sprintf("status %d", r.StatusCode)
	}
	what := "rules"
	switch reason := r.Policy.Reason(); {
	case reason != 0:
		what = reason.String()
	case r.Body != nil:
		what = fmt.Sprintf("rules in %d bytes", len(r.Body))
	}
	return fmt.Sprintf("status %d in %v: %s", r.StatusCode, r.Dialect, what)
}

// LogValue returns what String does.
func (r Result) LogValue() slog.Value { return slog.StringValue(r.String()) }

// OfTheMoment reports whether r is unavailable because of one request or one moment: it says nothing about the file.
// RFC 6585 §3, §4 and §5 forbid storing a 428, 429 or 431. A 408, a 421 and a 425 ask for another try. A 5xx is
// unavailable to policy.Yandex only.
func (r *Result) OfTheMoment() bool { return r.Err == nil && isOfTheMoment(r.StatusCode) }

// isOfTheMoment reports whether a status is about one request or one moment, not about the file.
func isOfTheMoment(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly,
		http.StatusPreconditionRequired, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge:
		return true
	}
	return status >= 500 && status <= 599
}

// In returns the same answer as dialect d reads it: d decides what the status means and what the file says. If d is r's
// own dialect, In returns r itself, unless that was stored without its Policy: then In restores it.
//
// Google takes a 429 for a 503, Yandex a site for open whose final status is not 200, and Original one for closed that
// answers 401 or 403.
//
// Rules are read from Body, as Fetch returns it. If it was dropped, the Result is unreachable, and Err says so. An
// answer that broke off, or could not be used, stays unreachable.
func (r *Result) In(d policy.Dialect) *Result {
	if d == r.Dialect && r.Policy != nil {
		return r
	}
	in := *r
	in.Dialect = d
	is := outcomeOf(r.StatusCode, d)
	// d may read the status otherwise, but nothing else that went wrong.
	onlyStatus := r.Err != nil && outcomeOf(r.StatusCode, r.Dialect) == unreachable && causeOf(r.Err) == ""
	switch {
	case r.Err != nil && (is == unreachable || !onlyStatus):
		in.Policy = policy.Unreachable()
	case is == rules && r.Body != nil:
		in.Policy = d.Parse(r.Body)
	case is == rules:
		in.setUnreachable("its file was not kept, and another dialect needs it", "")
	case is == unavailable, is == redirect: // one redirect too many
		in.Policy, in.Err = policy.Unavailable(), nil
	default:
		at := ""
		if n := len(r.Redirects); n > 0 { // the origin, which is asked for otherwise, is known
			at = cut(r.Redirects[n-1]) + ": "
		}
		in.setUnreachable(at+statusText(r.StatusCode), "")
	}
	in.Wall = in.Err == nil && (r.Wall || in.wallSign() != "")
	return &in
}

func (r *Result) setUnreachable(why, cause string) {
	r.Policy, r.Wall = policy.Unreachable(), false
	r.Err = &Failure{printable("fetch: " + why), cause}
}

func statusText(s int) string { return fmt.Sprintf("status %d %s", s, http.StatusText(s)) }

// Failure is the type of Result.Err, and of errors of Fetch about a proxy, this process or a field of the Fetcher.
type Failure struct {
	Text  string
	Cause string // in the words of RFC 9209 §2.3, such as "dns_error"; empty for a status, and where none fits
}

// Error returns Text, which makes Failure an error.
func (f *Failure) Error() string { return f.Text }

// Is makes it ErrNotPublic if that was the cause.
func (f *Failure) Is(target error) bool { return target == ErrNotPublic && f.Cause == prohibited }

// Causes that this package gives itself, by RFC 9209 §2.3.
const (
	misconfigured = "proxy_configuration_error" // nothing was asked
	exhausted     = "proxy_internal_error"      // nothing was asked: this process is out of descriptors or memory
	denied        = "http_request_denied"       // by ObeyWalls
	prohibited    = "destination_ip_prohibited" // ErrNotPublic

	tooLong = "http_response_header_section_size" // tells In that it is not the status that makes the site unreachable
)

// causeOf returns what kind of failure err is.
func causeOf(err error) string {
	failure, _ := errors.AsType[*Failure](err)
	certificate, _ := errors.AsType[*tls.CertificateVerificationError](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	late, _ := errors.AsType[net.Error](err)
	op, _ := errors.AsType[*net.OpError](err)
	switch {
	case failure != nil:
		return failure.Cause
	case errors.Is(err, harden.ErrProxyAuth):
		return misconfigured
	case errors.Is(err, ErrNotPublic):
		return prohibited
	case certificate != nil:
		return "tls_certificate_error"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return exhausted
	case dns != nil && dns.IsTimeout:
		return "dns_timeout"
	case dns != nil:
		return "dns_error"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "destination_ip_unroutable"
	case late != nil && late.Timeout():
		return "connection_timeout"
	case op != nil && op.Op == "remote error": // how crypto/tls reports an alert
		return "tls_alert_received"
	case errors.Is(err, http.ErrSchemeMismatch), strings.HasPrefix(err.Error(), "tls: "):
		return "tls_protocol_error"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection_terminated"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "http_response_incomplete"
	}
	return ""
}

// cut bounds what an error quotes of its input.
func cut(s string) string { return cutTo(s, 256) }

func cutTo(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// printable replaces what a log or terminal could take for a command, and bounds the text.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
	return cutTo(s, 1000) // and the ellipsis
}
