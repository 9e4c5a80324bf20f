package proxy

// What robots.txt may forbid as a whole, for tunnels in which no request is seen. That is asked for here
// alone: a decision needs a target.

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/policy"
)

// The ways with a tunnel that is not looked into.
const (
	BlindOrigin = "origin" // it opens if the site forbids nothing
	BlindRefuse = "refuse"
	BlindAllow  = "allow"
)

// BlindWays are all of them.
var BlindWays = []string{BlindOrigin, BlindRefuse, BlindAllow}

// decideBlind decides about a tunnel whose requests cannot be seen: it returns why there may be none, or until
// when there may; the zero time is for ever. Any path may be asked for in it, and with Each by any crawler,
// since the User-Agent of a CONNECT binds no request inside. So nothing may be disallowed.
func (o Obeying) decideBlind(ctx context.Context, g *site.Gate, to Target) (until time.Time, err error) {
	switch o.Blind {
	case BlindAllow:
		return until, nil
	case BlindRefuse:
		return until, sealed(to, "requests in it cannot be decided on")
	}
	u := &url.URL{Scheme: "https", Host: to.String(), Path: "/"}
	a, err := g.Decide(ctx, u)
	if err != nil {
		return until, err
	}
	if a.Reason == policy.ReasonUnreachable || a.Reason == policy.ReasonUse {
		return until, &client.DisallowedError{URL: u, Answer: a}
	}
	// Decide has told for whom; which other targets are forbidden, only the rules tell.
	rules, err := g.Lookup(ctx, u)
	if err != nil {
		return until, err
	}
	what, is := forbids(rules, a.Token)
	if o.Each {
		what, is = forbidsAny(rules)
	}
	if is {
		return until, sealed(to, what+" something, and the target is not seen")
	}
	if until = a.Until; until.IsZero() { // the cache has dropped it
		until = time.Now().Add(time.Minute)
	}
	return until, nil
}

// sealed is the refusal of a tunnel, with the remedy.
func sealed(to Target, why string) error {
	return web.NewProblem(http.StatusForbidden, "tunnel",
		"no tunnel to %s: %s. Give the proxy a CA, which lets it look inside (--ca; robots proxy ca makes one)", to, why)
}

// forbids tells what p may forbid a crawler, and whether there is such. That a rule is there is enough,
// whether or not others outweigh it, and in every dialect: to err on this side costs a tunnel, and on the
// other a page that is forbidden.
func forbids(p *policy.Policy, token string) (what string, is bool) {
	for r := range p.Group(token).Rules() {
		if !r.Allow && r.Pattern != "" { // an empty one matches nothing
			return fmt.Sprintf("line %d of its robots.txt, %s, forbids %s", r.Line, answer.Visible(r.String()), cmp.Or(token, "*")), true
		}
	}
	return "its robots.txt, which is unreachable, forbids", p.Reason() == policy.ReasonUnreachable
}

// forbidsAny is forbids for any crawler that there may be: no group of the file may forbid something.
func forbidsAny(p *policy.Policy) (what string, is bool) {
	var name string
	for line := range strings.Lines(p.String()) { // which has all names and rules
		switch field, value, _ := strings.Cut(strings.TrimSpace(line), ": "); {
		case field == "User-agent":
			name = value
		case field == "Disallow" && value != "":
			return fmt.Sprintf("its robots.txt, by %s, forbids %s", answer.Visible(strings.TrimSpace(line)), answer.Visible(name)), true
		}
	}
	return "", false
}
