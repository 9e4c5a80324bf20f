// Package client makes an http.Client obey robots.txt (RFC 9309).
//
// A [Transport], in these pages also called the gate, wraps the http.RoundTripper that a client would use anyway:
//
//	c := &http.Client{Transport: &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)"}}
//
// Before a request leaves, the Transport looks up the robots.txt of its origin (scheme, host, port). It fetches that
// file once for all callers, and again when it has expired. A request that the rules allow goes to Base. Any other ends
// with a [*DisallowedError], and nothing is sent. The rules are those for its product token, which is the crawler's
// name in the User-Agent, here ExampleBot. If there is no robots.txt (404, most other 4xx), everything is allowed. If
// robots.txt is unreachable (a 5xx answer, no connection, a bad certificate, half a body), nothing is, and
// Decision.Reason says so.
//
// A request is decided on once, right before it is handed to Base: with a [Pacer], when its turn has come. Whatever
// Base does with it then (connect, wait for a connection, send it again after a server refused it or hung up on it
// unread) counts as one request.
//
// # Where the gate stands
//
// The gate is the last RoundTripper before the network:
//
//	http.Client → oauth2.Transport → retries → client.Transport → http.Transport
//
// http.Client calls RoundTrip for every hop of a redirect, so each hop is decided for its own origin. What follows
// redirects, adds credentials or repeats requests belongs above the gate. Then each request is decided on before it is
// sent, and robots.txt is read without credentials. Only what every request needs, such as a proxy or a dialer, belongs
// below. A cache of pages belongs below too, or it could answer one crawler with a page that only another may fetch.
//
// If Base is not an *http.Transport, set Fetcher.Transport to the one at its bottom: robots.txt then bypasses what is
// in between, and is read with all the limits of package fetch.
//
// The gate binds requests made by a program. For a request that a person asked for (a click, a form), use
// [WithoutRobots] or another http.Client.
//
// # When a request is not sent
//
// The errors of the context and of Base are handed on. Every other error is [ErrNotSent], and so is fetch.ErrNotPublic.
// Retries must give up on it: go-retryablehttp needs a CheckRetry that says so. The error tells what to do next:
//
//   - A [*DisallowedError] with policy.ReasonRule: robots.txt says no. Drop the URL.
//   - A [*DisallowedError] with policy.ReasonUnreachable: robots.txt could not be read. Unreachable says why. Ask again
//     after Until.
//   - A [*DisallowedError] with policy.ReasonUse: the rules allow it, but robots.txt says no to one of Transport.Uses.
//     It may be fetched for another use.
//   - A [*LateError]: the turn comes after the request's deadline, or [Transport.Try] would have to wait. Ask again
//     at At.
//   - fetch.ErrNotPublic: the address is not public, and fetch.PublicOnly refused it.
//   - cache.ErrClosed: the Transport, or the Cache that was given to it, is closed.
//   - A *fetch.Failure: robots.txt was not asked for, because of this machine or a proxy, as its Cause says. Ask again
//     later.
//
// Any other error says what is wrong with the URL, Token, Uses or Sign. No retry helps.
//
// If the context ends during a wait, its error is returned; after a time-out it names robots.txt or the store of turns,
// if that was waited for. The fetch of robots.txt goes on, so the next call finds it cached.
//
// # Time-outs
//
// http.Client.Timeout includes the time to read robots.txt, and with a [Pacer] the wait for the turn: the first page of
// a site waits one delay after robots.txt. A crawler first takes a [Turn], which is leave to send one request now: see
// [Pacer].
//
// # Several crawlers, proxies, strangers
//
// A program with several crawlers can have each request decided for the product token and the uses of one of them
// ([WithToken], [WithUses]). Transports may share one cache.Cache and one [Pacer].
//
// Robots.txt is fetched through the proxy of Base. A nil Base takes it from the environment, as http.DefaultTransport
// does. A proxy's 407 is an error, and nothing is kept: once the credentials are right, the rules are read.
//
// If URLs come from strangers, set Base to fetch.PublicOnly of an *http.Transport: no request then reaches an address
// that is not public, whether it is for a page, for robots.txt, or made [WithoutRobots].
package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Transport is an http.RoundTripper that sends only what robots.txt allows.
//
// The zero value is ready. It sends over http.DefaultTransport, takes the product token from each request's User-Agent,
// and keeps robots.txt in its own cache.
//
// A Transport is safe for concurrent use. Its fields must not change after the first use, and it must not be copied.
type Transport struct {
	// Base sends what is allowed and reads robots.txt. If nil, http.DefaultTransport.
	//
	// It must not follow redirects: the gate does not see a hop inside Base. What adds credentials belongs above the
	// gate: &oauth2.Transport{Base: gate}. A Base that adds them sends them to every origin, with the request for its
	// robots.txt.
	//
	// If Base is an *http.Transport, a copy of it reads robots.txt, over HTTP/1.1 and from the network, whatever was
	// registered with Base for http or https. For ftp URLs an *http.Transport needs a RoundTripper, such as that of
	// package fetch/ftp, set with RegisterProtocol.
	Base http.RoundTripper

	// UserAgent is sent with requests that have no User-Agent field, and with those for robots.txt. It should hold the
	// product token and a way to reach you (RFC 9309 §2.2.1): "ExampleBot/1.0 (+https://example.com/bot)". If empty, none
	// is added.
	//
	// A site may have a different robots.txt for each User-Agent. A request with its own User-Agent is still decided
	// by the file for this one: give each such crawler its own Transport.
	UserAgent string

	// Token is the product token that chooses the group of robots.txt, without a version. A token that no group can match,
	// for example one with a blank, is an error of every request. If empty, the token is what policy.ProductToken finds in
	// the User-Agent to be sent: "Mozilla" in that of a browser.
	Token string

	// Dialect is how robots.txt is read, whatever fetched it. If zero, policy.RFC9309.
	Dialect policy.Dialect

	// Uses are what the fetched pages are for, in the labels of usage.Table: "train-ai", "ai-use", "search" (from a
	// constant of package usage, string(usage.TrainAI)). If robots.txt disallows one of them for a target that its rules
	// allow, nothing is sent: the refusal, or the Answer of Decide, has policy.ReasonUse. A label that is not in the table
	// is an error of every request. If nil, robots.txt is not asked about use.
	//
	// Each label is asked about by itself: declare those that the pages are really for. A group for a policy token, such
	// as Google-Extended, is for the crawlers of its owner and counts for no other. What the pages themselves say about
	// use is for the caller to read; see [PageRules].
	Uses []string

	// Override returns rules that replace the robots.txt of an origin, which is then not read: those of a written
	// agreement, or for your own site. Their delays and what they say about use count too. It is called for each decision,
	// perhaps concurrently, so it must return at once; it should return the same pointer for the same rules. With
	// policy.Unreachable nothing is sent, and Answer.Until is in a minute. Where it returns nil, robots.txt decides. If
	// nil, robots.txt decides everywhere.
	Override func(fetch.Origin) *policy.Policy

	// Fetcher reads robots.txt. If nil, one with Base, UserAgent and Sign.
	//
	// If it leaves zero what this Transport has (Base, UserAgent, Sign), or there is a Pacer, a copy of it is used, filled
	// from this Transport: Transports with one Fetcher then have MaxFetches each.
	Fetcher *fetch.Fetcher

	// Cache keeps what was read. If nil, the Transport makes one. Several Transports may share a Cache: each gets what was
	// read for the product token of its Fetcher.
	Cache *cache.Cache

	// Pacer spaces the requests to each origin, those for robots.txt included. RoundTrip then waits: see [Pacer] for
	// time-outs. If nil, requests are not spaced.
	Pacer *Pacer

	// Sign is called last, on a copy of each http or https request right before Base gets it, for robots.txt too: after
	// the Pacer's wait, for each hop of a redirect and each retry. It may set header fields; package sign has a function
	// for that. If it fails, for the request or for the robots.txt before it, the request is not sent, the error wraps
	// that of Sign, and nothing is cached. It may be called concurrently. If nil, nothing is called.
	//
	// Sign can also set the key by which a site lets crawlers in, for the requests to its host.
	Sign func(*http.Request) error

	// Trace receives events. If nil, none are reported.
	Trace *Trace

	once sync.Once
	gate gate // made by once
}

func (t *Transport) ready() *gate {
	t.once.Do(func() { t.gate.init(t) })
	return &t.gate
}

// open is ready for a question about u. It fails after Close, and if u has a scheme that is not gated.
func (t *Transport) open(u *url.URL) (*gate, error) {
	g := t.ready()
	switch {
	case g.closed.Load():
		return nil, closedError{}
	case isUngated(u):
		return nil, schemeError(u)
	}
	return g, nil
}

// RoundTrip sends req if robots.txt allows it. Otherwise it closes req.Body and returns a *DisallowedError; see
// [ErrNotSent] for other errors. A path and query of more than 16 KiB cannot be decided on, nor can a path with a dot
// segment (resolve it first), nor a CONNECT. With a Pacer it waits for its turn.
//
// It never modifies req. It sends a copy if it has to set the User-Agent or the canonical host, or to sign; else
// Response.Request is req, if Base says so. Requests of other schemes than http, https and ftp go to Base unchanged.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g := t.ready()
	if g.closed.Load() {
		return refuse(req, closedError{})
	}
	return g.roundTrip(req)
}

// Decide reports whether robots.txt allows a GET of u with ctx for the declared Uses. It may fetch robots.txt. It takes
// no turn: RoundTrip may still return a *LateError.
//
// If robots.txt is unreachable, there is an Answer with ReasonUnreachable and no error; if a use is disallowed, one
// with ReasonUse. With a context of WithoutRobots everything is allowed, with ReasonNoRule. The errors are those of
// RoundTrip that say why there is no answer. A URL with a scheme that RoundTrip passes on to Base unchanged is an
// error: robots.txt says nothing about it.
func (t *Transport) Decide(ctx context.Context, u *url.URL) (Answer, error) {
	var a Answer
	g, err := t.open(u)
	if err != nil {
		return a, err
	}
	own := gatingOf(ctx)
	r := ruling{own: own, token: g.tokenFor(own, nil, false)}
	if g.configErr == nil && own.bypass {
		return Answer{Decision: unconditional, Token: r.token}, nil
	}
	if err = g.ask(ctx, &http.Request{URL: u}, &r); err == nil {
		r.answer(&a)
	}
	return a, err
}

// Lookup returns the policy of u's origin: that of Override, or that of its robots.txt, which it fetches unless the
// cache has it. If robots.txt is unreachable, the policy is policy.Unreachable. The errors are those of Decide.
func (t *Transport) Lookup(ctx context.Context, u *url.URL) (*policy.Policy, error) {
	g, err := t.open(u)
	if err = cmp.Or(err, t.gate.configErr); err != nil {
		return nil, err
	}
	var r ruling
	if r.origin, err = originOf(&http.Request{URL: u}); err != nil {
		return nil, err
	}
	if err = g.read(ctx, &r); err != nil {
		return nil, err
	}
	return r.policy, nil
}

// Close is Shutdown for five seconds at most.
func (t *Transport) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.Shutdown(ctx)
}

// Shutdown closes the Transport: errors.Is finds cache.ErrClosed in the errors of later calls. If the Transport made
// its own Cache, Shutdown closes that too: fetches of robots.txt stop, calls that wait for them end with the same
// error, and Shutdown waits for their end, but no longer than ctx. It also waits until Pacer.Turns was told of all
// pauses, five seconds at most. The error says what has not ended; call Shutdown again then. A Transport that neither
// made its own Cache nor has Pacer.Turns needs no Close.
//
// Requests that were already let through go on, and those that wait for the Pacer get their turns unless their contexts
// end first. Base and its connections are the caller's; see CloseIdleConnections.
//
// A Cache that was given to the Transport is not closed: others may share it. If it has a Store, close that Cache last:
// it writes what the Store has not got yet, and closes the Store.
func (t *Transport) Shutdown(ctx context.Context) error {
	g := t.ready()
	first := !g.closed.Swap(true)
	var fetchErr, pauseErr error
	if g.ownCache {
		if first {
			close(g.closing)
		}
		fetchErr = g.cache.Shutdown(ctx)
	}
	if g.keeper != nil {
		pauseErr = g.keeper.Shutdown(ctx)
	}
	return errors.Join(fetchErr, pauseErr)
}

// CloseIdleConnections passes the call on to Base, as http.Client expects.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.ready().base.(interface{ CloseIdleConnections() }); ok && t.gate.configErr == nil {
		c.CloseIdleConnections()
	}
}

func (g *gate) init(t *Transport) {
	g.base = cmp.Or(t.Base, http.DefaultTransport)
	g.token = t.Token
	g.uses = slices.Clone(t.Uses)
	g.override = t.Override
	g.sign = t.Sign
	g.agentToken = policy.ProductToken(cmp.Or(t.UserAgent, goUserAgent))
	if t.UserAgent != "" {
		g.agent = []string{t.UserAgent}
	}
	if t.Pacer != nil {
		g.keeper = t.Pacer.ready()
	}
	g.cache = t.Cache
	if g.cache == nil {
		g.cache = new(cache.Cache)
		g.ownCache = true
		g.closing = make(chan struct{})
	}
	g.fetcher = t.filledFetcher(g)
	g.memory = cache.Source{Reader: g.fetcher.Reader(), Dialect: t.Dialect}
	g.source = g.memory
	g.source.Load = g.load
	if t.Trace != nil {
		g.trace = *t.Trace
	}
	g.configErr = t.check(g)
}

// goUserAgent is what net/http sends for those who set none.
const goUserAgent = "Go-http-client/1.1"

// check returns what is wrong with the fields of t, or nil.
func (t *Transport) check(g *gate) error {
	f := g.fetcher
	self := http.RoundTripper(t)
	switch {
	case g.base == self || f.Transport == self:
		return notSentf("client: the Transport is its own Base: set Base (or Fetcher.Transport) to what sends, " +
			"not to the gate or to nil where http.DefaultTransport is the gate")
	case !httpguts.ValidHeaderFieldValue(f.UserAgent):
		return notSentf("client: the UserAgent %q cannot be sent: take out its control characters", cut(f.UserAgent))
	}
	return cmp.Or(checkToken("Token", t.Token), checkUses(t.Uses))
}

// filledFetcher returns Fetcher with its zero fields set from t, on a copy: it may serve other Transports.
func (t *Transport) filledFetcher(g *gate) *fetch.Fetcher {
	given := cmp.Or(t.Fetcher, new(fetch.Fetcher))
	nothingToFill := (given.Transport != nil || t.Base == nil) &&
		(given.UserAgent != "" || t.UserAgent == "") && (given.Sign != nil || t.Sign == nil)
	if nothingToFill && g.keeper == nil {
		return given
	}
	f := &fetch.Fetcher{
		Transport: cmp.Or(given.Transport, t.Base), Through: given.Through, UserAgent: cmp.Or(given.UserAgent, t.UserAgent),
		Sign: given.Sign, Timeout: given.Timeout, Retries: given.Retries, MaxFetches: given.MaxFetches,
		ObeyWalls: given.ObeyWalls, SameHost: given.SameHost,
	}
	if f.Sign == nil {
		f.Sign = t.Sign
	}
	if g.keeper == nil {
		return f
	}
	if sign := f.Sign; sign != nil {
		f.Sign = func(req *http.Request) error {
			if err := sign(req); err != nil {
				return notSentError{err} // the site did not fail
			}
			return nil
		}
	}
	f.Through = func(wire http.RoundTripper) http.RoundTripper {
		if given.Through != nil { // it may wait: the turn comes right before the wire
			return given.Through(robotsTransport{g, wire})
		}
		return robotsTransport{g, wire}
	}
	return f
}
