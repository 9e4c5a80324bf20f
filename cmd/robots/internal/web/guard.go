package web

// Who may ask. serve checks the Host field and the bearer token, proxy the token as the password of a proxy,
// and /metrics of the proxy both as serve does.

import (
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Guard decides who may ask. It must not change while requests come. With the zero value anyone may, under
// any name.
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
