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
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
	"github.com/robotsgate/robotsgate/policy"
	"golang.org/x/net/http/httpguts"
)

// resolution is one Fetch under way: from the origin's robots.txt over redirects and
// retries to a Result.
type resolution struct {
	*Fetcher
	guard    harden.Guard
	turns    turns
	until    time.Time // pauses must have ended
	asked    Origin
	prev     *Result
	stored   string        // the URL that prev came from, while its validators are of use; else ""
	chain    []string      // URLs redirected to
	headers  []http.Header // cachingFields of the responses that redirected to them
	varies   bool          // a redirect names User-Agent in its Vary
	attempts int           // requests that were sent
	ended    error         // what Fetch returns instead of a Result
	given    []credential  // by Sign, so far
	held     int64         // of Fetcher.MaxMemory
	crowded  atomic.Bool   // it had to wait for that
}

// hop is one URL on the way.
type hop struct {
	origin Origin
	url    *url.URL // its Host is where to connect to; the name to ask for is the origin's
}

// String returns the URL as the server is asked for it.
func (h hop) String() string {
	u := *h.url
	u.Host = h.origin.host()
	return u.String()
}

// hostname returns the name that the server is asked for, without its port.
func (h hop) hostname() string { return (&url.URL{Host: h.origin.host()}).Hostname() }

// address returns where a transport without a proxy connects to.
func (h hop) address() string {
	port := h.url.Port()
	if port == "" {
		port = ownPorts[h.origin.scheme]
	}
	return net.JoinHostPort(h.url.Hostname(), port)
}

// response is what one attempt brought: a status with its header, and the body if it holds
// rules; or an error.
type response struct {
	status     int
	header     http.Header
	body       []byte
	at         time.Time
	retryAfter time.Duration
	asked      bool   // whether validators were sent
	varies     bool   // it is for this User-Agent, see Result.UserAgent
	credential string // a field that the transport gave the request; "": none
	given      []credential
	held       int64 // of Fetcher.MaxMemory
	err        error
}

// run asks URL after URL until one of them has the answer.
func (r *resolution) run(ctx context.Context) *Result {
	h := hop{r.asked, r.asked.RobotsURL()}
	switch {
	case r.asked.scheme == 0:
		return r.unreachable(h, response{}, &Failure{"only the robots.txt of an http or https Origin, as OriginOf makes it, " +
			"can be fetched, and that of an ftp Origin if Fetcher.FTP is set", misconfigured})
	case !httpguts.ValidHeaderFieldValue(r.UserAgent):
		return r.unreachable(h, response{}, &Failure{fmt.Sprintf("the UserAgent %q cannot be sent: take out its control characters",
			cut(r.UserAgent)), misconfigured})
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
			res := r.conclude(a, r.Dialect.Parse(a.body))
			res.Body, res.Truncated = a.body, len(a.body) > MaxBytes
			return r.open(h, a, res)
		case unavailable:
			if a.asked && a.status == http.StatusPreconditionFailed {
				r.stored = "" // it is about our validators (RFC 9110 §15.5.13), not about the file: ask for that
				continue
			}
			return r.open(h, a, r.conclude(a, policy.Unavailable()))
		case redirect:
			next, res := r.redirected(h, a)
			if res != nil {
				return res
			}
			h = next
			// Its turn leaves it as long as one request may take.
			if err := r.turns.next(h.url, a.status, r.until.Add(-r.scale()/2)); err != nil {
				r.ended = noTurn(err)
				return r.unreachable(h, response{}, err)
			}
		case notModified:
			switch {
			case !a.asked:
				return r.unreachable(h, a, errors.New("status 304 to a request without validators"))
			case r.renews(a) && (r.prev.userAgent != "" || !r.varies && !a.varies):
				return r.open(h, a, r.renewed(h, a))
			}
			// It may speak of another copy, or of one for another User-Agent: ask for the file
			// itself.
			r.stored = ""
		default:
			return r.unreachable(h, a, statusError(a.status))
		}
	}
}

// redirected returns the hop that a redirect leads to, or the Result if it ends there.
func (r *resolution) redirected(h hop, a response) (hop, *Result) {
	next, err := h.follow(a.header)
	if name := next.hostname(); err == nil && r.SameHost && name != h.hostname() {
		err = fmt.Errorf("redirect to another host, %s, not followed (SameHost)", cut(name))
	}
	// The transport gives the next request what it gave this one: a credential would get to
	// whatever origin the server names.
	if err == nil && a.credential != "" && next.origin != h.origin {
		err = fmt.Errorf("redirect to another origin, %s, not followed: "+
			"the transport gives the request credentials (%s); put what adds them above the gate",
			cut(next.origin.String()), cut(a.credential))
	}
	if err != nil {
		return hop{}, r.unreachable(h, a, err)
	}
	// RFC 9309 §2.3.1.2: beyond five, crawlers MAY assume that the file is unavailable. A URL
	// that was asked before leads there too, only slower.
	name := next.String()
	first := hop{r.asked, r.asked.RobotsURL()}
	if len(r.chain) == maxRedirects || name == first.String() || slices.Contains(r.chain, name) {
		return hop{}, r.open(h, a, r.conclude(a, policy.Unavailable()))
	}
	r.chain = append(r.chain, name)
	r.headers = append(r.headers, cachingFields(a.header))
	r.varies = r.varies || a.varies
	return next, nil
}

// follow returns where a redirect leads. It must be a URL that robots.txt could be at: a
// redirect that cannot be followed is an answer that cannot be used, not permission.
func (h hop) follow(header http.Header) (hop, error) {
	location := header.Get("Location")
	if location == "" {
		return hop{}, errors.New("redirect without Location")
	}
	if lines := header["Location"]; len(slices.Compact(slices.Clone(lines))) > 1 { // no way to tell which one is meant
		return hop{}, fmt.Errorf("redirect to %d places, %q first", len(lines), cut(location))
	}
	if len(location) > maxLocation {
		return hop{}, fmt.Errorf("redirect to a URL of %d bytes", len(location))
	}
	ref, err := url.Parse(location)
	// "//" begins a host (RFC 3986 §4.2). If none follows, url.Parse takes it for a path.
	if err != nil || ref.Host == "" && strings.HasPrefix(location, "//") {
		return hop{}, fmt.Errorf("redirect to %q, which is no URL", cut(location))
	}
	next := hop{h.origin, h.url.ResolveReference(ref)}
	if ref.Host != "" || ref.Scheme != "" {
		if next.origin, err = OriginOf(next.url); err != nil || next.origin.scheme == schemeFTP {
			return hop{}, fmt.Errorf("redirect to %q, which cannot be followed", cut(location))
		}
	}
	// A new URL: nothing else of the given one is sent or kept.
	next.url = &url.URL{
		Scheme: next.origin.scheme.String(), Host: next.origin.URLHost(),
		Path: next.url.Path, RawPath: next.url.RawPath, ForceQuery: next.url.ForceQuery,
		// url.Parse lets a space pass, which would end the target.
		RawQuery: strings.ReplaceAll(next.url.RawQuery, " ", "%20"),
	}
	return next, nil
}

// cachingFields returns what a redirect says about its own reuse, which bounds the reuse of
// what it leads to.
func cachingFields(h http.Header) http.Header {
	fields := http.Header{}
	for _, name := range [...]string{"Age", "Cache-Control", "Date", "Expires", "Vary"} {
		if lines, ok := h[name]; ok {
			fields[name] = lines
		}
	}
	return fields
}

// maxLocation is the length that RFC 9110 §4.1 recommends everyone to support.
const maxLocation = 8000

// open returns res, unless a wall answered that is to be obeyed.
func (r *resolution) open(h hop, a response, res *Result) *Result {
	wall := res.wall()
	res.Wall = wall != ""
	if r.ObeyWalls {
		if res.Wall {
			return r.unreachable(h, a, &Failure{"no robots.txt but a wall: " + wall, denied})
		}
	}
	return res
}

func (r *resolution) unreachable(h hop, a response, err error) *Result {
	res, cause := r.conclude(a, nil), causeOf(err)
	if cause == "" && r.ObeyWalls && res.wall() != "" { // so it is in each dialect, whatever that makes of the status
		cause = denied
	}
	tries := ""
	if r.attempts > len(r.chain)+1 {
		tries = fmt.Sprintf(" (requests: %d)", r.attempts)
	}
	res.lose(fmt.Sprintf("%s: %s%s", cut(h.String()), cutTo(err.Error(), 512), tries), cause)
	return res
}

func (r *resolution) conclude(a response, p *policy.Policy) *Result {
	if a.at.IsZero() {
		a.at = time.Now()
	}
	res := &Result{
		Policy: p, Dialect: r.Dialect, StatusCode: a.status, Header: a.header, Time: a.at,
		Redirects: r.chain, RedirectHeaders: r.headers, RetryAfter: a.retryAfter,
	}
	if r.varies || a.varies {
		res.userAgent = r.agent()
	}
	return res
}

// vary finds out for whom an answer is (RFC 9110 §12.5.5). If its Vary names User-Agent, it is for this one. So
// it is if Vary names a field that Sign has set: who signs otherwise has another User-Agent. All signatures
// (RFC 9421) of one User-Agent count as one crawler's. Another field that Sign has set, such as a key, may
// differ between them: an answer that varies by it matches no other request.
func (r *resolution) vary(a *response, sent http.Header) {
	for _, line := range a.header["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			switch name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); name {
			case "User-Agent":
				a.varies = true
			case "Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since": // ours
			default:
				if r.Sign == nil || sent[name] == nil {
					continue
				}
				if a.varies = true; !strings.HasPrefix(name, "Signature") {
					a.header["Vary"] = append(a.header["Vary"], "*")
				}
			}
		}
	}
}

// In returns the same answer as a Fetcher of dialect d would have read it: d decides what the
// status means and what the file says. If d is r's own dialect, In returns r itself, unless that
// was stored without its Policy: then In restores it.
//
// Rules are read from Body. If there is none, the Result is unreachable, and Err says so:
// the Body was dropped, or r's own dialect reads no file with that status, as Yandex with a
// 206. An answer that broke off, or could not be used, stays unreachable.
func (r *Result) In(d policy.Dialect) *Result {
	if d == r.Dialect && r.Policy != nil {
		return r
	}
	in := *r
	in.Dialect = d
	was, is := outcomeOf(r.StatusCode, r.Dialect), outcomeOf(r.StatusCode, d)
	switch {
	case r.Err != nil && (was != unreachable || is == unreachable || causeOf(r.Err) == denied): // not because of its status, or still
		in.Policy = policy.Unreachable()
	case is == rules && r.Body != nil && (was == rules || len(r.Body) > 0): // not read is not empty
		in.Policy = d.Parse(r.Body)
		in.Wall = in.wall() != ""
	case is == rules:
		in.lose("its file was not kept, and another dialect needs it", "")
	case is == unavailable, is == redirect: // after more of them than are followed
		in.Policy, in.Err = policy.Unavailable(), nil
	default:
		in.lose(statusError(r.StatusCode).Error(), "")
	}
	return &in
}

func (r *Result) lose(why, cause string) {
	r.Policy, r.userAgent = policy.Unreachable(), "" // no answer, so for all
	r.Err = &Failure{printable("fetch: " + why), cause}
}

func statusError(status int) error {
	return fmt.Errorf("status %d %s", status, http.StatusText(status))
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

// statuses has the meaning of a status in the first row that fits. A status without a row
// is unreachable: an answer that cannot be used never gives permission. These are 1xx as a
// final answer, 300, 304 unasked, 305, 306, and what lies outside 100 to 599.
//
//   - 206 holds the file or a part of it; see isPart.
//   - 429 asks for fewer requests. Google takes that for a server error.
//   - Yandex takes a site to be open if its final answer is not 200.
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
