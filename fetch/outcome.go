package fetch

import (
	"fmt"
	"net/http"

	"github.com/robotsgate/robotsgate/policy"
)

// outcome is what a status code means for robots.txt (RFC 9309 §2.3.1). The zero value allows nothing.
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

func statusError(status int) error {
	return fmt.Errorf("status %d %s", status, http.StatusText(status))
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
		in.Wall = r.Wall || in.wall() != ""
	default:
		in.lose(statusError(r.StatusCode).Error(), "")
	}
	return &in
}

func (r *Result) lose(why, cause string) {
	r.Policy, r.Wall = policy.Unreachable(), false
	r.Err = &Failure{printable("fetch: " + why), cause}
}
