package client

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/fetch"
)

// robotsTarget is implicitly allowed (RFC 9309 §2.2.2), whatever robots.txt says and even if it is unreachable.
const robotsTarget = "/robots.txt"

// maxTarget is how many bytes of a target are decided on at most. The time of a decision grows with the length of the
// target times that of the file. Few servers take a target half as long, but a redirect can have a megabyte.
const maxTarget = 16 << 10

// targetOf returns the request target in origin form (RFC 9112 §3.2.1) that net/http sends for u: the escaped path, and
// the query unchanged. A target that servers read in different ways is an error: a decision would be about one of them.
// net/http itself refuses control characters.
func targetOf(u *url.URL) (string, error) {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	n := len(path)
	query := u.ForceQuery || u.RawQuery != ""
	if query {
		n += len("?") + len(u.RawQuery)
	}
	switch {
	case path[0] != '/': // the asterisk of "OPTIONS *" too
		return "", notSentf("client: the URL's path %q does not start with a slash", cut(path))
	case n > maxTarget:
		return "", notSentf("client: the URL's path and query %q are %d bytes: shorten them to %d, "+
			"the most that is decided on", cut(u.RequestURI()), n, maxTarget)
	case hasDotSegment(path) || strings.Contains(u.RawQuery, "?") && hasDotSegment(path+"?"+untilLast(u.RawQuery)):
		return "", notSentf("client: the URL's path %q has a dot segment, which servers resolve in different ways: "+
			"resolve it first, as url.URL.ResolveReference does, an escaped one by hand", cut(path))
	case !query:
		return path, nil
	case strings.Contains(u.RawQuery, " ") || strings.Contains(u.RawQuery, "#"): // which may end the target early
		return "", notSentf("client: the URL's query %q holds a space or a #: write them as %%20 and %%23", cut(u.RawQuery))
	}
	return path + "?" + u.RawQuery, nil
}

// hasDotSegment reports whether a server might find a "." or ".." segment (RFC 3986 §3.3) in a path: with dots escaped,
// between escaped slashes or backslashes, or with parameters (RFC 3986 §3.3 on ";").
func hasDotSegment(path string) bool {
	if strings.IndexByte(path, '%') < 0 && !strings.Contains(path, "/.") {
		return false // nearly always
	}
	for i := range len(path) {
		if n := separator(path[i:]); n > 0 && startsWithDotSegment(path[i+n:]) {
			return true
		}
	}
	return false
}

// untilLast returns what comes before the last question mark: lighttpd 1.4.69 takes that for a part of the path.
func untilLast(query string) string { return query[:max(strings.LastIndexByte(query, '?'), 0)] }

// separator returns the length of the separator of segments at the start of s, or 0.
func separator(s string) int {
	switch {
	case s[0] == '/':
		return 1
	case len(s) >= 3 && (strings.EqualFold(s[:3], "%2f") || strings.EqualFold(s[:3], "%5c")):
		return 3
	}
	return 0
}

func startsWithDotSegment(s string) bool {
	for dots := 0; ; dots++ {
		switch {
		case strings.HasPrefix(s, "."):
			s = s[1:]
		case len(s) >= 3 && strings.EqualFold(s[:3], "%2e"):
			s = s[3:]
		default:
			return (dots == 1 || dots == 2) && (s == "" || s[0] == ';' || s[0] == '?' || separator(s) > 0)
		}
	}
}

// isUngated reports whether u has a scheme that robots.txt does not bind. A URL built by hand may have "HTTP" or no
// scheme at all; neither is a way around the gate.
func isUngated(u *url.URL) bool {
	return u != nil && u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "" &&
		!strings.EqualFold(u.Scheme, "https") && !strings.EqualFold(u.Scheme, "http") && !isFTP(u)
}

func isFTP(u *url.URL) bool { return strings.EqualFold(u.Scheme, "ftp") }

func schemeError(u *url.URL) error {
	return notSentf("client: URL %q is not of scheme http, https or ftp: robots.txt does not cover it", cut(u.Redacted()))
}

var errConnect = notSentf("client: CONNECT asks for a tunnel, which robots.txt cannot rule on: " +
	"use a dialer, or the Proxy of an http.Transport")

// originOf returns the origin that req names on the wire: its Host counts before the URL's.
func originOf(req *http.Request) (fetch.Origin, error) {
	u := req.URL
	switch {
	case u == nil:
		return fetch.Origin{}, notSentf("client: request has no URL")
	case u.Opaque != "":
		return fetch.Origin{}, notSentf("client: URL %q is opaque: robots.txt needs a host and a path", cut(u.Redacted()))
	case u.Host == "":
		return fetch.Origin{}, notSentf("client: no Host in request URL %q: robots.txt needs one", cut(u.Redacted()))
	case u.Scheme != "https" && isFTP(u):
		if err := checkFTP(u); err != nil {
			return fetch.Origin{}, err
		}
	}
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return fetch.Origin{}, notSentf("client: %w", err)
	}
	return o, nil
}

// checkFTP returns why no request for an ftp URL is sent, or nil. The path becomes a line of a command, which a line
// break would end, there is no query (RFC 1738 §3.2), and clients make "/a" of "//a", "/%2Fa" and "/a;type=i" (§3.2.2).
func checkFTP(u *url.URL) error {
	path := u.EscapedPath()
	switch {
	case strings.ContainsAny(u.Path+u.RawPath, "\r\n\x00"):
		return notSentf("client: the path of URL %q holds %%0D, %%0A or %%00: FTP cannot ask for it", cut(u.Redacted()))
	case u.ForceQuery || u.RawQuery != "":
		return notSentf("client: URL %q: FTP knows no query, so write the question mark as %%3F", cut(u.Redacted()))
	case strings.Contains(path, "//") || strings.Contains(strings.ToLower(path), "%2f") || strings.Contains(path, ";"):
		return notSentf("client: FTP clients differ on the path of URL %q: write it without //, %%2F, ;", cut(u.Redacted()))
	}
	return nil
}
