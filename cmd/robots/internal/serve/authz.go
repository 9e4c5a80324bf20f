package serve

// GET /authz, for nginx, Caddy, Traefik and Envoy, which ask here before they let a request out. web.Gateways finds
// out which request they ask about; README.md has their configurations.

import (
	"net/http"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/policy"
)

// authzPath is what gateways ask, with any method: Envoy keeps that of the original request, and puts the original
// path behind this one.
const authzPath = "/authz"

// isAuthz looks at the path as it was sent. In r.URL.Path it is unescaped, and what Envoy puts behind it may
// look like another path.
func isAuthz(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.RequestURI, authzPath)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '?')
}

// authorize answers gateways: 200, or 403 with the reason. All else means that there is no answer, and no gateway
// lets a request pass then. nginx makes a 500 of it for its client, so a refusal is never anything but a 403.
//
// With Gateways, those in the --trusted networks may ask under any Host, since Envoy sends that of the original
// request. All others are held to the names of the service, as in own.
func (v *Service) authorize(w http.ResponseWriter, r *http.Request) error {
	if !v.Gateways || !v.Trusted.Trusts(r) {
		if p := v.Guard.CheckHost(r); p != nil {
			return p
		}
	}
	if p := v.Guard.CheckToken(w, r); p != nil {
		return p
	}
	text, p := v.Trusted.Target(r, authzPath)
	if p != nil {
		return p
	}
	if answer.HasDots(text) { // the gateway passes it on as it is, and not as it would be asked about
		const why = "the path has a dot segment, which servers resolve in different ways"
		web.SetProxyStatus(w.Header(), "http_request_denied", why)
		return web.NewProblem(http.StatusForbidden, "url", why)
	}
	q, err := v.about(r.Context(), text, policy.ProductToken(r.UserAgent()), "")
	if err != nil {
		return err
	}
	// What an allowed URL rests on is asked for by people, not by gateways.
	if a, err := q.Judge(q.result.Policy, q.url); err == nil && a.Allowed {
		v.metrics.decided(q.begin, "allowed")
		return v.send(w, "text/plain; charset=utf-8", nil)
	}
	verdicts, err := v.judge(q)
	if err != nil {
		return err
	}
	verdict := verdicts[0]
	v.Log.Debug("refused", "url", text, "agent", verdict.Agent, "because", verdict.Because())
	refusal := web.NewProblem(http.StatusForbidden, verdict.Kind(), "%s", verdict.Because())
	if verdict.Unreachable() {
		refusal.RetryAfter = verdict.Robots.AskAgain()
	}
	// RFC 9209 §2.3.13, for what stands behind the gateway: nginx passes on fields of this answer, and not its body.
	web.SetProxyStatus(w.Header(), "http_request_denied", verdict.Because())
	return refusal
}
