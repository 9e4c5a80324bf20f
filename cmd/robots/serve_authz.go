package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
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
	if p := v.checkToken(w, r); p != nil {
		return p
	}
	text, p := v.trusted.Target(r, authzPath)
	if p != nil {
		return p
	}
	begin := time.Now()
	c, q, err := v.about(r.Context(), text, policy.ProductToken(r.UserAgent()))
	if err != nil {
		return err
	}
	// What an allowed URL rests on is asked for by people, not by gateways.
	if a, err := answer.Decide(q.Result.Policy, c.Agent.String(), q.url, nil); err == nil && a.Allowed {
		v.metrics.decided(begin, "allowed")
		return v.send(w, "text/plain; charset=utf-8", nil)
	}
	answer, err := v.judge(begin, c, q)
	if err != nil {
		return err
	}
	v.log.Debug("refused", "url", text, "agent", answer.Agent, "because", answer.Because())
	v.refuse(w, answer)
	return nil
}

// about finds what is to be known of a URL. If agent is empty, it is that of the service.
func (v *service) about(ctx context.Context, text, agent string) (*checker, checked, error) {
	u, o, err := siteOf("url", text)
	if err != nil {
		return nil, checked{}, err
	}
	c, err := v.asker(agent, "")
	if err != nil {
		return nil, checked{}, err
	}
	res, err := v.find(ctx, c, u, o)
	return c, checked{1, text, u, &shell.Asked{Origin: o, Result: res}}, err
}

// judge decides about a URL that was asked about at begin, with all that the decision rests on.
func (v *service) judge(begin time.Time, c *checker, q checked) (*answer.Verdict, error) {
	verdict, err := c.verdict(v.gate, q, answer.Reading{Dialect: c.Dialect.Dialect, Result: q.Result})
	if err != nil {
		return nil, noOrigin(err)
	}
	v.metrics.decided(begin, verdict.Outcome())
	return verdict, nil
}

// refuse writes a refusal: a problem document, and Proxy-Status (RFC 9209 §2.3.13) for what
// stands behind the gateway.
func (v *service) refuse(w http.ResponseWriter, verdict *answer.Verdict) {
	kind := kindOf(verdict)
	p := web.NewProblem(http.StatusForbidden, kind, "%s", verdict.Because())
	if kind == "unreachable" {
		p.RetryAfter = retryOfAnswer(verdict.Robots)
	}
	web.SetProxyStatus(w.Header(), "http_request_denied", verdict.Because())
	p.Write(w)
}

func unreachable(v *answer.Verdict) bool {
	return v.Reason == answer.ReasonName(policy.ReasonUnreachable)
}

// kindOf tells in one word what refuses: the rules, or that they are not known.
func kindOf(v *answer.Verdict) string {
	if unreachable(v) {
		return "unreachable"
	}
	return "rule"
}

// retryOfAnswer is how long it takes until an unreachable robots.txt is asked for again.
func retryOfAnswer(a *answer.Answer) time.Duration {
	if a == nil || a.Retry == nil {
		return time.Minute
	}
	return max(time.Duration(*a.Retry-a.Age)*time.Second, time.Second)
}
