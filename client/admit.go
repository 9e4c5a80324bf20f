package client

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// admit decides on req. It returns what is to be sent, req itself or a copy, and the
// origin whose pace to keep. A request that keeps none has the zero Origin. by is the agreement
// that lets it through, if one does.
func (g *gate) admit(req *http.Request) (out *http.Request, o fetch.Origin, by *Agreement, err error) {
	own := gatingOf(req.Context())
	if g.misuse == nil && isOther(req.URL) && g.isFree(req.URL) {
		return req, o, nil, g.checkPublic(req, o)
	}
	agent, hasAgent := req.Header["User-Agent"]
	if g.misuse == nil && own.bypass {
		if o, err = originOf(req); err != nil {
			return nil, o, nil, err
		}
		out = g.toSend(req, o, hasAgent)
		return out, fetch.Origin{}, nil, g.checkPublic(out, o)
	}
	if n := len(req.Header); n > 1 || n == 1 && !hasAgent { // to go through a map takes a fifth of what the gate does
		if err := fetch.CheckHeader(req.Header); err != nil {
			return nil, o, nil, fmt.Errorf("client: %w", err)
		}
	}
	r := ruling{question: question{token: g.tokenFor(own, agent, hasAgent)}, own: own}
	ctx, stop := untilCancel(req)
	defer stop()
	if err := g.ask(ctx, req, &r); err != nil {
		return nil, r.origin, nil, err
	}
	if !r.Allowed {
		return nil, r.origin, nil, g.refusal(req, &r, time.Time{}, nil, r.now)
	}
	if r.late || r.agreement != nil && over(r.agreement.Until, time.Now()) { // Trace.Decided took what it took
		if err := g.stillAllowed(ctx, req, r.agreement); err != nil {
			return nil, r.origin, nil, err
		}
	}
	out = g.toSend(req, r.origin, hasAgent)
	return out, r.origin, r.agreement, g.checkPublic(out, r.origin)
}

// toSend returns req, or a copy of it with what the wire needs: our User-Agent if it has
// none, and the canonical spelling of the origin that was decided on.
func (g *gate) toSend(req *http.Request, o fetch.Origin, hasAgent bool) *http.Request {
	out := req
	if !hasAgent && g.agent != "" {
		out = shallowCopy(out, req)
		if len(req.Header) == 0 {
			out.Header, _ = g.lent.Get().(http.Header)
		}
		if out.Header == nil || len(req.Header) > 0 {
			out.Header = make(http.Header, len(req.Header)+1)
			maps.Copy(out.Header, req.Header)
			out.Header["User-Agent"] = g.agentField
		}
	}
	if scheme := req.URL.Scheme; scheme != "http" && scheme != "https" || req.URL.Host != o.URLHost() && !g.sameHost(req.URL.Host, o.URLHost(), scheme) {
		out = shallowCopy(out, req)
		u := *req.URL
		u.Scheme, u.Host = strings.ToLower(scheme), o.URLHost()
		out.URL = &u
		if req.Host == req.URL.Host {
			out.Host = "" // net/http takes it from the URL
		}
	}
	if out.Host != "" && out.Host != req.URL.Host && !g.sameHost(out.Host, o.HostField(), req.URL.Scheme) {
		out = shallowCopy(out, req)
		out.Host = o.HostField()
	}
	return out
}

// takeBack takes the header that toSend made for a request without any, to lend it again: a map of one field is
// two allocations. Base has answered, and must not write to it (http.RoundTripper); if it did, or if others may see
// it in the Response, it is not lent again. The Response has the caller's request.
func (g *gate) takeBack(req, out *http.Request, res *http.Response) *http.Response {
	if out == req || len(req.Header) > 0 || res == nil || out.URL != req.URL || out.Host != req.Host {
		return res
	}
	switch res.Request {
	case out:
		res.Request = req
	case nil:
	default:
		return res
	}
	if agent := out.Header["User-Agent"]; len(out.Header) == 1 && len(agent) == 1 && &agent[0] == &g.agentField[0] {
		g.lent.Put(out.Header)
	}
	return res
}

// sameHost reports whether written and canonical identify the same host, both when
// dialing and in the Host field. ASCII case and the scheme's own port change neither, so
// they may stay as written, unless they are signed: then the canonical form is (RFC 9421 §2.2.3), and not all
// receivers make it. For some spellings of an internationalised name net/http dials one host and names another.
func (g *gate) sameHost(written, canonical, scheme string) bool {
	if written == canonical || g.sign != nil {
		return written == canonical
	}
	if scheme == "https" {
		written = strings.TrimSuffix(written, ":443")
	} else {
		written = strings.TrimSuffix(written, ":80")
	}
	// canonical is ASCII: with equal lengths no other letter can fold to one of its own.
	return len(written) == len(canonical) && strings.EqualFold(written, canonical)
}
