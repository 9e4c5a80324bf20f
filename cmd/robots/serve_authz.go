package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/policy"
)

// authzPath is what gateways ask. Envoy puts the original path behind it.
const authzPath = "/authz"

func isAuthz(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.RequestURI, authzPath)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '?')
}

// authorize answers gateways: 200, or 403 with the reason. All else means that there is no
// answer, and no gateway lets a request pass then.
func (v *service) authorize(w http.ResponseWriter, r *http.Request) error {
	if !v.gateways || !v.trusted.Trusts(r) {
		if p := v.guard.CheckHost(r); p != nil {
			return p
		}
	}
	if p := v.guard.CheckToken(r); p != nil {
		return p
	}
	text, p := v.trusted.Target(r, authzPath)
	if p != nil {
		return p
	}
	answer, err := v.about(r.Context(), text, r.UserAgent())
	if err != nil {
		return err
	}
	if answer == nil {
		return v.send(w, "text/plain; charset=utf-8", nil)
	}
	v.log.Debug("refused", "url", text, "agent", answer.Agent, "because", answer.because())
	v.refuse(w, answer)
	return nil
}

// about decides about a URL for the crawler that a User-Agent field names. It returns nil if the
// URL is allowed: what that rests on is asked for by people, not by gateways.
func (v *service) about(ctx context.Context, text, userAgent string) (*verdict, error) {
	u, o, err := siteOf("url", text)
	if err != nil {
		return nil, err
	}
	c, err := v.asker(policy.ProductToken(userAgent), "")
	if err != nil {
		return nil, err
	}
	res, err := v.find(ctx, c, u, o)
	if err != nil {
		return nil, err
	}
	if d, _, err := decide(res.Policy, c.agent.String(), u, nil); err == nil && d.Allowed {
		return nil, nil
	}
	q := checked{1, text, u, &asked{origin: o, result: res}}
	answer, err := c.verdict(v.gate, q, reading{c.dialect.Dialect, res})
	if err != nil {
		return nil, noOrigin(err)
	}
	return answer, nil
}

// refuse writes a refusal: a problem document, and Proxy-Status (RFC 9209 §2.3.13) for what
// stands behind the gateway.
func (v *service) refuse(w http.ResponseWriter, answer *verdict) {
	kind := "rule"
	if answer.Reason == reasonName(policy.ReasonUnreachable) {
		kind = "unreachable"
	}
	p := serve.NewProblem(http.StatusForbidden, kind, "%s", answer.because())
	if kind == "unreachable" {
		p.RetryAfter = retryOfAnswer(answer.Robots)
	}
	status := httpsfv.NewItem(httpsfv.Token("robotsgate"))
	status.Params.Add("error", httpsfv.Token("http_request_denied"))
	status.Params.Add("details", ascii(answer.because()))
	if field, err := httpsfv.Marshal(httpsfv.List{status}); err == nil {
		w.Header().Set("Proxy-Status", field)
	}
	p.Write(w)
}

// retryOfAnswer is how long it takes until an unreachable robots.txt is asked for again.
func retryOfAnswer(a *answer) time.Duration {
	if a == nil || a.Retry == nil {
		return time.Minute
	}
	return max(time.Duration(*a.Retry-a.Age)*time.Second, time.Second)
}

// ascii is text as a String of RFC 9651 §3.3.3 can hold it.
func ascii(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), 200)]
}
