package web

// Which request a gateway asks about. A wrong answer to that would be a permission for another URL, so what
// is doubtful is a problem, which no gateway takes for a permission.

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Gateways are the networks that gateways ask from. What other clients say about an original
// request is not believed.
type Gateways []netip.Prefix

// Trusts reports whether r comes from a gateway.
func (g Gateways) Trusts(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	addr := from.Addr().Unmap().WithZone("")
	return err == nil && slices.ContainsFunc(g, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// Target returns the URL of the original request, which arrives in one of three forms:
//
//   - X-Original-URL, as nginx is told to set it;
//   - X-Forwarded-Proto, -Host and -Uri, as Caddy and Traefik set them;
//   - the path behind prefix, with Host and X-Forwarded-Proto, from Envoy.
//
// A gateway passes on fields of its client that it does not set itself. So where there are
// two forms, both have to name the same URL, and no field may occur twice: of two User-Agent fields,
// the site may take the other one. What follows a # is not decided on, and is a part of the path to some sites, which
// may find another page behind it: no request has one (RFC 9112 §3.2).
func (g Gateways) Target(r *http.Request, prefix string) (string, *Problem) {
	if !g.Trusts(r) {
		return "", noTarget("%s is in none of the --trusted networks", hostOf(r.RemoteAddr))
	}
	for _, name := range []string{"User-Agent", "X-Original-Url", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Uri"} {
		if len(r.Header[name]) > 1 {
			return "", NewProblem(http.StatusBadRequest, "target", "%s occurs twice: which of them is of the original request?", name)
		}
	}
	forms, p := forms(r, prefix)
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
func forms(r *http.Request, prefix string) (forms []string, p *Problem) {
	if text := r.Header.Get("X-Original-Url"); text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, noTarget("X-Original-URL is %q: no absolute URL", text)
		}
		if strings.Contains(text, "#") {
			return nil, noTarget("X-Original-URL is %q: no request has a fragment", text)
		}
		forms = append(forms, text)
	}
	host, uri := r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Uri")
	if host != "" || uri != "" {
		if forms, p = forwarded(forms, r, host, uri); p != nil {
			return nil, p
		}
	}
	if path := strings.TrimPrefix(r.RequestURI, prefix); path != "" && path[0] == '/' {
		return forwarded(forms, r, r.Host, path)
	}
	return forms, nil
}

// forwarded appends the URL of an original request in parts.
func forwarded(forms []string, r *http.Request, host, uri string) ([]string, *Problem) {
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
	case uri == "" || uri[0] != '/' || strings.Contains(uri, "#"):
		return nil, noTarget("the original path is %q", uri)
	}
	return append(forms, scheme+"://"+host+uri), nil
}

// noTarget is the problem of a request that names no target, or two.
func noTarget(format string, args ...any) *Problem {
	return NewProblem(http.StatusBadRequest, "target", "no absolute target: "+format, args...)
}
