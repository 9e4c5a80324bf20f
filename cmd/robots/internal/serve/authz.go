package serve

// GET /authz, for nginx, Caddy, Traefik and Envoy, which ask here before they let a request out. Which
// request they ask about is found out below: a wrong answer to that would be a permission for another URL, so what is
// doubtful is a problem, which no gateway takes for a permission. README.md has their configurations.

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

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
	if !v.Gateways || !v.Trusted.trust(r) {
		if p := v.Guard.CheckHost(r); p != nil {
			return p
		}
	}
	if p := v.Guard.CheckToken(w, r); p != nil {
		return p
	}
	text, p := v.Trusted.target(r)
	if p != nil {
		return p
	}
	q, err := v.about(r.Context(), text, policy.ProductToken(r.UserAgent()), "")
	if err != nil {
		return err
	}
	// What an allowed URL rests on is asked for by people, not by gateways.
	if a, err := q.Agreed.Decide(q.result.Policy, q.Agent, q.url); err == nil && a.Allowed {
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

// Gateways are the networks that gateways ask from. What other clients say about an original
// request is not believed.
type Gateways []netip.Prefix

// trust reports whether r comes from a gateway.
func (g Gateways) trust(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	addr := from.Addr().Unmap().WithZone("")
	return err == nil && slices.ContainsFunc(g, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// target returns the URL of the original request, which arrives in one of three forms:
//
//   - X-Original-URL, as nginx is told to set it;
//   - X-Forwarded-Proto, -Host and -Uri, as Caddy and Traefik set them;
//   - the path behind authzPath, with Host and X-Forwarded-Proto, from Envoy.
//
// A gateway passes on fields of its client that it does not set itself. So where there are
// two forms, both have to name the same URL, and no field may occur twice.
func (g Gateways) target(r *http.Request) (string, *web.Problem) {
	if !g.trust(r) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		return "", noTarget("%s is in none of the --trusted networks", from)
	}
	for _, name := range []string{"X-Original-Url", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Uri"} {
		if len(r.Header[name]) > 1 {
			return "", noTarget("%s occurs twice", name)
		}
	}
	forms, p := forms(r)
	switch {
	case p != nil:
		return "", p
	case len(forms) == 0:
		return "", noTarget("neither X-Original-URL nor X-Forwarded-Proto, -Host and -Uri is there")
	}
	for _, f := range forms[1:] {
		if f != forms[0] {
			return "", noTarget("%q and %q: which of them is the original request?", forms[0], f)
		}
	}
	return forms[0], nil
}

// forms are the URLs that r names, one for each form that is there.
func forms(r *http.Request) (forms []string, p *web.Problem) {
	if text := r.Header.Get("X-Original-Url"); text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, noTarget("X-Original-URL is %q: no absolute URL", text)
		}
		forms = append(forms, text)
	}
	host, uri := r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Uri")
	if host != "" || uri != "" {
		if forms, p = forwarded(forms, r, host, uri); p != nil {
			return nil, p
		}
	}
	if path := strings.TrimPrefix(r.RequestURI, authzPath); path != "" && path[0] == '/' {
		return forwarded(forms, r, r.Host, path)
	}
	return forms, nil
}

// forwarded appends the URL of an original request in parts.
func forwarded(forms []string, r *http.Request, host, uri string) ([]string, *web.Problem) {
	scheme := strings.ToLower(r.Header.Get("X-Forwarded-Proto"))
	switch scheme {
	case "ws": // a WebSocket begins as a GET
		scheme = "http"
	case "wss":
		scheme = "https"
	case "http", "https":
	default:
		return nil, noTarget("X-Forwarded-Proto is %q, not http or https", scheme)
	}
	switch {
	case host == "" || strings.ContainsAny(host, "/?#@\\, "):
		return nil, noTarget("the original host is %q", host)
	case uri == "" || uri[0] != '/':
		return nil, noTarget("the original path is %q", uri)
	}
	return append(forms, scheme+"://"+host+uri), nil
}

// noTarget is the problem of a request that names no target, or two.
func noTarget(format string, args ...any) *web.Problem {
	return web.NewProblem(http.StatusBadRequest, "target", "no absolute target: "+format, args...)
}
