package fetch

import "github.com/robotsgate/robotsgate/policy"

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
//     resolution.rules for a file that is too long.
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
