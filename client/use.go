package client

import (
	"slices"
	"strings"
	"sync"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// labels returns those that a use may have, sorted.
var labels = sync.OnceValue(func() (all []string) {
	for _, m := range usage.Table() {
		all = append(all, string(m.Label))
	}
	slices.Sort(all)
	return slices.Compact(all)
})

// checkUses returns what is wrong with the declared uses, or nil. A misspelt one would never be disallowed.
func checkUses(uses []string) error {
	for _, use := range uses {
		if !slices.Contains(labels(), use) {
			return notSentf("client: Uses has %q, which nothing can disallow: use %s", cut(use), strings.Join(labels(), ", "))
		}
	}
	return nil
}

// disallowedUse returns the first of the uses that a policy disallows for a target and the statement that does it, or
// two empty strings.
func disallowedUse(p *policy.Policy, token, target string, uses []string) (use, by string) {
	all := usage.ParseRobots(p, token, target)
	if all == nil {
		return "", "" // as nearly always
	}
	for _, use := range uses {
		if what, by, err := usage.For(all, usage.Label(use)); err != nil || what == usage.Disallow {
			by.Text = cut(by.Text)
			return use, by.String()
		}
	}
	return "", ""
}
