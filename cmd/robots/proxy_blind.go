package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/policy"
)

// The ways of --blind.
const (
	blindOrigin = "origin"
	blindRefuse = "refuse"
	blindAllow  = "allow"
)

var blindWays = []string{blindOrigin, blindRefuse, blindAllow}

// checkBlind looks at --blind. What has to see each request cannot be kept in a tunnel: then origin
// is no longer the default, and wrong if it was given.
func (p *proxying) checkBlind(given bool) error {
	if !slices.Contains(blindWays, p.blind) {
		return usagef("--blind is %s, not one of %s", quoted(p.blind), strings.Join(blindWays, ", "))
	}
	if p.blind != blindOrigin || !p.paced && p.uses == nil && p.signing.key == "" {
		return nil
	}
	if given {
		return usagef("--pace, --uses and --sign-key cannot be kept in a tunnel: leave out --blind=origin")
	}
	p.blind = blindRefuse
	return nil
}

// decideBlind returns why a tunnel must not be opened in which no request will be seen.
func (p *proxying) decideBlind(g *gate, r *http.Request, to proxy.Target) error {
	switch p.blind {
	case blindAllow:
		return nil
	case blindRefuse:
		return sealed(to, "requests in it cannot be decided on")
	}
	ctx := r.Context()
	if p.each {
		ctx = client.WithToken(ctx, policy.ProductToken(r.UserAgent()))
	}
	u := &url.URL{Scheme: "https", Host: to.String(), Path: "/"}
	a, err := g.Decide(ctx, u)
	if err != nil {
		return err
	}
	if !a.Allowed {
		return &client.DisallowedError{URL: u, Answer: a}
	}
	rules, err := g.Lookup(ctx, u)
	if err != nil {
		return err
	}
	if r, forbids := forbids(rules, a.Token); forbids {
		return sealed(to, fmt.Sprintf("line %d of its robots.txt, %s, forbids %s something, and the target is not seen",
			r.Line, visible(r.String()), cmp.Or(a.Token, "*")))
	}
	return nil
}

func sealed(to proxy.Target, why string) error {
	return serve.NewProblem(http.StatusForbidden, "tunnel",
		"no tunnel to %s: %s. Give the proxy a CA (robots proxy ca)", to, why)
}

// forbids returns a rule of p that may forbid a crawler something, and whether there is one. That a
// rule is there is enough, whether or not others outweigh it, and in every dialect.
func forbids(p *policy.Policy, token string) (policy.Rule, bool) {
	for r := range p.Group(token).Rules() {
		if !r.Allow && r.Pattern != "" { // an empty one matches nothing
			return r, true
		}
	}
	return policy.Rule{}, p.Reason() == policy.ReasonUnreachable
}
