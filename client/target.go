package client

import (
	"fmt"
	"net/url"
	"strings"
	"unsafe"
)

// robotsTarget is implicitly allowed (RFC 9309 §2.2.2), whatever robots.txt says
// and whether or not it can be had.
const robotsTarget = "/robots.txt"

// targetBuffer is how long a path with a query may be for the gate to decide on it without an allocation.
const targetBuffer = 512

// requestTarget returns the origin-form request target (RFC 9112 §3.2.1) that
// net/http sends for u: the path as escaped there, and the query as it stands. The
// result may live in buf, so it must not outlast it.
//
// It is u.RequestURI without the allocation. Two things are refused that net/http
// would send as they are, because no two servers agree on what they name: a path that
// starts with no slash (the asterisk of "OPTIONS *" among them), and a query with a
// space or a "#", which end the target early. Control characters net/http refuses itself.
func requestTarget(buf []byte, u *url.URL) (string, error) {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if path[0] != '/' {
		return "", fmt.Errorf("client: the URL's path %q does not start with a slash", cut(path))
	}
	if strings.ContainsAny(u.RawQuery, " #") {
		return "", fmt.Errorf("client: the URL's query %q holds a space or a #: write them as %%20 and %%23", cut(u.RawQuery))
	}
	if !u.ForceQuery && u.RawQuery == "" {
		return path, nil
	}
	if n := len(path) + 1 + len(u.RawQuery); n > cap(buf) {
		return path + "?" + u.RawQuery, nil
	}
	buf = append(append(append(buf, path...), '?'), u.RawQuery...)
	// The octets are not written again while the string is in use: every caller
	// passes a buffer of its own and keeps the string no longer than that.
	return unsafe.String(unsafe.SliceData(buf), len(buf)), nil
}

// hasDotSegment says whether a server might find a "." or ".." segment (RFC 3986 §3.3)
// in the path of target: with dots escaped, between slashes that are escaped or
// backslashes, or with parameters (RFC 3986 §3.3 on ";").
func hasDotSegment(target string) bool {
	if strings.IndexByte(target, '%') < 0 && !strings.Contains(target, "/.") {
		return false // as good as always
	}
	for i := 0; i < len(target) && target[i] != '?'; i++ {
		if n := separator(target[i:]); n > 0 && startsWithDotSegment(target[i+n:]) {
			return true
		}
	}
	return false
}

// separator is the length of what separates segments at the start of s, or 0.
func separator(s string) int {
	switch {
	case s[0] == '/':
		return 1
	case s[0] == '%' && len(s) >= 3 && (s[1] == '2' && s[2]|0x20 == 'f' || s[1] == '5' && s[2]|0x20 == 'c'):
		return 3
	}
	return 0
}

func startsWithDotSegment(s string) bool {
	dots := 0
	for ; ; dots++ {
		switch {
		case strings.HasPrefix(s, "."):
			s = s[1:]
		case len(s) >= 3 && s[0] == '%' && s[1] == '2' && s[2]|0x20 == 'e':
			s = s[3:]
		default:
			return (dots == 1 || dots == 2) && (s == "" || s[0] == '?' || s[0] == ';' || separator(s) > 0)
		}
	}
}

// withoutDotSegments removes "." and ".." segments as a server does that resolves
// them (RFC 3986 §5.2.4), escaped dots included. net/http sends dot segments as
// written, so /public/../private asks many servers for /private. The gate wants both
// forms allowed; that is stricter than RFC 9309, which knows only the first.
func withoutDotSegments(target string) string {
	path, query, hasQuery := strings.Cut(target, "?")
	var kept []string
	segments := strings.Split(path, "/")[1:]
	for i, s := range segments {
		last := i == len(segments)-1
		name, _, _ := strings.Cut(escapedDot.Replace(s), ";")
		switch name {
		case ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	path = "/" + strings.Join(kept, "/")
	if hasQuery {
		return path + "?" + query
	}
	return path
}

// unescapedSlashes is the target for servers that unescape before they look for dot
// segments, as some do: /public/..%2Fprivate is /private to them. Some take a backslash
// for a slash, too.
func unescapedSlashes(target string) string {
	path, query, hasQuery := strings.Cut(target, "?")
	path = escapedSlash.Replace(path)
	if hasQuery {
		return path + "?" + query
	}
	return path
}

var (
	escapedDot   = strings.NewReplacer("%2e", ".", "%2E", ".")
	escapedSlash = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/")
)

func opaqueError(u *url.URL) error {
	return fmt.Errorf("client: URL %q is opaque: give it a host and a path, so that robots.txt can be found", cut(u.Redacted()))
}
