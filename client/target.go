package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// DecideWith returns the gate's answer for u under the policy p: for the target as net/http sends
// it, and for each target that a server may make of its dot segments. The uses are like
// Transport.Uses. DecideWith needs no network, no Cache and no clock, so the Answer has no times.
// An ftp URL is decided on as by a Transport whose Fetcher reads ftp. The error says why u or token
// cannot be decided on.
func DecideWith(p *policy.Policy, token string, u *url.URL, uses ...string) (Answer, error) {
	return decideWith(nil, p, token, u, uses)
}

func decideWith(agreed *Agreements, p *policy.Policy, token string, u *url.URL, uses []string) (Answer, error) {
	if err := cmp.Or(tokenMisuse("token", token), usesMisuse(uses)); err != nil {
		return Answer{}, err
	}
	ftp := isOther(u)
	if ftp && !strings.EqualFold(u.Scheme, "ftp") {
		return Answer{}, schemeError(u)
	}
	o, err := originOf(&http.Request{URL: u})
	if err != nil {
		return Answer{}, err
	}
	target, err := requestTarget(nil, u)
	switch {
	case err != nil:
		return Answer{}, err
	case target == robotsTarget:
		return Answer{Decision: unruled, Token: token}, nil
	}
	q := question{policy: p, group: p.Group(token), token: token, uses: uses, ftp: ftp, agreed: agreed.of(o)}
	if err = q.decide(context.Background(), target); err != nil {
		return Answer{}, err
	}
	return q.answer(), nil
}

// question is what is asked about a target, of a policy, for a product token, with the uses declared; and the
// answer. Returned by value that would be copied at every step of the warm path.
type question struct {
	policy *policy.Policy
	group  policy.Group // of token
	token  string
	uses   []string
	ftp    bool         // what sends it makes commands of its path in its own way
	agreed []*Agreement // with the site

	policy.Decision // zero after an error
	use             string
	by              *usage.Statement // with ReasonUse
	agreement       *Agreement       // that ends first of those that have decided on a form of the target
	settled         *policy.Decision // by it
}

func (q *question) answer() Answer {
	a := Answer{Decision: q.Decision, Token: q.token, Use: q.use, By: q.by}
	if q.Reason == policy.ReasonAgreement {
		a.Agreement, a.Until = q.agreement, q.agreement.Until
	}
	return a
}

// decide is the verdict on a target. The error is the context's cause, or says that the target can be read in too
// many ways.
func (q *question) decide(ctx context.Context, target string) error {
	if q.decideForm(target); q.Allowed && (q.ftp || hasDotSegment(target)) {
		return q.decideDotFree(ctx, strings.Clone(target)) // the rare case pays, the caller's buffer stays on the stack
	}
	return nil
}

// decideForm decides on a target as it is written.
func (q *question) decideForm(target string) {
	if q.Decision = q.group.Decide(target); len(q.agreed) > 0 {
		q.agree(target)
	}
	if q.Allowed && len(q.uses) > 0 {
		if q.use, q.by = disallowedUse(q.policy, q.token, target, q.uses); q.by != nil {
			q.Decision = policy.Decision{Reason: policy.ReasonUse} // the rule that allows did not decide
		}
	}
}

var errConnect = errors.New("client: CONNECT asks for a tunnel, which robots.txt cannot rule on: " +
	"use a dialer, or the Proxy of an http.Transport")

// robotsTarget is implicitly allowed (RFC 9309 §2.2.2), whatever robots.txt says and even
// if it is unreachable.
const robotsTarget = "/robots.txt"

// targetBuffer is how long a path with a query may be to be decided on without an
// allocation.
const targetBuffer = 512

// maxTarget is how long a target may be that is decided on. The time of a decision grows
// with the length of the target multiplied by that of the file. Few servers take a target
// half as long.
const maxTarget = 16 << 10

// requestTarget returns the origin-form request target (RFC 9112 §3.2.1) that net/http
// sends for u: the escaped path, and the query unchanged. The result may live in buf and
// must not outlast it.
//
// It is u.RequestURI without the allocation, but refuses what servers read differently: a
// path without a leading slash (the asterisk of "OPTIONS *" too), and a query with a space
// or a "#", which may end the target early. net/http itself refuses control characters. A
// target longer than maxTarget is refused as well: a redirect can be a megabyte.
func requestTarget(buf []byte, u *url.URL) (string, error) {
	return targetAfter(buf, plainPath(u), u)
}

// targetAfter is requestTarget if plainPath is known.
func targetAfter(buf []byte, path string, u *url.URL) (string, error) {
	if path == "" {
		path, buf = escapedPath(buf, u)
	}
	if path[0] != '/' {
		return "", fmt.Errorf("client: the URL's path %q does not start with a slash", cut(u.EscapedPath())) // path stays on the stack
	}
	if len(path)+len(u.RawQuery) >= maxTarget { // perhaps, with the question mark
		if target := u.RequestURI(); len(target) > maxTarget {
			return "", fmt.Errorf("client: the URL's path and query %q are %d bytes: shorten them to %d, "+
				"the most that is decided on", cut(target), len(target), maxTarget)
		}
	}
	if !u.ForceQuery && u.RawQuery == "" {
		return path, nil
	}
	if strings.IndexByte(u.RawQuery, ' ') >= 0 || strings.IndexByte(u.RawQuery, '#') >= 0 {
		return "", fmt.Errorf("client: the URL's query %q holds a space or a #: write them as %%20 and %%23",
			cut(u.RawQuery))
	}
	if n := len(path) + 1 + len(u.RawQuery); n > cap(buf) {
		return path + "?" + u.RawQuery, nil
	}
	if len(buf) == 0 {
		buf = append(buf, path...)
	}
	return view(append(append(buf, '?'), u.RawQuery...)), nil
}

// view returns the bytes of a buffer as a string. No byte is written again while the string is
// in use: each caller of requestTarget passes its own buffer, and keeps the string no longer.
func view(buf []byte) string { return unsafe.String(unsafe.SliceData(buf), len(buf)) }

// plainPath returns u.EscapedPath if that stands in u, or else nothing. No path at all is "/".
func plainPath(u *url.URL) string {
	switch {
	case u.RawPath != "" && isEscaped(u.RawPath, u.Path):
		return u.RawPath
	case u.Path == "":
		return "/"
	}
	for set, i := pathBytes(), 0; i < len(u.Path); i++ {
		if set[u.Path[i]]&isPlain == 0 {
			return ""
		}
	}
	return u.Path
}

// escapedPath is u.EscapedPath of a path that begins with a slash and does not stand in u. It stands in buf, if that
// has room for it.
func escapedPath(buf []byte, u *url.URL) (string, []byte) {
	set, n := pathBytes(), len(u.Path)
	for i := range len(u.Path) {
		if set[u.Path[i]]&isPlain == 0 {
			n += len("FF")
		}
	}
	if n > cap(buf) {
		return u.EscapedPath(), buf
	}
	const digits = "0123456789ABCDEF"
	for i := range len(u.Path) {
		if c := u.Path[i]; set[c]&isPlain != 0 {
			buf = append(buf, c)
		} else {
			buf = append(buf, '%', digits[c>>4], digits[c&15])
		}
	}
	return view(buf), buf
}

// pathBytes tells, in isPlain and inRaw, of each byte whether net/url keeps it as it is in a Path, and in a RawPath.
// It is asked, because what it does decides what is sent.
var pathBytes = sync.OnceValue(func() *[256]uint8 {
	set := new([256]uint8)
	for c := range set {
		path := "/" + string([]byte{byte(c)})
		if (&url.URL{Path: path}).EscapedPath() == path {
			set[c] |= isPlain
		}
		if (&url.URL{Path: path, RawPath: path}).EscapedPath() == path {
			set[c] |= inRaw
		}
	}
	return set
})

const (
	isPlain = 1 << iota
	inRaw
)

// isEscaped reports whether raw is a form of path (RFC 3986 §2.1) that net/url takes.
func isEscaped(raw, path string) bool {
	set, n := pathBytes(), 0
	for i := 0; i < len(raw); i, n = i+1, n+1 {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return false
			}
			octet, err := strconv.ParseUint(raw[i+1:i+3], 16, 8)
			if err != nil {
				return false
			}
			c, i = byte(octet), i+2
		} else if set[c]&inRaw == 0 {
			return false
		}
		if n == len(path) || path[n] != c {
			return false
		}
	}
	return n == len(path)
}

// hasDotSegment reports whether a server might find a "." or ".." segment (RFC 3986 §3.3)
// in the path of target: with dots escaped, between slashes that are escaped or
// backslashes, or with parameters (RFC 3986 §3.3 on ";"). The path ends at the first "?";
// lighttpd 1.4.69 resolves what is before the last.
func hasDotSegment(target string) bool {
	if strings.IndexByte(target, '%') < 0 && !strings.Contains(target, "/.") {
		return false // nearly always
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

// separator returns the length of the separator of segments at the start of s, or 0.
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

// decideDotFree decides on every form that servers make of a target with dot segments, which is allowed as written.
// net/http sends such a target as written, and /public/../private asks many servers for
// /private. With a %2F instead of a slash, it asks some. All forms must be allowed. That
// is stricter than RFC 9309, which knows only the target as sent. Every ftp target is decided on
// so: what sends it reads "//", "%2F" and ";type=a" in its own way too (RFC 1738 §3.2.2).
func (q *question) decideDotFree(ctx context.Context, target string) error {
	forms := []string{target}
	size := 0
	for i := 0; i < len(forms); i++ {
		if size += len(forms[i]); size > maxForms {
			q.Decision = policy.Decision{}
			return fmt.Errorf("client: the URL's path and query %q have dot segments "+
				"that servers can read in too many ways: write it without", cut(target))
		}
		if ctx.Err() != nil { // a hostile file makes each decision slow
			q.Decision = policy.Decision{}
			return context.Cause(ctx)
		}
		if q.decideForm(forms[i]); !q.Allowed {
			return nil
		}
		// Another server behind the first may resolve the result again.
		first, last := strings.IndexByte(forms[i], '?'), strings.LastIndexByte(forms[i], '?')
		forms = appendResolved(forms, forms[i], first)
		if last > first { // see hasDotSegment
			forms = appendResolved(forms, forms[i], last)
		}
	}
	if q.agreement != nil { // the last form may need none
		q.Decision = *q.settled
	}
	return nil
}

// maxForms is how long all forms of a target may be together. Unless it was made to have
// many, a path has fewer than ten.
const maxForms = 4 * maxTarget

// appendResolved appends to forms the new ones that servers resolve target to, with the
// dot segments of its path removed. The path ends at the index end, or with the target if
// that is -1.
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
			add(withoutDotSegments(segments)) // whose empty segments are left out when the result is resolved again
			add(withoutDotSegments(strings.Split(withoutEmptySegments("/"+strings.Join(segments, "/")), "/")[1:]))
		}
	}
	return forms
}

// unescapings are what servers take for a dot and for a slash: an escaped dot always, an
// escaped slash if they unescape before they split, and a backslash on some systems. None of
// them unescapes twice.
var unescapings = []*strings.Replacer{
	strings.NewReplacer("%2e", ".", "%2E", "."),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%5c", "/", "%5C", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/"),
}

// Parameters of a segment begin with a semicolon (RFC 3986 §3.3). Servlet containers cut
// them off before they resolve; other servers know none.

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

// withoutDotSegments returns the path that the segments leave (RFC 3986 §5.2.4).
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
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// ftpMisuse returns why no request for an ftp URL is sent, or nil. Its path becomes lines of
// commands, which a line break ends, and it has no query (RFC 1738 §3.2, §3.2.2).
func ftpMisuse(u *url.URL) error {
	switch {
	case strings.ContainsAny(u.Path+u.RawPath, "\r\n\x00"):
		return fmt.Errorf("client: the path of URL %q holds %%0D, %%0A or %%00: FTP cannot ask for it", cut(u.Redacted()))
	case u.ForceQuery || u.RawQuery != "":
		return fmt.Errorf("client: URL %q: FTP knows no query, so write the question mark as %%3F",
			cut(u.Redacted()))
	}
	return nil
}

func schemeError(u *url.URL) error {
	return fmt.Errorf("client: URL %q is not of scheme http or https: robots.txt does not cover it", cut(u.Redacted()))
}

// unruled is the Decision about what no rule can forbid.
var unruled = policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}

// isOther reports whether u has another scheme than http and https. A URL built by hand may
// have "HTTP" or no scheme at all; neither is a way around the gate.
func isOther(u *url.URL) bool {
	return u != nil && u.Scheme != "http" && u.Scheme != "https" && isOtherScheme(u.Scheme)
}

// isOtherScheme is what seldom has to be looked at, apart so that isOther is inlined.
func isOtherScheme(scheme string) bool {
	return scheme != "" && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
}

// originOf returns the origin that req names on the wire: its Host counts before the URL's.
func originOf(req *http.Request) (fetch.Origin, error) {
	switch {
	case req.URL == nil:
		return fetch.Origin{}, errors.New("client: request has no URL")
	case req.URL.Opaque != "":
		return fetch.Origin{}, fmt.Errorf("client: URL %q is opaque: give it a host and a path to find robots.txt by", cut(req.URL.Redacted()))
	case req.URL.Host == "":
		return fetch.Origin{}, fmt.Errorf("client: URL %q has no host to ask for robots.txt: no Host in request URL", cut(req.URL.Redacted()))
	case isOther(req.URL):
		if err := ftpMisuse(req.URL); err != nil {
			return fetch.Origin{}, err
		}
	}
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return fetch.Origin{}, fmt.Errorf("client: %w", err)
	}
	return o, nil
}
