package proxy

// Errors of the gate and of the network, as answers: which status, and which error of RFC 9209. refusal.go
// writes them.

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// sendError is one of sending, not of the gate: sender and the dialers make it. An error of the gate without
// a type of its own is the fault of the request; one of sending is that of the site or the network.
type sendError struct{ error }

func (e sendError) Unwrap() error { return e.error }

var (
	errItself  = errors.New("the request leads back to this proxy")
	errPrivate = errors.New("the address is not in a public network: see --private")
)

// explain makes the answer to a request that was refused, or failed. The order counts: a refusal by the gate
// can be ErrNotPublic as well.
func explain(err error) Refusal {
	if e, ok := errors.AsType[*client.DisallowedError](err); ok {
		return refused(e.URL, e.Answer)
	}
	if e, ok := errors.AsType[*client.UseError](err); ok {
		return refused(e.URL, e.Answer)
	}
	if p, ok := errors.AsType[*web.Problem](err); ok {
		return Refusal{Problem: p}
	}
	_, sent := errors.AsType[sendError](err)
	switch {
	case errors.Is(err, client.ErrNotPublic):
		err = errPrivate
	case sent:
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, client.ErrClosed): // it cannot be decided on now
		return Refusal{Problem: web.Unavailable(answer.Visible(err.Error())), Error: "proxy_internal_error"}
	default:
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
// unreachable, but is told as what it is: no rule is to blame.
func refused(u *url.URL, a client.Answer) Refusal {
	if a.Reason == policy.ReasonUnreachable && fetch.CauseOf(a.Unreachable) == badCertificate {
		return notReached(a.Unreachable)
	}
	v := answer.NewVerdict(u.Redacted(), a)
	if o, err := fetch.OriginOf(u); err == nil && a.Unreachable != nil {
		v.Error, v.Robots = a.Unreachable.Error(), &answer.Answer{URL: o.RobotsURL().String()}
	}
	why := v.Because()
	if v.Line > 0 && v.Agreement == nil {
		why = "robots.txt, " + why
	}
	p := web.NewProblem(http.StatusForbidden, v.Kind(), "%s", why)
	if a.Reason == policy.ReasonUnreachable {
		p.RetryAfter = time.Minute
		if !a.Until.IsZero() {
			p.RetryAfter = max(time.Until(a.Until), time.Second)
		}
	}
	return Refusal{Problem: p}
}

const badCertificate = "tls_certificate_error" // of RFC 9209 §2.3

// failureOf is how a failure of the network is told: a status, and an error of RFC 9209 §2.3.
func failureOf(err error) (status int, kind string) {
	switch kind = fetch.CauseOf(err); {
	case errors.Is(err, errPrivate):
		return http.StatusForbidden, "destination_ip_prohibited"
	case errors.Is(err, errItself):
		return http.StatusLoopDetected, "proxy_loop_detected"
	case kind == "dns_timeout", kind == "connection_timeout":
		return http.StatusGatewayTimeout, kind
	}
	return http.StatusBadGateway, cmp.Or(kind, "http_protocol_error")
}
