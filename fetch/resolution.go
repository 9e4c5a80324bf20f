package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
	"github.com/robotsgate/robotsgate/policy"
	"golang.org/x/net/http/httpguts"
)

// resolution is one Fetch on its way: from the origin's robots.txt over redirects and
// retries to a Result.
type resolution struct {
	*Fetcher
	guard    harden.Guard
	until    time.Time // a pause must end before: our Timeout, or the caller's deadline
	asked    Origin
	prev     *Result
	stored   string        // the URL that prev came from, while its validators are of use; else ""
	chain    []string      // URLs redirected to
	headers  []http.Header // of the answers that redirected to them, what is kept of those
	varies   bool          // a redirect names User-Agent in its Vary
	attempts int
}

// hop is one URL on the way.
type hop struct {
	origin Origin
	url    *url.URL // its Host is where to connect to; the name to ask for is the origin's
}

// String is the URL as the server is asked for it.
func (h hop) String() string {
	u := *h.url
	u.Host = h.origin.host()
	return u.String()
}

// address is where a transport without a proxy connects to.
func (h hop) address() string {
	port := h.url.Port()
	if port == "" {
		port = ownPorts[h.origin.scheme]
	}
	return net.JoinHostPort(h.url.Hostname(), port)
}

// answer is what one attempt brought: a response, of which the body was read if it holds
// rules, or an error.
type answer struct {
	status     int
	header     http.Header
	body       []byte
	truncated  bool
	at         time.Time
	retryAfter time.Duration
	asked      bool   // whether validators were sent
	credential string // a field that the transport gave the request; "": none
	err        error
}

var errNoOrigin = errors.New("only the robots.txt of an http or https Origin, as OriginOf makes it, can be fetched")

func (r *resolution) run(ctx context.Context, o Origin) *Result {
	h := hop{o, o.RobotsURL()}
	if o.scheme != schemeHTTP && o.scheme != schemeHTTPS {
		return r.unreachable(h, answer{}, errNoOrigin)
	}
	if !httpguts.ValidHeaderFieldValue(r.UserAgent) {
		return r.unreachable(h, answer{}, fmt.Errorf("the UserAgent %q cannot be sent: take out its control characters", cut(r.UserAgent)))
	}
	r.guard.Presume(h.url.Hostname())
	r.stored = r.storedURL(h)
	for {
		a := r.ask(ctx, h)
		if a.err != nil {
			return r.unreachable(h, a, a.err)
		}
		switch outcomeOf(a.status, r.Dialect) {
		case rules:
			return r.rules(a)
		case unavailable:
			return r.conclude(a, policy.Unavailable())
		case redirect:
			next, err := h.follow(a.header)
			// What the transport gives one request it gives the next: a credential would get
			// to whatever origin the first one names.
			if err == nil && a.credential != "" && next.origin != h.origin {
				err = fmt.Errorf("redirect to another origin, %s, not followed: the transport gives the request credentials (%s); put what adds them above the gate",
					cut(next.origin.String()), cut(a.credential))
			}
			if err != nil {
				return r.unreachable(h, a, err)
			}
			// RFC 9309 §2.3.1.2: beyond five, MAY assume that the file is unavailable. A URL
			// that was asked before leads there, too, only slower.
			name := next.String()
			if len(r.chain) == MaxRedirects || name == (hop{o, o.RobotsURL()}).String() || slices.Contains(r.chain, name) {
				return r.conclude(a, policy.Unavailable())
			}
			r.chain, h = append(r.chain, name), next
			r.headers = append(r.headers, cachingFields(a.header))
			r.varies = r.varies || variesByUserAgent(a.header)
		case notModified:
			switch {
			case !a.asked:
				return r.unreachable(h, a, errors.New("status 304 without having been asked whether it was modified"))
			case r.renews(a) && (r.prev.UserAgent != "" || !r.varies && !variesByUserAgent(a.header)):
				return r.renewed(h, a)
			}
			// It speaks of another copy than ours, or of one for another User-Agent, perhaps: ask
			// for the file itself.
			r.stored = ""
		default:
			return r.unreachable(h, a, statusError(a.status))
		}
	}
}

// follow returns where a redirect leads. It must be a URL that robots.txt could be at: a
// redirect that cannot be followed is an answer that cannot be used, not permission.
func (h hop) follow(header http.Header) (hop, error) {
	location := header.Get("Location")
	if location == "" {
		return hop{}, errors.New("redirect without Location")
	}
	if len(location) > maxLocation {
		return hop{}, fmt.Errorf("redirect to a URL of %d octets", len(location))
	}
	ref, err := url.Parse(location)
	// "//" begins a host (RFC 3986 §4.2): without one, url.Parse takes it for a path.
	if err != nil || ref.Host == "" && strings.HasPrefix(location, "//") {
		return hop{}, fmt.Errorf("redirect to %q, which is no URL", cut(location))
	}
	next := hop{h.origin, h.url.ResolveReference(ref)}
	if ref.Host != "" || ref.Scheme != "" {
		if next.origin, err = OriginOf(next.url); err != nil || next.origin.scheme == schemeFTP {
			return hop{}, fmt.Errorf("redirect to %q, which cannot be followed", cut(location))
		}
	}
	// A new URL, so that nothing else of the given one is sent or kept.
	next.url = &url.URL{
		Scheme: next.origin.scheme.String(), Host: next.origin.Authority(),
		Path: next.url.Path, RawPath: next.url.RawPath, ForceQuery: next.url.ForceQuery,
		RawQuery: strings.ReplaceAll(next.url.RawQuery, " ", "%20"), // url.Parse lets it pass, and a request line ends with it
	}
	return next, nil
}

// cachingFields are what a redirect says about its own reuse. What its answer is reused for
// depends on both.
func cachingFields(h http.Header) http.Header {
	fields := http.Header{}
	for _, name := range [...]string{"Age", "Cache-Control", "Date", "Expires", "Vary"} {
		if lines, ok := h[name]; ok {
			fields[name] = lines
		}
	}
	return fields
}

// maxLocation is what RFC 9110 §4.1 recommends that everybody can deal with.
const maxLocation = 8000

func (r *resolution) rules(a answer) *Result {
	res := r.conclude(a, read(r.Dialect, a.body, a.truncated))
	res.Body, res.Truncated = a.body, a.truncated
	return res
}

// read returns what a file permits in a dialect. "More than 500 KB" is one of the conditions
// under which Yandex takes a site to be open.
func read(d policy.Dialect, body []byte, truncated bool) *policy.Policy {
	if truncated && d == policy.Yandex {
		return policy.Unavailable()
	}
	return d.Parse(body)
}

// In returns the same answer as a Fetcher of dialect d would have read it: d decides what
// the status means and what the file says. If d is r's own dialect, In returns r.
//
// Rules are read from Body. Without one, the Result is unreachable, and Err says so: the
// Body was dropped, or no rules came with this status in r's own dialect, as with a 206 in
// Yandex. An answer that broke off, or that could not be used, stays unreachable.
func (r *Result) In(d policy.Dialect) *Result {
	if d == r.Dialect {
		return r
	}
	in := *r
	in.Dialect = d
	was, is := outcomeOf(r.StatusCode, r.Dialect), outcomeOf(r.StatusCode, d)
	switch {
	case r.Err != nil && was != unreachable: // not because of its status
	case is == rules && r.Body != nil:
		in.Policy = read(d, r.Body, r.Truncated)
	case is == rules:
		in.lose(errors.New("its file was not kept, and another dialect needs it"))
	case is == was: // whatever the status was taken for
	case is == unavailable:
		in.Policy, in.Err = policy.Unavailable(), nil
	default:
		in.lose(statusError(r.StatusCode))
	}
	return &in
}

// lose makes r unreachable.
func (r *Result) lose(why error) {
	r.Policy, r.UserAgent = policy.Unreachable(), "" // no answer, so for all
	r.Err = errors.New(printable("fetch: " + why.Error()))
}

func statusError(status int) error {
	return fmt.Errorf("status %d %s", status, http.StatusText(status))
}

func (r *resolution) unreachable(h hop, a answer, err error) *Result {
	res := r.conclude(a, nil)
	tries := ""
	if r.attempts > len(r.chain)+1 {
		tries = fmt.Sprintf(" (requests: %d)", r.attempts)
	}
	res.lose(fmt.Errorf("%s: %s%s", cut(h.String()), cutTo(err.Error(), 512), tries))
	return res
}

func (r *resolution) conclude(a answer, p *policy.Policy) *Result {
	if a.at.IsZero() {
		a.at = time.Now()
	}
	res := &Result{
		Policy: p, Dialect: r.Dialect, StatusCode: a.status, Header: a.header, Time: a.at,
		Redirects: r.chain, RedirectHeaders: r.headers, RetryAfter: a.retryAfter,
	}
	if r.varies || variesByUserAgent(a.header) {
		res.UserAgent = r.agent()
	}
	return res
}

// variesByUserAgent reports whether Vary names that field (RFC 9110 §12.5.5).
func variesByUserAgent(h http.Header) bool {
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(name, " \t"), "User-Agent") {
				return true
			}
		}
	}
	return false
}

// outcome is what a status code means for robots.txt (RFC 9309 §2.3.1). The zero value
// allows nothing.
type outcome uint8

const (
	unreachable outcome = iota // §2.3.1.4: nothing is allowed
	rules                      // §2.3.1.1: the body decides
	unavailable                // §2.3.1.3: everything is allowed
	redirect                   // §2.3.1.2
	notModified                // RFC 9111 §4.3.3; unreachable unless it was asked for
)

// statuses has the first row that fits for each status; a status without a row is
// unreachable: an answer that cannot be used never gives permission. That is so for 1xx
// as a final answer, 300, 304 unasked, 305, 306, and what lies outside 100 to 599.
//
//   - 206 holds the file or a part of it: see isPart.
//   - 429 asks for fewer requests. Google reads that as a server error.
//   - Yandex takes any other final answer than 200 to mean that the site is open; see also
//     read for a file that is too long.
//   - The Internet-Draft of 1996 (Original) has 401 and 403 close the site.
var statuses = [...]struct {
	from, to int
	in       [5]outcome
}{
	//         policy.RFC9309 Google       Yandex       Bing         Original
	{200, 200, [5]outcome{rules, rules, rules, rules, rules}},
	{201, 299, [5]outcome{rules, rules, unavailable, rules, rules}},
	{301, 303, [5]outcome{redirect, redirect, redirect, redirect, redirect}},
	{304, 304, [5]outcome{notModified, notModified, notModified, notModified, notModified}},
	{307, 308, [5]outcome{redirect, redirect, redirect, redirect, redirect}},
	{401, 401, [5]outcome{unavailable, unavailable, unavailable, unavailable, unreachable}},
	{403, 403, [5]outcome{unavailable, unavailable, unavailable, unavailable, unreachable}},
	{429, 429, [5]outcome{unavailable, unreachable, unavailable, unavailable, unavailable}},
	{400, 499, [5]outcome{unavailable, unavailable, unavailable, unavailable, unavailable}},
	{500, 599, [5]outcome{unreachable, unreachable, unavailable, unreachable, unreachable}},
}

func outcomeOf(status int, d policy.Dialect) outcome {
	if int(d) >= len(statuses[0].in) {
		d = policy.RFC9309
	}
	for _, row := range statuses {
		if row.from <= status && status <= row.to {
			return row.in[d]
		}
	}
	return unreachable
}
