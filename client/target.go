package client

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/target"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// DecideWith decides about u by the policy p, as a Transport does: about the target that net/http
// sends. If that has dot segments, it also decides about each path that servers may make of them,
// and all must be allowed. The uses are like Transport.Uses. DecideWith needs no network, no Cache
// and no clock, so the Answer has no times. An ftp URL is decided on as by a Transport whose Fetcher
// reads ftp. The error says why u or token cannot be decided on.
func DecideWith(p *policy.Policy, token string, u *url.URL, uses ...string) (Answer, error) {
	var a Answer
	err := decideWith(nil, p, token, u, uses, &a)
	return a, err
}

func decideWith(agreed *Agreements, p *policy.Policy, token string, u *url.URL, uses []string, a *Answer) error {
	if err := tokenMisuse("token", token); err != nil {
		return err
	}
	if err := usesMisuse(uses); err != nil {
		return err
	}
	ftp := isOther(u)
	if ftp && !strings.EqualFold(u.Scheme, "ftp") {
		return schemeError(u)
	}
	o, err := originOf(&http.Request{URL: u})
	if err != nil {
		return err
	}
	var room [128]byte // for most: it is cleared each time
	sent, err := target.Of(room[:0], u)
	switch {
	case err != nil:
		return err
	case sent == robotsTarget:
		a.Decision, a.Token = unruled, token
		return nil
	}
	q := question{policy: p, group: p.Group(token), token: token, uses: uses, ftp: ftp, agreed: agreed.of(o)}
	if q.agreed != nil {
		q.now = time.Now()
	}
	if err = q.decide(context.Background(), sent); err == nil {
		q.answer(a)
	}
	return err
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
	now    time.Time    // of all the decision; zero: it needs none

	policy.Decision // zero after an error
	use             string
	by              *usage.Statement // with ReasonUse
	agreement       *Agreement       // that ends first of those that have decided on a form of the target
	settled         *policy.Decision // by it
}

func (q *question) answer(a *Answer) {
	a.Decision, a.Token, a.Use, a.By = q.Decision, q.token, q.use, q.by
	if q.Reason == policy.ReasonAgreement {
		a.Agreement, a.Until = q.agreement, q.agreement.Until
	}
}

// decide is the verdict on a target. The error is the context's cause, or says that the target can be read in too
// many ways.
func (q *question) decide(ctx context.Context, sent string) error {
	if q.decideForm(sent); q.Allowed && (q.ftp || target.HasDotSegment(sent)) {
		return q.decideDotFree(ctx, strings.Clone(sent)) // the rare case pays, the caller's buffer stays on the stack
	}
	return nil
}

// decideForm decides on a target as it is written.
func (q *question) decideForm(form string) {
	if q.Decision = q.group.Decide(form); len(q.agreed) > 0 {
		q.agree(form)
	}
	if q.Allowed && len(q.uses) > 0 {
		if q.use, q.by = disallowedUse(q.policy, q.token, form, q.uses); q.by != nil {
			q.Decision = policy.Decision{Reason: policy.ReasonUse} // the rule that allows did not decide
		}
	}
}

// decideDotFree decides on every form that servers make of a target with dot segments, which is allowed as written.
// net/http sends such a target as written, and /public/../private asks many servers for
// /private. With a %2F instead of a slash, it asks some. All forms must be allowed. That
// is stricter than RFC 9309, which knows only the target as sent. Every ftp target is decided on
// so: what sends it reads "//", "%2F" and ";type=a" in its own way too (RFC 1738 §3.2.2).
func (q *question) decideDotFree(ctx context.Context, sent string) error {
	for form, err := range target.Forms(sent) {
		if err == nil && ctx.Err() != nil { // a hostile file makes each decision slow
			err = context.Cause(ctx)
		}
		if err != nil {
			q.Decision = policy.Decision{}
			return err
		}
		if q.decideForm(form); !q.Allowed {
			return nil
		}
	}
	if q.agreement != nil { // the last form may need none
		q.Decision = *q.settled
	}
	return nil
}

// robotsTarget is implicitly allowed (RFC 9309 §2.2.2), whatever robots.txt says and even
// if it is unreachable.
const robotsTarget = "/robots.txt"

// unruled is the Decision about what no rule can forbid.
var unruled = policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}

// Decide is [DecideWith] with the agreements deciding before p. It reads the clock: they have an end.
func (all *Agreements) Decide(p *policy.Policy, token string, u *url.URL, uses ...string) (Answer, error) {
	var a Answer
	err := decideWith(all, p, token, u, uses, &a)
	return a, err
}

// agree has the first agreement that has a rule for the target decide in place of q.group, which has.
func (q *question) agree(form string) {
	for _, a := range q.agreed {
		d := a.rules.Decide(q.token, form)
		switch {
		case d.Reason != policy.ReasonRule:
			continue
		case !q.now.Before(a.Until), d.Allowed && over(a.Until, q.now): // what it forbids is not sent late
			a.log(&a.ended, slog.LevelWarn, "client: an agreement has ended")
			continue
		case d.Allowed && len(q.uses) > 0 && q.Reason == policy.ReasonUnreachable:
			return // what robots.txt says about use is not known
		}
		a.log(&a.used, slog.LevelInfo, "client: an agreement decides")
		d.Reason = policy.ReasonAgreement
		d.Rule.Line += a.above
		if q.Decision = d; q.agreement == nil || !d.Allowed || a.Until.Before(q.agreement.Until) {
			settled := d
			q.agreement, q.settled = a, &settled
		}
		return
	}
}
