package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/client/internal/target"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// gate is a Transport with its zero values resolved.
type gate struct {
	base       http.RoundTripper
	agent      string   // Transport.UserAgent
	agentToken string   // the product token in agent, or in what net/http sends without
	agentField []string // agent as it stands in a header; without room to append
	token      string   // Transport.Token
	cache      *cache.Cache
	ownCache   bool // no other Transport has it
	fetcher    *fetch.Fetcher
	sign       func(*http.Request) error
	source     cache.Source // reads through readRobots
	keeper     *pace.Keeper // of Transport.Pacer; nil: it keeps no pace
	trace      Trace
	ftp        bool     // ftp is gated
	wire       bool     // Base tells when it hands a request to a connection, and may do so more than once
	publicOnly bool     // Fetcher.PublicOnly
	uses       []string // Transport.Uses
	agreements *Agreements
	misuse     error // what is wrong with the Transport, or nil

	yet func(_ context.Context, _ *http.Request, ends time.Time, cachedOnly bool) (allowed, known bool) // allowedYet

	lent      sync.Pool // headers with agentField alone, see takeBack
	closed    atomic.Bool
	clockTold atomic.Bool
	panicked  sync.Map // names of the hooks whose panic is logged
}

// ruling is a question and what the gate finds. It is filled through a pointer: returned
// by value it would be copied at every step of the warm path.
type ruling struct {
	question
	own        *gating
	cachedOnly bool // look only at what the cache holds, see ended
	late       bool // Trace.Decided took its time

	origin fetch.Origin
	result *fetch.Result // what decides; nil for /robots.txt itself
}

// answer fills a in place: it is large, and would be copied at each step of a refusal.
func (g *gate) answer(r *ruling, a *Answer) {
	if r.question.answer(a); r.result != nil {
		a.Unreachable, a.Received = r.result.Err, r.result.Time
		if until := g.cache.Until(r.origin, &g.source); a.Agreement == nil || !until.IsZero() && until.Before(a.Until) {
			a.Until = until
		}
	}
}

// ask is decide, reported to Trace.
func (g *gate) ask(ctx context.Context, req *http.Request, r *ruling) error {
	if g.trace.Decided == nil {
		return g.decide(ctx, req, r)
	}
	var err error
	took := timed(func() { err = g.decide(ctx, req, r) })
	d := DecidedInfo{URL: req.URL, Err: err, Took: took}
	g.answer(r, &d.Answer)
	if r.origin != (fetch.Origin{}) && err != errConnect {
		d.Target, _ = target.Of(nil, req.URL)
	}
	var panicked error
	r.late = timed(func() { panicked = g.call("Decided", func() { g.trace.Decided(ctx, d) }) }) >= freshTime
	if err == nil && r.Allowed && panicked != nil {
		r.Decision, err = policy.Decision{}, panicked // a refusal is the better error
	}
	return err
}

// decide rules on the target that is sent for req. The error says why there is no ruling.
func (g *gate) decide(ctx context.Context, req *http.Request, r *ruling) error {
	if g.misuse != nil {
		return g.misuse
	}
	if r.own.tokenMisuse != nil {
		return r.own.tokenMisuse
	}
	if r.own.usesMisuse != nil {
		return r.own.usesMisuse
	}
	var err error
	if r.origin, err = originOf(req); err != nil {
		return err
	}
	path := target.Path(req.URL)
	if path != "" && req.URL.RawQuery == "" {
		return g.decideTarget(ctx, req, r, nil, path)
	}
	var buf [targetBuffer]byte // cleared, which a plain path need not pay for
	return g.decideTarget(ctx, req, r, buf[:0], path)
}

// targetBuffer is how long a path with a query may be to be decided on without an
// allocation.
const targetBuffer = 512

// decideTarget is decide once the origin and target.Path are known. The target may live in buf.
func (g *gate) decideTarget(ctx context.Context, req *http.Request, r *ruling, buf []byte, path string) error {
	sent, err := target.OfPath(buf, path, req.URL)
	switch {
	case err != nil:
		return err
	case req.Method == http.MethodConnect: // HTTP/2 sends no path with it
		return errConnect
	case sent == robotsTarget:
		r.Decision = unruled
		return nil
	}
	patience := ctx
	if r.cachedOnly {
		patience = ended
	}
	res, err := g.cache.Get(patience, r.origin, &g.source)
	if err != nil {
		return g.unknown(patience, err)
	}
	r.policy, r.group, r.uses, r.ftp = res.Policy, res.Policy.Group(r.token), g.uses, g.ftp && isOther(req.URL)
	if r.agreed = g.agreements.of(r.origin); r.agreed != nil {
		r.now = time.Now() // not the Keeper's, which follows within a second
	} else if g.keeper != nil {
		r.now = g.keeper.Now()
	}
	if r.own.hasUses {
		r.uses = r.own.uses
	}
	if g.keeper != nil {
		g.keeper.Learn(r.origin, r.group, r.token, res, r.now)
	}
	if err = r.question.decide(ctx, sent); err == nil {
		r.result = res
	}
	return err
}

// rule decides on a request once more. With cachedOnly it asks nothing but the cache.
func (g *gate) rule(ctx context.Context, req *http.Request, cachedOnly bool) (ruling, error) {
	own := gatingOf(ctx)
	agent, hasAgent := req.Header["User-Agent"]
	r := ruling{question: question{token: g.tokenFor(own, agent, hasAgent)}, own: own, cachedOnly: cachedOnly}
	return r, g.decide(ctx, req, &r)
}

// allowedYet is pace.Request.Allowed.
func (g *gate) allowedYet(ctx context.Context, req *http.Request, ends time.Time, cachedOnly bool) (allowed, known bool) {
	r, err := g.rule(ctx, req, cachedOnly)
	return g.refusal(req, &r, ends, err, time.Now()) == nil, !errors.Is(err, context.Canceled)
}

// refusal returns why a request that was allowed is not any more, or nil. If there is no ruling, because the
// Transport or the Cache was closed or the cache holds nothing usable, what was allowed still is, unless by an
// agreement that ends.
func (g *gate) refusal(req *http.Request, r *ruling, ends time.Time, err error, now time.Time) error {
	switch {
	case err != nil && over(ends, now):
		r.Decision = policy.Decision{Reason: policy.ReasonUnreachable}
		return &DisallowedError{URL: req.URL, Answer: Answer{Decision: r.Decision, Token: r.token, Unreachable: err}}
	case err != nil || r.Allowed:
		return nil
	case r.Reason == policy.ReasonUse:
		refused := &UseError{URL: req.URL}
		g.answer(r, &refused.Answer)
		return refused
	}
	refused := &DisallowedError{URL: req.URL}
	g.answer(r, &refused.Answer)
	return refused
}

// stillAllowed returns why a request may not be sent any more, or nil, and tells Trace of a refusal. What has expired
// meanwhile is read anew, no longer than ctx: a copy that forbids must not end as permission.
func (g *gate) stillAllowed(ctx context.Context, req *http.Request, by *Agreement) error {
	var r ruling
	var err error
	took := timed(func() {
		if r, err = g.rule(ctx, req, true); errors.Is(err, context.Canceled) {
			r, err = g.rule(ctx, req, false)
		}
	})
	if ctx.Err() != nil { // or HTTP/1 might write first, and then look
		return context.Cause(ctx)
	}
	refused := g.refusal(req, &r, by.ends(), err, time.Now())
	if refused != nil && g.trace.Decided != nil {
		d := DecidedInfo{URL: req.URL, Took: took}
		g.answer(&r, &d.Answer)
		d.Target, _ = target.Of(nil, req.URL)
		g.call("Decided", func() { g.trace.Decided(ctx, d) })
	}
	return refused
}

// unknown returns an error of the cache as callers see it: the context's cause, or what was
// closed first.
func (g *gate) unknown(ctx context.Context, err error) error {
	switch {
	case g.ownCache && errors.Is(err, cache.ErrClosed):
		return ErrClosed // the caller knows of no Cache
	case errors.Is(err, cache.ErrClosed):
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	case errors.Is(err, ctx.Err()):
		return context.Cause(ctx) // as net/http has it
	}
	return err
}

// readRobots reads the robots.txt of o at its pace, and reports that to Trace.
func (g *gate) readRobots(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
	var res *fetch.Result
	var err error
	took := timed(func() { res, err = readRobots(ctx, g.keeper, o, prev, g.fetcher.Fetch) })
	if g.trace.Fetched != nil {
		f := FetchedInfo{Origin: o, Refresh: prev != nil, Result: res, Err: err, Took: took}
		g.call("Fetched", func() { g.trace.Fetched(ctx, f) })
	}
	return res, err
}

// isFree reports whether u has a scheme that robots.txt does not bind here.
func (g *gate) isFree(u *url.URL) bool {
	return isOther(u) && !(g.ftp && strings.EqualFold(u.Scheme, "ftp"))
}

// call calls the hook of a name, unless the Transport is closed. It makes an error of a
// panic.
func (g *gate) call(name string, hook func()) (err error) {
	if g.closed.Load() {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("client: Trace.%s panicked: %s", name, say.Cut(say.Text(p)))
			// A hook may panic for every request, and a log handler that uses the Transport could make another panic of each.
			if _, logged := g.panicked.LoadOrStore(name, true); !logged {
				say.Log(slog.LevelError, err.Error(), "stack", string(debug.Stack()))
			}
		}
	}()
	hook()
	return nil
}

// tokenFor returns the product token to decide for, given the request's own gating and
// its User-Agent field, if it has one.
func (g *gate) tokenFor(own *gating, agent []string, ok bool) string {
	switch {
	case own.hasToken:
		return own.token
	case g.token != "":
		return g.token
	case !ok:
		return g.agentToken
	case len(agent) == 0 || agent[0] == "": // net/http sends none
		return ""
	case agent[0] == g.agent:
		return g.agentToken
	}
	return policy.ProductToken(agent[0])
}

// checkPublic returns why out, as it goes to Base, must not be sent to o, as far as its hosts tell, or nil. A proxy
// resolves names itself, so this is all that can be seen of what is behind one.
func (g *gate) checkPublic(out *http.Request, o fetch.Origin) error {
	if !g.publicOnly {
		return nil
	}
	return hostsMisuse(out, o)
}

// hostsMisuse is apart so that checkPublic is inlined.
func hostsMisuse(out *http.Request, o fetch.Origin) error {
	if isOther(out.URL) {
		return mistake{fmt.Errorf("client: not sent: PublicOnly cannot see where a request of scheme %q goes: %w",
			say.Cut(out.URL.Scheme), ErrNotPublic)}
	}
	for _, host := range []string{o.URLHost(), o.HostField()} { // either may be what a proxy is asked for
		name := (&url.URL{Host: host}).Hostname()
		addr, err := netip.ParseAddr(name)
		// Package fetch has this rule (RFC 6761 §6.3), too, for the connections that it makes: pages go through Base.
		if name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && !fetch.Public(addr) {
			return notPublic(host)
		}
	}
	return nil
}
