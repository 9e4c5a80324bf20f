package proxy

// The answers that are the proxy's own, which are problem documents: what they say about the errors of the gate and of
// the network, which status, and which error of RFC 9209.

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

type Refusal struct {
	*web.Problem
	Error string // of RFC 9209 §2.3; if empty, http_request_denied
}

// Passed is counted where the site answered. Refusals count by their kind.
const Passed = "passed"

// Advised is counted besides Passed where the gate would have refused.
const Advised = "advised"

// Kinds are all that Count gets. A new kind of problem needs an entry here and in README.md, or it
// appears in the metrics only once it has happened.
var Kinds = []string{Passed, Advised, "rule", "unreachable", "tunnel", "target", "token", "busy", "unavailable", "failure"}

func (f Refusal) kind() string {
	_, kind, _ := strings.Cut(f.Type, "#problem-")
	return kind
}

// denies reports whether f is a refusal by robots.txt, and neither an outage nor of a request that cannot be sent.
// Server.Denial is about these alone.
func (f Refusal) denies() bool { return f.Error == "" && f.Status == http.StatusForbidden }

// bad is the answer to a request that cannot be sent as it is.
func bad(format string, args ...any) Refusal {
	return Refusal{web.NewProblem(http.StatusBadRequest, "target", format, args...), "http_request_error"}
}

func busy() Refusal {
	p := web.NewProblem(http.StatusServiceUnavailable, "busy", "too many requests are under way")
	p.RetryAfter = time.Second
	return Refusal{p, "connection_limit_reached"}
}

func (f Refusal) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	web.SetProxyStatus(h, cmp.Or(f.Error, "http_request_denied"), f.Detail)
	f.Problem.Write(w)
}

var errPrivate = errors.New("the address is not in a public network: see --private")

// explain makes the answer to a request that was refused, or failed. The order counts: a refusal by the gate can be
// ErrNotPublic as well. What is not ErrNotSent is an error of the site or the network.
func explain(err error, agreed *agreement.Agreements) Refusal {
	if e, ok := errors.AsType[*client.DisallowedError](err); ok {
		return refused(e.URL, e.Answer, agreed)
	}
	if p, ok := errors.AsType[*web.Problem](err); ok {
		return Refusal{Problem: p}
	}
	switch {
	case errors.Is(err, fetch.ErrNotPublic):
		err = errPrivate
	case errors.Is(err, cache.ErrClosed):
		return Refusal{Problem: web.Unavailable(answer.Visible(err.Error())), Error: "proxy_internal_error"}
	case errors.Is(err, client.ErrNotSent):
		return bad("%s", answer.Visible(err.Error()))
	}
	return notReached(err)
}

// notReached is the answer to what the site or the network has failed at.
func notReached(err error) Refusal {
	status, kind := failureOf(err)
	p := web.NewProblem(status, "failure", "the site was not reached: %s", answer.Visible(err.Error()))
	return Refusal{Problem: p, Error: kind}
}

// refused is the answer to what the gate refuses. A certificate that is not accepted makes robots.txt
// unreachable, but is reported as what it is: no rule is to blame.
func refused(u *url.URL, a client.Answer, agreed *agreement.Agreements) Refusal {
	if a.Reason == policy.ReasonUnreachable && causeOf(a.Unreachable) == badCertificate {
		return notReached(a.Unreachable)
	}
	v := answer.NewVerdict(u.Redacted(), a)
	v.Name(agreed, u, a)
	if o, err := fetch.OriginOf(u); err == nil && a.Unreachable != nil {
		v.Error, v.Robots = a.Unreachable.Error(), &answer.Answer{URL: o.RobotsURL().String()}
	}
	why := v.Because()
	if v.Line > 0 && !a.Overridden {
		why = "robots.txt, " + why
	}
	p := web.NewProblem(http.StatusForbidden, v.Kind(), "%s", why)
	if a.Reason == policy.ReasonUnreachable && !errors.Is(a.Unreachable, fetch.ErrNotPublic) {
		// No refusal by the site, and it may end.
		p = web.NewProblem(http.StatusServiceUnavailable, v.Kind(), "%s", why)
		p.RetryAfter = time.Minute
		if !a.Until.IsZero() {
			p.RetryAfter = max(time.Until(a.Until), time.Second)
		}
	}
	return Refusal{Problem: p}
}

const badCertificate = "tls_certificate_error" // RFC 9209 §2.3, as in package fetch

// causeOf is the error of RFC 9209 §2.3 that package fetch has found at robots.txt, or empty.
func causeOf(err error) string {
	if failure, ok := errors.AsType[*fetch.Failure](err); ok {
		return failure.Cause
	}
	return ""
}

// failureOf is how a failure of the network is reported: a status, and an error of RFC 9209 §2.3.
func failureOf(err error) (status int, kind string) {
	late, _ := errors.AsType[net.Error](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	certificate, _ := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, errPrivate):
		return http.StatusForbidden, "destination_ip_prohibited"
	case late != nil && late.Timeout():
		return http.StatusGatewayTimeout, "connection_timeout"
	case dns != nil:
		kind = "dns_error"
	case certificate != nil:
		kind = badCertificate
	case errors.Is(err, syscall.ECONNREFUSED):
		kind = "connection_refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		kind = "connection_terminated"
	}
	return http.StatusBadGateway, cmp.Or(causeOf(err), kind, "http_protocol_error")
}
