package web

// Who may ask. serve checks the Host field and the bearer token, proxy the token as the password of a proxy, and what
// watches the proxy both as serve does.

import (
	"crypto/subtle"
	"fmt"
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
	if g.admits(bearer(r.Header.Get("Authorization"))) {
		return nil
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	return NewProblem(http.StatusUnauthorized, "token", "the bearer token of --token-file is missing or wrong")
}

// Protect is h for those who may ask. The Host field comes first: a page whose own name now has this address (DNS
// rebinding) must not even learn that there is a token. Probes have none to bring.
func (g *Guard) Protect(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := g.CheckHost(r)
		if probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"; p == nil && !probe {
			p = g.CheckToken(w, r)
		}
		if p != nil {
			p.Write(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// CheckProxyToken is CheckToken for what a proxy asks its clients (RFC 9110 §11.7). Most of them
// know the Basic scheme only: there the token is the password, of any user.
func (g *Guard) CheckProxyToken(r *http.Request) *Problem {
	field := r.Header.Get("Proxy-Authorization")
	basic := http.Request{Header: http.Header{"Authorization": {field}}}
	if _, password, _ := basic.BasicAuth(); g.admits(password) || g.admits(bearer(field)) {
		return nil
	}
	return NewProblem(http.StatusProxyAuthRequired, "token",
		"the token of --token-file is missing or wrong: give it as the password of the proxy")
}

// admits takes as long for each token of a length, so that it cannot be guessed byte by byte.
func (g *Guard) admits(token string) bool {
	return g.Token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(g.Token)) == 1
}

// bearer is the token in a field of RFC 6750 §2.1, or empty.
func bearer(field string) string {
	scheme, token, _ := strings.Cut(field, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
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
//   - X-Original-URL, as nginx is configured to set it;
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
	field := r.Header.Get
	var forms []string
	if text := field("X-Original-Url"); text != "" {
		forms = append(forms, text)
	}
	// A WebSocket (ws, wss) begins as a GET.
	proto := strings.Replace(strings.ToLower(field("X-Forwarded-Proto")), "ws", "http", 1)
	if host, uri := field("X-Forwarded-Host"), field("X-Forwarded-Uri"); host != "" || uri != "" {
		forms = append(forms, joined(proto, host, uri))
	}
	if path := strings.TrimPrefix(r.RequestURI, prefix); strings.HasPrefix(path, "/") {
		forms = append(forms, joined(proto, r.Host, path))
	}
	if forms == nil {
		return "", noTarget("neither X-Original-URL nor X-Forwarded-Proto, -Host and -Uri is there")
	}
	for _, f := range forms {
		u, err := url.Parse(f)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return "", noTarget("%q is no absolute URL", f)
		case strings.Contains(f, "#"):
			return "", noTarget("%q has a fragment, and no request has one", f)
		case f != forms[0]:
			return "", noTarget("%q and %q: which of them is the original request?", forms[0], f)
		}
	}
	return forms[0], nil
}

// joined is the URL of its pieces. If one of them would reach into the next, it is a text that is no URL.
func joined(proto, host, uri string) string {
	fits := host != "" && !strings.ContainsAny(host, "/?#@\\, ") && strings.HasPrefix(uri, "/")
	if !fits || proto != "http" && proto != "https" {
		return fmt.Sprintf("X-Forwarded-Proto %s, host %s, path %s", proto, host, uri)
	}
	return proto + "://" + host + uri
}

// noTarget is the problem of a request that names no target, or two.
func noTarget(format string, args ...any) *Problem {
	return NewProblem(http.StatusBadRequest, "target", "no absolute target: "+format, args...)
}
