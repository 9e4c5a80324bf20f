package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// gate is a Transport with its zero values resolved.
type gate struct {
	base       http.RoundTripper
	agent      []string // Transport.UserAgent as a header value, without spare capacity; nil if empty
	agentToken string   // the product token in agent, or in what net/http sends instead
	token      string   // Transport.Token
	uses       []string // Transport.Uses
	override   func(fetch.Origin) *policy.Policy
	cache      *cache.Cache
	ownCache   bool // the Transport made it
	fetcher    *fetch.Fetcher
	source     cache.Source // reads through load
	memory     cache.Source // looks only in memory
	keeper     *pace.Keeper // of Transport.Pacer; nil if there is none
	sign       func(*http.Request) error
	trace      Trace
	configErr  error // what is wrong with the Transport, or nil
	closed     atomic.Bool
	closing    chan struct{} // closed before cache is, if that is ours
	fetchErrs  fetchErrs     // with keeper
}

// ruling is a question and what the gate finds. It is filled through a pointer, because by value it would be copied at
// every step of the warm path.
type ruling struct {
	own     *gating
	token   string
	waitFor waiting

	origin fetch.Origin
	target string
	policy *policy.Policy // nil if none was needed
	result *fetch.Result  // where policy comes from; nil if from Override
	until  time.Time      // when result stops holding

	policy.Decision // zero after an error
	use, by         string
}

// waiting is how long to wait for robots.txt.
type waiting uint8

const (
	untilRead waiting = iota // as long as the context lasts
	notAtAll                 // if the cache does not hold it, it is read behind the caller
	inMemory                 // if the cache does not hold it, it is not read
)

// answer fills a in place, because it is large and would be copied at each step of a refusal.
func (r *ruling) answer(a *Answer) {
	a.Decision = r.Decision
	a.Token = r.token
	a.Use = r.use
	a.By = r.by
	a.Until = r.until
	if r.result != nil {
		a.Unreachable = r.result.Err
		a.Received = r.result.Time
	} else {
		a.Overridden = r.policy != nil
	}
}

// refusal returns why a request is not sent, or nil.
func (r *ruling) refusal(u *url.URL) error {
	if r.Allowed {
		return nil
	}
	refused := &DisallowedError{URL: u}
	r.answer(&refused.Answer)
	return refused
}

// ask is decide, reported to Trace.
func (g *gate) ask(ctx context.Context, req *http.Request, r *ruling) error {
	if g.trace.Decided == nil {
		return g.decide(ctx, req, r)
	}
	start := time.Now()
	err := g.decide(ctx, req, r)
	g.traceDecided(ctx, req, r, err, time.Since(start))
	return err
}

func (g *gate) traceDecided(ctx context.Context, req *http.Request, r *ruling, err error, took time.Duration) {
	if g.trace.Decided == nil || g.closed.Load() {
		return
	}
	a := Answer{Token: r.token}
	if err == nil {
		r.answer(&a)
	}
	g.trace.Decided(ctx, req.URL, a, took, err)
}

// unconditional is the Decision about what no rule can forbid.
var unconditional = policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}

// decide rules on the target that is sent for req. The error says why there is no ruling.
func (g *gate) decide(ctx context.Context, req *http.Request, r *ruling) (err error) {
	if err = cmp.Or(g.configErr, r.own.tokenErr, r.own.usesErr); err != nil {
		return err
	}
	if req.Method == http.MethodConnect {
		return errConnect
	}
	if r.origin, err = originOf(req); err != nil {
		return err
	}
	if r.target, err = targetOf(req.URL); err != nil {
		return err
	}
	if r.target == robotsTarget {
		r.Decision = unconditional
		return nil
	}
	if err = g.read(ctx, r); err != nil {
		r.Decision = policy.Decision{}
		return err
	}
	g.rule(r)
	return nil
}

// read finds the policy of the origin: that of Override, or else robots.txt.
func (g *gate) read(ctx context.Context, r *ruling) error {
	r.result, r.until = nil, time.Time{}
	if g.override != nil {
		if r.policy = g.override(r.origin); r.policy != nil {
			if r.policy.Reason() == policy.ReasonUnreachable {
				r.until = time.Now().Add(time.Minute) // with none, a queue would ask in a loop
			}
			return nil
		}
	}
	switch r.waitFor {
	case inMemory:
		return g.get(ctx, r, &g.memory)
	case notAtAll:
		return g.readBehind(ctx, r)
	}
	return g.await(ctx, r)
}

// get asks the cache. With an error, r.result is the newest that it has in memory, if any.
func (g *gate) get(ctx context.Context, r *ruling, from *cache.Source) (err error) {
	if r.result, r.until, err = g.cache.Get(ctx, r.origin, from); err == nil {
		r.policy = r.result.Policy
	}
	return err
}

// await reads robots.txt, and asks for it again if its turn did not come in time.
func (g *gate) await(ctx context.Context, r *ruling) error {
	if err := ctx.Err(); err != nil { // nothing is asked for a caller who has gone
		return g.cacheErr(ctx, r.origin, err)
	}
	// What gave the turn a moment ago would else be read anew, in the time-out of the page.
	if t := turnOf(ctx, g.keeper, r.origin); t != nil && time.Since(t.given) < time.Second && g.readSince(r, t.read) {
		return nil
	}
	for {
		err := g.get(ctx, r, &g.source)
		if err == nil {
			return nil
		}
		late, ok := errors.AsType[*LateError](err)
		if !ok {
			return g.cacheErr(ctx, r.origin, err)
		}
		if err = g.waitUntil(ctx, late); err != nil {
			return err
		}
	}
}

// readBehind is for a Try: if robots.txt has to be read, that goes on behind it. The error says why the last reading
// did not ask the site, or that it is late.
func (g *gate) readBehind(ctx context.Context, r *ruling) error {
	if g.readSince(r, g.keeper.Since(r.origin)) {
		return nil
	}
	err := g.get(endedContext, r, &g.source)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, context.Canceled):
		return g.cacheErr(endedContext, r.origin, err)
	}
	if err = g.fetchErrs.take(r.origin); err != nil { // a Try does not wait for the fetch, and would not learn of it
		return g.cacheErr(ctx, r.origin, err)
	}
	late := newLateError(r.origin, g.keeper.Later(r.origin))
	late.reading = true
	return late
}

// readSince uses a copy that no longer holds if it was read at since or later: a Try would never get a turn at a site
// whose robots.txt expires before its turn comes. A zero since means no. What still holds is left to get, which renews
// it.
func (g *gate) readSince(r *ruling, since time.Time) bool {
	res, until, err := g.cache.Get(endedContext, r.origin, &g.memory)
	if since.IsZero() || res == nil || err == nil || res.Time.Before(since) {
		return false
	}
	r.result = res
	r.until = until
	r.policy = res.Policy
	return true
}

// waitUntil waits until a robots.txt whose turn did not come in time can be asked for again.
func (g *gate) waitUntil(ctx context.Context, late *LateError) error {
	if deadline, ok := ctx.Deadline(); ok && late.At.After(deadline) {
		return late
	}
	select {
	case <-time.After(max(time.Until(late.At), minPause)):
		return nil
	case <-g.closing:
		return closedError{}
	case <-ctx.Done():
		return waitError{fmt.Errorf("%w (%v)", context.Cause(ctx), late)}
	}
}

// cacheErr returns an error of the cache as callers see it: the context's cause and what was waited for, or what was
// closed first.
func (g *gate) cacheErr(ctx context.Context, o fetch.Origin, err error) error {
	switch {
	case g.ownCache && errors.Is(err, cache.ErrClosed):
		return closedError{} // the caller knows of no Cache
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return g.timeoutErr(context.Cause(ctx), o)
	case errors.Is(err, ErrNotSent):
		return err
	}
	return notSentf("client: not sent, as robots.txt was not asked for: %w", err)
}

// timeoutErr returns why a wait for the robots.txt of o ended. The error of a time-out says what it waited for, or it
// would look like that of a page.
func (g *gate) timeoutErr(cause error, o fetch.Origin) error {
	if !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	if g.keeper != nil {
		if err := g.keeper.Next(o).Err; err != nil {
			return waitError{fmt.Errorf("%w (waiting for the store of turns: %w)", cause, err)}
		}
	}
	return waitError{fmt.Errorf("%w (waiting for %s)", cause, cut(o.RobotsURL().String()))}
}

// rule decides by the policy that was found, and tells the Pacer of its delays.
func (g *gate) rule(r *ruling) {
	group := r.policy.Group(r.token)
	if g.keeper != nil {
		g.learn(r, group)
	}
	uses := g.uses
	if r.own.hasUses {
		uses = r.own.uses
	}
	r.decideBy(group, uses)
}

// decideBy is what rule has in common with DecideWith, which has no gate.
func (r *ruling) decideBy(group policy.Group, uses []string) {
	r.Decision = group.Decide(r.target)
	r.use, r.by = "", ""
	if r.Allowed && len(uses) > 0 {
		if r.use, r.by = disallowedUse(r.policy, r.token, r.target, uses); r.use != "" {
			r.Decision = policy.Decision{Reason: policy.ReasonUse} // the rule that allows did not decide
		}
	}
}

// DecideWith decides about u by the policy p, as a Transport does: about the target that net/http sends. uses are like
// Transport.Uses. DecideWith needs no network, no Cache and no clock, so the Answer has no times. The error says what
// is wrong with u, token or uses. A nil p disallows, as policy.Unreachable does.
func DecideWith(p *policy.Policy, token string, u *url.URL, uses ...string) (Answer, error) {
	var a Answer
	err := cmp.Or(checkToken("token", token), checkUses(uses))
	switch {
	case err != nil:
		return a, err
	case isUngated(u):
		return a, schemeError(u)
	}
	if _, err = originOf(&http.Request{URL: u}); err != nil {
		return a, err
	}
	r := ruling{token: token, policy: p}
	if r.target, err = targetOf(u); err != nil {
		return a, err
	}
	if r.target == robotsTarget {
		return Answer{Decision: unconditional, Token: token}, nil
	}
	r.decideBy(p.Group(token), uses)
	return Answer{Decision: r.Decision, Token: token, Use: r.use, By: r.by}, nil
}

// load reads the robots.txt of o in the dialect of the gate, for the cache, and reports that to Trace.
func (g *gate) load(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
	start := time.Now()
	res, err := g.fetcher.Fetch(ctx, o, prev)
	if err == nil {
		res = res.In(g.source.Dialect)
	}
	if g.keeper != nil && ctx.Err() == nil { // the end of ctx is not why, and not that of a Try's own context
		g.fetchErrs.note(o, err)
	}
	if g.trace.Fetched != nil && !g.closed.Load() {
		g.trace.Fetched(ctx, o, res, time.Since(start), err)
	}
	return res, err
}

// tokenFor returns the product token to decide for, given a request's context and its User-Agent field, if it has one.
func (g *gate) tokenFor(own *gating, agent []string, named bool) string {
	switch {
	case own.hasToken:
		return own.token
	case g.token != "":
		return g.token
	case !named:
		return g.agentToken
	case len(agent) == 0: // net/http sends none
		return ""
	case g.agent != nil && agent[0] == g.agent[0]:
		return g.agentToken
	}
	return policy.ProductToken(agent[0])
}
