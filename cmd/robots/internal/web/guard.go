package web

// Who may ask. serve checks the Host field and the bearer token, proxy the token as the password of a proxy,
// and /metrics of the proxy both as serve does.

import (
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Guard decides who may ask. It must not change while requests come. With the zero value anyone may, under any name.
type Guard struct {
	// Loopback tells that the service listens on a loopback address.
	Loopback bool

	// Hosts are names that the Host field may have besides those of the loopback. They are
	// checked if there are any, and always on a loopback address: a web page could otherwise
	// give its own name that address, and read what the service answers (DNS rebinding).
	Hosts []string

	// Token is the bearer token (RFC 6750 §2.1) that each request has to bring. If empty, none.
	Token string
}

// CheckHost returns what is wrong with the Host field of a request, or nil.
func (g *Guard) CheckHost(r *http.Request) *Problem {
	if !g.Loopback && len(g.Hosts) == 0 {
		return nil
	}
	host := hostOf(r.Host)
	if isLoopback(host) || slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return nil
	}
	return NewProblem(http.StatusMisdirectedRequest, "host",
		"the Host field is %.60q: ask under a loopback address, localhost or, of serve, a name of --host", r.Host)
}

// CheckToken is CheckHost for the token. It sets the field that a 401 must have (RFC 9110 §15.5.2).
func (g *Guard) CheckToken(w http.ResponseWriter, r *http.Request) *Problem {
	if g.Token == "" {
		return nil
	}
	if scheme, token := credentials(r, "Authorization"); scheme == "bearer" && g.matches(token) {
		return nil
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	return NewProblem(http.StatusUnauthorized, "token", "the bearer token of --token-file is missing or wrong")
}

// CheckProxyToken is CheckToken for what a proxy asks its clients (RFC 9110 §11.7). Most of them
// know the Basic scheme only: there the token is the password, of any user.
func (g *Guard) CheckProxyToken(r *http.Request) *Problem {
	if g.Token == "" {
		return nil
	}
	scheme, token := credentials(r, "Proxy-Authorization")
	if scheme == "basic" {
		pair, _ := base64.StdEncoding.DecodeString(token)
		_, token, _ = strings.Cut(string(pair), ":")
	}
	if (scheme == "basic" || scheme == "bearer") && g.matches(token) {
		return nil
	}
	return NewProblem(http.StatusProxyAuthRequired, "token",
		"the token of --token-file is missing or wrong: give it as the password of the proxy")
}

// matches takes as long for each token of a length, so that it cannot be guessed byte by byte.
func (g *Guard) matches(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.Token)) == 1
}

// credentials cuts a field of RFC 9110 §11.4 into its scheme, in lower case, and what follows.
func credentials(r *http.Request, field string) (scheme, rest string) {
	scheme, rest, _ = strings.Cut(r.Header.Get(field), " ")
	return strings.ToLower(scheme), strings.TrimLeft(rest, " ")
}

// hostOf is a Host field without its port and without the brackets of an IPv6 address.
func hostOf(field string) string {
	if host, _, err := net.SplitHostPort(field); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(field, "["), "]")
}

// isLoopback reports whether a host is an address of the loopback, or the name for it.
func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// Gateways are the networks that gateways ask from. What other clients say about an original request is not believed.
type Gateways []netip.Prefix

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
