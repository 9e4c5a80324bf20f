package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
	"github.com/robotsgate/robotsgate/policy"
)

// resolution is one Fetch under way: from the origin's robots.txt over redirects and retries to a Result.
type resolution struct {
	*Fetcher
	caller   context.Context
	own      context.Context // ends with caller, and has none of its values
	left     time.Duration   // of Timeout
	guard    harden.Guard
	asked    Origin
	prev     *Result
	stored   string        // the URL that prev came from, as long as its validators are of use; else ""
	chain    []string      // URLs redirected to
	seen     []string      // places that were asked
	headers  []http.Header // cachingFields of the responses that redirected to them
	cookie   bool          // one of them set a cookie
	attempts int           // requests that were sent
	held     int64         // bytes of Fetcher.memory
	crowded  bool          // it had to wait for them
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

// place returns the URL and the server that is asked for it.
func (h hop) place() string { return h.origin.String() + " " + h.String() }

// hostname returns the name that the server is asked for, without its port.
func (h hop) hostname() string { return (&url.URL{Host: h.origin.host()}).Hostname() }

// response is the outcome of one attempt: a status with its header, and the body if it holds rules; or an error.
type response struct {
	status     int
	header     http.Header
	body       []byte
	at         time.Time
	retryAfter time.Duration
	cookie     bool // it set one
	validated  bool // the request had validators
	err        error
}

// run asks URL after URL until one of them has the answer.
func (r *resolution) run() (*Result, error) {
	h := hop{r.asked, r.asked.RobotsURL()}
	switch {
	case r.asked.scheme == 0:
		return nil, &Failure{"fetch: only the robots.txt of an Origin, as OriginOf makes it, can be fetched", misconfigured}
	case !httpguts.ValidHeaderFieldValue(r.UserAgent):
		return nil, &Failure{"fetch: the UserAgent cannot be sent: take out its control characters", misconfigured}
	}
	r.guard.Presume(h.url.Hostname())
	r.stored, r.seen = r.storedURL(h), []string{h.place()}
	for {
		a, err := r.ask(h)
		if err != nil {
			return nil, err
		}
		if a.err != nil {
			return r.failed(h, a)
		}
		switch outcomeOf(a.status, policy.RFC9309) {
		case rules:
			p, err := r.parse(a.body)
			if err != nil {
				return nil, err
			}
			res := r.conclude(a, p)
			res.Body, res.Truncated = a.body, len(a.body) > maxFile
			return r.checkWall(h, a, res, ""), nil
		case unavailable:
			if a.validated && a.status == http.StatusPreconditionFailed {
				r.stored = "" // it is about our validators (RFC 9110 §15.5.13): ask for the file itself
				continue
			}
			return r.checkWall(h, a, r.conclude(a, policy.Unavailable()), ""), nil
		case redirect:
			next, res := r.redirected(h, a)
			if res != nil {
				return res, nil
			}
			h = next
		case notModified:
			if !a.validated {
				return r.unreachable(h, a, errors.New("status 304 to a request without validators")), nil
			}
			if res := r.renewed(h, a); res != nil {
				return res, nil
			}
			r.stored = "" // the 304 may be about another copy: ask for the file itself
		default:
			return r.unreachable(h, a, errors.New(statusText(a.status))), nil
		}
	}
}

// parse reads the rules of a file. Longer ones take turns, while their bytes still count (maxMemory): rules may take
// six times as much, and of a hundred files that are parsed at once, none would get to the cache that bounds them.
func (r *resolution) parse(body []byte) (*policy.Policy, error) {
	if r.held > 0 {
		if err := r.parsing.Acquire(r.own, 1); err != nil {
			return nil, err
		}
		defer r.parsing.Release(1)
	}
	return policy.Parse(body), nil
}

// failed concludes after an attempt without a usable answer. A failure of ours or of a proxy is an error: the site did
// not fail. So is a site whose own address is not public; one that redirects to such an address is unreachable.
func (r *resolution) failed(h hop, a response) (*Result, error) {
	at, refused := cut(h.String()), errors.Is(a.err, ErrNotPublic)
	cause := causeOf(a.err)
	switch {
	case refused && len(r.chain) == 0:
		return nil, fmt.Errorf("fetch: %s: %w", at, a.err)
	case !refused && (cause == misconfigured || cause == exhausted):
		return nil, &Failure{printable(fmt.Sprintf("fetch: %s: %s", at, cutTo(a.err.Error(), 512))), cause}
	}
	return r.unreachable(h, a, a.err), nil
}

// redirected returns the hop that a redirect leads to, or the Result if it ends there.
func (r *resolution) redirected(h hop, a response) (hop, *Result) {
	next, err := h.follow(a.header)
	if name := next.hostname(); err == nil && r.SameHost && name != h.hostname() {
		err = fmt.Errorf("redirect to another host, %s, not followed (SameHost)", cut(name))
	}
	if err != nil {
		return hop{}, r.unreachable(h, a, err)
	}
	// RFC 9309 §2.3.1.2: beyond five, crawlers MAY assume that the file is unavailable. A loop would end there too.
	at, wall := next.place(), ""
	r.cookie = r.cookie || a.cookie
	loop := slices.Contains(r.seen, at)
	if loop && r.cookie {
		wall = "a redirect loop with a cookie"
	}
	if loop || len(r.chain) == maxRedirects {
		return hop{}, r.checkWall(h, a, r.conclude(a, policy.Unavailable()), wall)
	}
	r.chain, r.seen = append(r.chain, next.String()), append(r.seen, at)
	r.headers = append(r.headers, cachingFields(a.header))
	return next, nil
}

// follow returns where a redirect leads. It must be a URL that robots.txt could be at: a redirect that cannot be
// followed is an answer that cannot be used, not permission.
func (h hop) follow(header http.Header) (hop, error) {
	location := header.Get("Location")
	if location == "" {
		return hop{}, errors.New("redirect without Location")
	}
	if lines := header["Location"]; len(slices.Compact(slices.Clone(lines))) > 1 { // which one is meant?
		return hop{}, fmt.Errorf("redirect to %d places, %q first", len(lines), cut(location))
	}
	if len(location) > 8000 { // RFC 9110 §4.1 recommends everyone to support that
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
		// url.Parse lets these pass: a space would end the target.
		RawQuery: strings.NewReplacer(" ", "%20", `"`, "%22", "<", "%3C", ">", "%3E").Replace(next.url.RawQuery),
	}
	return next, nil
}

// cachingFields returns what a redirect says about its own reuse, which bounds the reuse of what it leads to.
func cachingFields(h http.Header) http.Header {
	fields := http.Header{}
	for _, name := range [...]string{"Age", "Cache-Control", "Date", "Expires", "Vary"} {
		if lines, ok := h[name]; ok {
			fields[name] = lines
		}
	}
	return fields
}

// checkWall returns res, or an unreachable Result if a wall answered and ObeyWalls is set. wall names a sign of one
// that is not in res.
func (r *resolution) checkWall(h hop, a response, res *Result, wall string) *Result {
	wall = cmp.Or(res.wallSign(), wall)
	res.Wall = wall != ""
	if res.Wall && r.ObeyWalls {
		return r.unreachable(h, a, &Failure{"no robots.txt but a wall: " + wall, denied})
	}
	return res
}

func (r *resolution) unreachable(h hop, a response, err error) *Result {
	res, cause := r.conclude(a, nil), causeOf(err)
	if cause == "" && r.ObeyWalls && res.wallSign() != "" { // for In: a wall is one in every dialect
		cause = denied
	}
	tries := ""
	if r.attempts > len(r.chain)+1 {
		tries = fmt.Sprintf(" (requests: %d)", r.attempts)
	}
	res.setUnreachable(fmt.Sprintf("%s: %s%s", cut(h.String()), cutTo(err.Error(), 512), tries), cause)
	return res
}

func (r *resolution) conclude(a response, p *policy.Policy) *Result {
	if a.at.IsZero() {
		a.at = time.Now()
	}
	return &Result{
		Policy: p, StatusCode: a.status, Header: a.header, Time: a.at, Redirects: r.chain,
		RedirectHeaders: r.headers, RetryAfter: a.retryAfter,
	}
}

// outcome is what a status code means for robots.txt (RFC 9309 §2.3.1). The zero value allows nothing.
type outcome uint8

const (
	unreachable outcome = iota // §2.3.1.4: nothing is allowed
	rules                      // §2.3.1.1: the body decides
	unavailable                // §2.3.1.3: everything is allowed
	redirect                   // §2.3.1.2
	notModified                // RFC 9111 §4.3.3; unreachable unless it was asked for
)

// statuses has the meaning of a status in the first row that fits. A status without a row is unreachable: an answer
// that cannot be used never gives permission. Such are a final 1xx, 300, 305, 306, and whatever is outside 100 to 599.
//
//   - 206 holds the file or a part of it; see wholeLength.
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
