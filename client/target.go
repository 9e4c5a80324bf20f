package client

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unsafe"

	"github.com/robotsgate/robotsgate/policy"
)

// Decide returns the gate's verdict on u under the policy p: for the target as net/http
// sends it, and for each target that a server may make of its dot segments. It asks no
// network, no Cache and no clock. The error says why u or token cannot be decided on.
func Decide(p *policy.Policy, token string, u *url.URL) (policy.Decision, error) {
	if err := tokenMisuse("token", token); err != nil {
		return policy.Decision{}, err
	}
	if _, err := originOfURL(u); err != nil {
		return policy.Decision{}, err
	}
	target, err := requestTarget(nil, u)
	switch {
	case err != nil:
		return policy.Decision{}, err
	case target == robotsTarget:
		return unruled, nil
	case hasDotSegment(target):
		return decideDotFree(context.Background(), p.Group(token), target)
	}
	return p.Group(token).Decide(target), nil
}

// robotsTarget is implicitly allowed (RFC 9309 §2.2.2), whatever robots.txt says
// and whether or not it can be had.
const robotsTarget = "/robots.txt"

// targetBuffer is how long a path with a query may be for the gate to decide on it without an allocation.
const targetBuffer = 512

// maxTarget is how long a target may be that is decided on: a decision takes as long as the
// target and the file are long, multiplied. Few servers take half of it.
const maxTarget = 16 << 10

// requestTarget returns the origin-form request target (RFC 9112 §3.2.1) that
// net/http sends for u: the path as escaped there, and the query as it stands. The
// result may live in buf, so it must not outlast it.
//
// It is u.RequestURI without the allocation. Two things are refused that net/http
// would send as they are, because no two servers agree on what they name: a path that
// starts with no slash (the asterisk of "OPTIONS *" among them), and a query with a
// space or a "#", which end the target early. Control characters net/http refuses itself.
// So is what is longer than maxTarget: a redirect can be a megabyte.
func requestTarget(buf []byte, u *url.URL) (string, error) {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if path[0] != '/' {
		return "", fmt.Errorf("client: the URL's path %q does not start with a slash", cut(path))
	}
	if len(path)+len(u.RawQuery) >= maxTarget { // perhaps, with the question mark
		if n := len(u.RequestURI()); n > maxTarget {
			return "", fmt.Errorf("client: the URL's path and query %q are %d bytes: shorten them to %d, the most that is decided on", cut(path), n, maxTarget)
		}
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

// hasDotSegment reports whether a server might find a "." or ".." segment (RFC 3986 §3.3)
// in the path of target: with dots escaped, between slashes that are escaped or
// backslashes, or with parameters (RFC 3986 §3.3 on ";"). The path ends at the first "?";
// lighttpd 1.4.69 resolves what is before the last.
func hasDotSegment(target string) bool {
	if strings.IndexByte(target, '%') < 0 && !strings.Contains(target, "/.") {
		return false // as good as always
	}
	end := strings.LastIndexByte(target, '?')
	if end < 0 {
		end = len(target)
	}
	for i := range end {
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

// decideDotFree decides on what servers make of a target with dot segments. net/http
// sends them as written, and /public/../private asks many servers for /private; with a
// %2F in place of a slash, some. The gate wants every form allowed. That is stricter than
// RFC 9309, which knows only the target as sent. The error is the context's, or says that
// the forms are too many to decide on.
func decideDotFree(ctx context.Context, group policy.Group, target string) (d policy.Decision, err error) {
	forms := []string{target}
	size := 0
	for i := 0; i < len(forms); i++ {
		if size += len(forms[i]); size > maxForms {
			return policy.Decision{}, fmt.Errorf("client: the URL's path and query %q have dot segments that servers can read in too many ways: write it without", cut(target))
		}
		if ctx.Err() != nil { // a hostile file makes each decision slow
			return policy.Decision{}, context.Cause(ctx)
		}
		if d = group.Decide(forms[i]); !d.Allowed {
			return d, nil
		}
		// What is left may be resolved again: by another server behind the first, or later on.
		first, last := strings.IndexByte(forms[i], '?'), strings.LastIndexByte(forms[i], '?')
		forms = appendResolved(forms, forms[i], first)
		if last > first { // see hasDotSegment
			forms = appendResolved(forms, forms[i], last)
		}
	}
	return d, nil
}

// maxForms is how long all forms of a target may be together. A path that was not made to
// have many has fewer than ten.
const maxForms = 4 * maxTarget

// appendResolved appends to forms those that servers resolve target to, with the dot
// segments of its path removed, as far as they are new. The path ends at the index
// end, or with the target if that is -1.
func appendResolved(forms []string, target string, end int) []string {
	path, query := target, ""
	if end >= 0 {
		path, query = target[:end], target[end:]
	}
	add := func(path string) {
		if f := path + query; !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	for _, unescape := range unescapings {
		for _, params := range []func(segment string) string{withParams, withoutParams, withoutParamsOfDots} {
			segments := strings.Split(unescape.Replace(path), "/")[1:]
			for i, s := range segments {
				segments[i] = params(s)
			}
			resolved := withoutDotSegments(segments)
			add(resolved)
			add(withoutEmptySegments(resolved))
			add(withoutDotSegments(strings.Split(withoutEmptySegments("/"+strings.Join(segments, "/")), "/")[1:]))
		}
	}
	return forms
}

// unescapings are what servers take for a dot and for a slash: an escaped dot always, an
// escaped slash if they unescape before they split, and a backslash on some systems. None
// unescapes twice.
var unescapings = []*strings.Replacer{
	strings.NewReplacer("%2e", ".", "%2E", "."),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%5c", "/", "%5C", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/"),
}

// Parameters of a segment begin with a semicolon (RFC 3986 §3.3). Servlet containers cut them
// off before they resolve; others know none.

func withParams(segment string) string { return segment }

func withoutParams(segment string) string {
	name, _, _ := strings.Cut(segment, ";")
	return name
}

func withoutParamsOfDots(segment string) string {
	if name := withoutParams(segment); name == "." || name == ".." {
		return name
	}
	return segment
}

// withoutDotSegments is the path that is left of the segments (RFC 3986 §5.2.4).
func withoutDotSegments(segments []string) string {
	var kept []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
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
	return "/" + strings.Join(kept, "/")
}

// withoutEmptySegments merges slashes.
func withoutEmptySegments(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if i == 0 || path[i] != '/' || path[i-1] != '/' {
			b.WriteByte(path[i])
		}
	}
	return b.String()
}

func schemeError(u *url.URL) error {
	return fmt.Errorf("client: URL %q is not of scheme http or https: robots.txt cannot be asked about it", cut(u.Redacted()))
}

func opaqueError(u *url.URL) error {
	return fmt.Errorf("client: URL %q is opaque: give it a host and a path, so that robots.txt can be found", cut(u.Redacted()))
}
