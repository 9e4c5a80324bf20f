package usage

import (
	"errors"

	"github.com/robotsgate/robotsgate/policy"
)

// Combine returns what a site prefers about a use of a page, and the statement that says it: what the page has said of
// itself (see [ParseHeader], [ParseMeta], [ParseRules]), and what robots.txt says about its target to the crawler with
// the product token. If they differ, "no" wins.
//
// The target is that of the response, which redirects may have changed: url.URL.RequestURI of its request. If robots.txt
// is nil or unreachable, what it says is not known: then the answer is no, with an error.
func Combine(use Label, robots *policy.Policy, token, target string, said ...Statement) (Preference, Statement, error) {
	if robots == nil || robots.Reason() == policy.ReasonUnreachable {
		return Disallow, Statement{}, errors.New("usage: robots.txt is unreachable, so what it says about use is not known")
	}
	all := append(said[:len(said):len(said)], ParseRobots(robots, token, target)...)
	what, by, err := For(all, use)
	if err != nil {
		what = Disallow
	}
	return what, by, err
}
