package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// gate is a Transport with its zero values resolved.
type gate struct {
	base       http.RoundTripper
	agent      string   // Transport.UserAgent
	agentToken string   // the product token in agent
	agentField []string // agent as it stands in a header; without room to append
	token      string   // Transport.Token
	cache      *cache.Cache
	ownCache   bool // no other Transport has it
	fetcher    *fetch.Fetcher
	sign       func(*http.Request) error
	source     cache.Source // reads through readRobots
	pacer      *Pacer
	trace      Trace
	ftp        bool     // ftp is gated
	wire       bool     // Base tells when it hands a request to a connection, and may do so more than once
	publicOnly bool     // Fetcher.PublicOnly
	uses       []string // Transport.Uses
	misuse     error    // what is wrong with the Transport, or nil

	closed    atomic.Bool
	clockTold atomic.Bool
	panicked  sync.Map // names of the hooks whose panic is logged
}

// load is the signature of (*fetch.Fetcher).Fetch.
type load = func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)

// init resolves the fields of t.
func (g *gate) init(t *Transport) {
	g.base, g.agent, g.token = t.Base, t.UserAgent, t.Token
	g.agentToken, g.agentField = policy.ProductToken(t.UserAgent), []string{t.UserAgent}
	g.cache, g.pacer, g.sign, g.uses = t.Cache, t.Pacer, t.Sign, slices.Clone(t.Uses)
	if g.base == nil {
		g.base = http.DefaultTransport
	}
	if g.cache == nil {
		g.cache, g.ownCache = new(cache.Cache), true
	}
	g.fetcher = t.filledFetcher()
	g.ftp = g.fetcher.Reads("ftp")
	g.source = cache.Source{
		Load: g.readRobots, UserAgent: g.fetcher.UserAgent, Dialect: g.fetcher.Dialect,
		Signed: g.fetcher.Sign != nil, PublicOnly: g.fetcher.PublicOnly,
	}
	if t.Trace != nil {
		g.trace = *t.Trace
	}
	g.misuse = t.misuse(g)
	g.publicOnly = g.fetcher.PublicOnly
	if base, ok := g.base.(*http.Transport); ok {
		g.wire = true
		if g.publicOnly {
			g.base = publicTransport(base)
		}
	}
}

// misuse returns what is wrong with the fields of t, or nil.
func (t *Transport) misuse(g *gate) error {
	f := g.fetcher
	switch self := http.RoundTripper(t); {
	case g.base == self || f.Transport == self:
		return errors.New("client: the Transport is its own Base: set Base (or Fetcher.Transport) to what sends, " +
			"not to the gate or to nil where http.DefaultTransport is the gate")
	case f.Dialect != t.Dialect && t.Dialect != policy.RFC9309:
		return fmt.Errorf("client: Fetcher.Dialect is %v but Transport.Dialect is %v: set one of them, or both alike",
			f.Dialect, t.Dialect)
	}
	return cmp.Or(tokenMisuse("Token", t.Token), usesMisuse(t.Uses))
}

// filledFetcher returns Fetcher with its blanks filled from t: a copy, if there are any,
// because a Fetcher may serve other Transports.
func (t *Transport) filledFetcher() *fetch.Fetcher {
	var f fetch.Fetcher
	if g := t.Fetcher; g != nil {
		if (g.Transport != nil || t.Base == nil) && (g.UserAgent != "" || t.UserAgent == "") &&
			(g.Dialect != 0 || t.Dialect == 0) && (g.Sign != nil || t.Sign == nil) {
			return g
		}
		f.Transport, f.UserAgent, f.Dialect, f.Timeout = g.Transport, g.UserAgent, g.Dialect, g.Timeout
		f.Retries, f.MaxFetches, f.PublicOnly, f.Sign = g.Retries, g.MaxFetches, g.PublicOnly, g.Sign
		f.FTP, f.MaxMemory = g.FTP, g.MaxMemory
	}
	if f.Sign == nil {
		f.Sign = t.Sign
	}
	if f.Transport == nil {
		f.Transport = t.Base
	}
	f.UserAgent = cmp.Or(f.UserAgent, t.UserAgent)
	f.Dialect = cmp.Or(f.Dialect, t.Dialect)
	return &f
}

// admit decides on req. It returns what is to be sent, req itself or a copy, and the
// origin whose pace to keep. A request that keeps none has the zero Origin.
func (g *gate) admit(req *http.Request) (*http.Request, fetch.Origin, error) {
	own := gatingOf(req.Context())
	if g.misuse == nil && isOther(req.URL) && g.isFree(req.URL) {
		return req, fetch.Origin{}, g.checkPublic(req.URL)
	}
	agent, hasAgent := req.Header["User-Agent"]
	if g.misuse == nil && own.bypass {
		o, err := originOf(req)
		if err != nil {
			return nil, o, err
		}
		return g.toSend(req, o, hasAgent), fetch.Origin{}, g.checkPublic(req.URL)
	}
	if n := len(req.Header); n > 1 || n == 1 && !hasAgent { // to go through a map takes a fifth of what the gate does
		if err := checkKeys(req.Header); err != nil {
			return nil, fetch.Origin{}, err
		}
	}
	r := ruling{token: g.tokenFor(own, agent, hasAgent), misuse: own.misuse, brief: true}
	if err := g.ask(req.Context(), req, &r); err != nil {
		return nil, r.origin, err
	}
	if !r.Allowed {
		return nil, r.origin, &DisallowedError{URL: req.URL, Answer: g.answer(&r)}
	}
	return g.toSend(req, r.origin, hasAgent), r.origin, g.checkPublic(req.URL)
}

// unruled is the Decision about what no rule can forbid.
var unruled = policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}

// ruling is a question and what the gate finds. It is filled through a pointer: returned
// by value it would be copied at every step of the warm path.
type ruling struct {
	token  string
	misuse error // what is wrong with what the context says, or nil
	brief  bool  // of a permission, only Allowed is wanted: copying the rest takes longer than finding it
	held   bool  // look only at what the cache holds, see ended

	policy.Decision
	origin fetch.Origin
	result *fetch.Result // what decides; nil for /robots.txt itself
}

// answer returns r as callers see it.
func (g *gate) answer(r *ruling) Answer {
	a := Answer{Decision: r.Decision, Token: r.token}
	if r.result != nil {
		a.Err, a.Received, a.Until = r.result.Err, r.result.Time, g.cache.Until(r.origin, &g.source)
	}
	return a
}

// ask is decide, reported to Trace.
func (g *gate) ask(ctx context.Context, req *http.Request, r *ruling) error {
	if g.trace.Decided == nil {
		return g.decide(ctx, req, r, nil)
	}
	r.brief = false
	d := Decided{URL: req.URL}
	start := time.Now()
	err := g.decide(ctx, req, r, &d.Target)
	d.Answer, d.Took = g.answer(r), time.Since(start)
	d.Err = errors.Join(d.Err, err)
	returned := false
	defer func() {
		if !returned { // the hook ended the goroutine, as a test's Fatal does
			refuse(req, nil)
		}
	}()
	panicked := g.call("Decided", func() { g.trace.Decided(ctx, d) })
	if returned = true; err == nil && r.Allowed && panicked != nil {
		r.Decision, err = policy.Decision{}, panicked // a refusal is the better error
	}
	return err
}

// decide rules on the target that is sent for req, and writes it to sent if that is not
// nil. The error says why there is no ruling.
func (g *gate) decide(ctx context.Context, req *http.Request, r *ruling, sent *string) error {
	if g.misuse != nil {
		return g.misuse
	}
	if r.misuse != nil {
		return r.misuse
	}
	var buf [targetBuffer]byte
	target, o, err := targetOf(buf[:0], req)
	if r.origin = o; err != nil {
		return err
	}
	if sent != nil {
		*sent = strings.Clone(target)
	}
	if target == robotsTarget {
		r.Decision = unruled
		return nil
	}
	return g.judge(ctx, req.URL, target, r)
}

// judge rules on a target by the robots.txt of r.origin.
func (g *gate) judge(ctx context.Context, u *url.URL, target string, r *ruling) error {
	patience := ctx
	if r.held {
		patience = ended
	}
	res, err := g.lookup(patience, r.origin)
	if err != nil {
		return err
	}
	group := res.Policy.Group(r.token)
	if g.pacer != nil {
		g.pacer.learn(r.origin, group, r.token, res)
	}
	q := question{res.Policy, group, r.token, g.uses, g.ftp && isOther(u)}
	d, err := q.decide(ctx, target)
	if e, ok := err.(*UseError); ok {
		e.URL, e.Answer = u, g.answer(&ruling{token: r.token, Decision: e.Decision, origin: r.origin, result: res})
	}
	if err != nil {
		return err
	}
	if r.brief && d.Allowed {
		r.Allowed = true
		return nil
	}
	r.result, r.Decision = res, d
	return nil
}

// rule decides on a request once more. With held it asks nothing but the cache.
func (g *gate) rule(ctx context.Context, req *http.Request, held bool) (ruling, error) {
	agent, hasAgent := req.Header["User-Agent"]
	r := ruling{token: g.tokenFor(gatingOf(ctx), agent, hasAgent), brief: true, held: held}
	return r, g.decide(ctx, req, &r, nil)
}

// refusal returns why a request that was allowed is not any more, or nil. If there is no ruling, because the
// Transport or the Cache was closed or the cache holds nothing usable, what was allowed still is.
func (g *gate) refusal(req *http.Request, r *ruling, err error) error {
	if _, refused := err.(*UseError); refused {
		return err
	}
	if err != nil || r.Allowed {
		return nil
	}
	return &DisallowedError{URL: req.URL, Answer: g.answer(r)}
}

// stillAllowed returns why a request may not be sent any more, or nil. What has expired meanwhile is read anew:
// a copy that forbids must not end as permission.
func (g *gate) stillAllowed(req *http.Request) error {
	r, err := g.rule(req.Context(), req, true)
	if errors.Is(err, context.Canceled) {
		r, err = g.rule(req.Context(), req, false)
	}
	return g.refusal(req, &r, err)
}

// ended is the context of a look-up that fetches nothing. If the cache holds nothing to
// use, the error is context.Canceled.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// lookup returns what holds for o. The error is the context's cause, or says what was
// closed first.
func (g *gate) lookup(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	res, err := g.cache.Get(ctx, o, &g.source)
	if err == nil {
		return res, nil
	}
	switch {
	case g.ownCache && errors.Is(err, cache.ErrClosed):
		err = ErrClosed // the caller knows of no Cache
	case errors.Is(err, ctx.Err()):
		err = context.Cause(ctx) // as net/http has it
	}
	return nil, err
}

// readRobots reads the robots.txt of o at its pace, and reports that to Trace.
func (g *gate) readRobots(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
	start := time.Now()
	res, err := g.pacer.readRobots(ctx, o, prev, g.fetcher.Fetch)
	if g.trace.Fetched != nil {
		f := Fetched{Origin: o, Refresh: prev != nil, Result: res, Err: err, Took: time.Since(start)}
		g.call("Fetched", func() { g.trace.Fetched(f) })
	}
	return res, err
}

// isFree reports whether u has a scheme that robots.txt does not bind here.
func (g *gate) isFree(u *url.URL) bool {
	return isOther(u) && !(g.ftp && strings.EqualFold(u.Scheme, "ftp"))
}

// isOther reports whether u has another scheme than http and https. A URL built by hand may
// have "HTTP" or no scheme at all; neither is a way around the gate.
func isOther(u *url.URL) bool {
	return u != nil && u.Scheme != "http" && u.Scheme != "https" && isOtherScheme(u.Scheme)
}

// isOtherScheme is what seldom has to be looked at, apart so that isOther is inlined.
func isOtherScheme(scheme string) bool {
	return scheme != "" && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
}

// originOf returns the origin that req names on the wire: its Host counts before the URL's.
func originOf(req *http.Request) (fetch.Origin, error) {
	switch {
	case req.URL == nil:
		return fetch.Origin{}, errors.New("client: request has no URL")
	case req.URL.Opaque != "":
		return fetch.Origin{}, opaqueError(req.URL)
	case req.URL.Host == "":
		return fetch.Origin{}, fmt.Errorf("client: URL %q has no host to ask for robots.txt: no Host in request URL", cut(req.URL.Redacted()))
	case isOther(req.URL):
		if err := ftpMisuse(req.URL); err != nil {
			return fetch.Origin{}, err
		}
	}
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return fetch.Origin{}, fmt.Errorf("client: %w", err)
	}
	return o, nil
}

// tokenFor returns the product token to decide for, given the request's own gating and
// its User-Agent field, if it has one.
func (g *gate) tokenFor(own *gating, agent []string, ok bool) string {
	switch {
	case own.hasToken:
		return own.token
	case g.token != "":
		return g.token
	case !ok && g.agent == "":
		return netHTTPToken
	case !ok:
		return g.agentToken
	case len(agent) == 0: // net/http sends none
		return ""
	case agent[0] == g.agent:
		return g.agentToken
	}
	return policy.ProductToken(agent[0])
}

// netHTTPToken is the product token in the User-Agent that net/http sends by itself.
const netHTTPToken = "Go-http-client"

// tokenMisuse returns what is wrong with a product token, or nil. No name in robots.txt
// would match one with other characters, so the group for "*" would silently decide.
func tokenMisuse(name, token string) error {
	if token == "*" {
		return nil // asks for just that group
	}
	if strings.ContainsAny(token, "/(;") {
		return fmt.Errorf("client: %s %q is no product token but a User-Agent, which groups of robots.txt "+
			"would not match: set %s to %q, or UserAgent", name, cut(token), name, cut(policy.ProductToken(token)))
	}
	const others = "!$%&'+-.^_`|~" // those of RFC 9110 §5.6.2 but "*" and "#"
	for i, c := range token {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.ContainsRune(others, c):
			continue
		}
		_, n := utf8.DecodeRuneInString(token[i:])
		return fmt.Errorf("client: %s %q is no product token, and groups of robots.txt would not match it: "+
			"leave out the %q", name, cut(token), token[i:i+n])
	}
	return nil
}

// refuse returns err for a request that is not sent, and closes its body as
// http.RoundTripper demands.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

// checkKeys refuses header keys that would be sent in place of, or beside, the fields
// that were decided on. For HTTP/1.1 net/http looks only at canonical keys; for HTTP/2 it
// ignores case.
func checkKeys(h http.Header) error {
	for key := range h {
		switch {
		case len(key) == len("User-Agent") && key != "User-Agent" && strings.EqualFold(key, "User-Agent"):
			return fmt.Errorf("client: the header key %q is not what is decided for: "+
				"use Header.Set, which writes it %q", key, "User-Agent")
		case len(key) == len("Host") && key != "Host" && strings.EqualFold(key, "Host"):
			return fmt.Errorf("client: the header key %q is not what is decided for: set Request.Host", key)
		}
	}
	return nil
}

// toSend returns req, or a copy of it with what the wire needs: our User-Agent if it has
// none, and the canonical spelling of the origin that was decided on.
func (g *gate) toSend(req *http.Request, o fetch.Origin, hasAgent bool) *http.Request {
	out := req
	if !hasAgent && g.agent != "" {
		out = shallowCopy(out, req)
		out.Header = make(http.Header, len(req.Header)+1)
		maps.Copy(out.Header, req.Header)
		out.Header["User-Agent"] = g.agentField
	}
	if scheme := req.URL.Scheme; scheme != "http" && scheme != "https" || !sameHost(req.URL.Host, o.URLHost(), scheme) {
		out = shallowCopy(out, req)
		u := *req.URL
		u.Scheme, u.Host = strings.ToLower(scheme), o.URLHost()
		out.URL = &u
		if req.Host == req.URL.Host {
			out.Host = "" // net/http takes it from the URL
		}
	}
	if out.Host != "" && out.Host != req.URL.Host && !sameHost(out.Host, o.HostField(), req.URL.Scheme) {
		out = shallowCopy(out, req)
		out.Host = o.HostField()
	}
	return out
}

// shallowCopy returns a copy of req, or out if that is one already.
func shallowCopy(out, req *http.Request) *http.Request {
	if out == req {
		out = new(http.Request)
		*out = *req
	}
	return out
}

// sameHost reports whether written and canonical identify the same host, both when
// dialing and in the Host field. ASCII case and the scheme's own port change neither, so
// they may stay as written. For some spellings of an internationalised name net/http
// dials one host and names another.
func sameHost(written, canonical, scheme string) bool {
	if written == canonical {
		return true
	}
	if scheme == "https" {
		written = strings.TrimSuffix(written, ":443")
	} else {
		written = strings.TrimSuffix(written, ":80")
	}
	// canonical is ASCII: with equal lengths no other letter can fold to one of its own.
	return len(written) == len(canonical) && strings.EqualFold(written, canonical)
}
