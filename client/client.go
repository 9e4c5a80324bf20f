// Package client makes an http.Client obey robots.txt (RFC 9309).
//
// A [Transport] wraps the http.RoundTripper that a client would use anyhow:
//
//	c := &http.Client{Transport: &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)"}}
//
// Before a request leaves, the robots.txt of its origin (scheme, host, port) is
// looked up; it is fetched at most once per lifetime, whoever asks. A request that
// the rules for our product token allow goes to Base as it is. Any other ends with
// a [*DisallowedError], and nothing is sent. If robots.txt could not be had (a 5xx
// answer, no connection, a bad certificate, half a body), the answer is no as well,
// and Decision.Reason says so.
//
// http.Client calls RoundTrip for every hop of a redirect, so each hop is decided
// for its own origin.
//
// The gate binds requests made by a program. For one that a person asked for (a
// click, a form), use [WithoutRobots] or another http.Client.
package client

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Transport is an http.RoundTripper that sends only what robots.txt allows.
//
// The zero value is ready: it sends over http.DefaultTransport, takes the product
// token from each request's User-Agent, and keeps robots.txt in a cache of its own.
// A Transport may be used by several goroutines at once; its fields must not change
// after the first use, and it must not be copied.
type Transport struct {
	// Base sends what is allowed and reads robots.txt. Nil: http.DefaultTransport. It
	// must not follow redirects by itself: a hop inside Base is not seen here. Nor is what
	// an *http.Transport was given with RegisterProtocol for http or https: pages then come
	// from there, and robots.txt from the network. Hide the type, as in
	// Base: struct{ http.RoundTripper }{transport}, and both come from there.
	//
	// What adds credentials belongs above the gate: &oauth2.Transport{Base: gate}. A Base
	// that adds them gives them to every origin, with the request for its robots.txt. That
	// is logged to slog.Default, once, and robots.txt is unreachable where such a request
	// is redirected to another origin. An *http.Transport presents its client certificate
	// to the origin itself only. What a Base does not tell httptrace is not seen, nor the
	// certificate of another type of Base or of a DialTLSContext.
	//
	// Robots.txt is read over HTTP/1.1: where DialTLSContext agrees on HTTP/2, set
	// Fetcher.Transport to an *http.Transport without it.
	Base http.RoundTripper

	// UserAgent is sent with requests that carry no User-Agent field, and when
	// robots.txt is read. It should hold the product token and a way to reach you
	// (RFC 9309 §2.2.1): "ExampleBot/1.0 (+https://example.com/bot)".
	// Empty: requests go out as they are.
	UserAgent string

	// Token is the product token that groups of robots.txt are chosen by, without a
	// version: it is compared as it stands. One that no name can match, for a blank in it
	// for example, is an error of every request. Empty: the one that policy.ProductToken
	// finds in the User-Agent to be sent.
	Token string

	// Fetcher reads robots.txt. Nil: one over Base and UserAgent. Where its own
	// Transport or UserAgent is unset, a copy that has this Transport's is used, so
	// that MaxFetches then bounds the fetches of this Transport alone.
	Fetcher *fetch.Fetcher

	// Cache keeps what was read; several Transports may share one. Nil: one of its own.
	Cache *cache.Cache

	// Pacer spaces the requests to each origin, those for robots.txt included; RoundTrip
	// then waits (see [Pacer] for what that does to time-outs). Nil: they are not spaced.
	Pacer *Pacer

	// Trace is told what happens. Nil: nobody is.
	Trace *Trace

	once   sync.Once
	gate   gate // made by once
	closed atomic.Bool
}

func (t *Transport) ready() *gate {
	t.once.Do(func() {
		t.gate = gate{base: t.Base, cache: t.Cache, pacer: t.Pacer, userToken: policy.ProductToken(t.UserAgent)}
		if t.gate.base == nil {
			t.gate.base = http.DefaultTransport
		}
		if t.gate.cache == nil {
			t.gate.cache, t.gate.ownCache = new(cache.Cache), true
		}
		f := t.fetcher()
		t.gate.misuse = t.misuse(t.gate.base, f)
		t.gate.source = cache.Source{Load: t.Trace.traced(t.Pacer.robots(f.Fetch), &t.gate.hooks), UserAgent: f.UserAgent, Dialect: f.Dialect}
	})
	return &t.gate
}

// fetcher fills the blanks of Fetcher from the Transport, in a copy: the caller's
// may serve other Transports.
func (t *Transport) fetcher() *fetch.Fetcher {
	f := t.Fetcher
	switch {
	case f == nil:
		return &fetch.Fetcher{Transport: t.Base, UserAgent: t.UserAgent}
	case f.Transport != nil && f.UserAgent != "", t.Base == nil && t.UserAgent == "":
		return f
	}
	filled := &fetch.Fetcher{
		Transport: f.Transport, UserAgent: f.UserAgent,
		Dialect: f.Dialect, Timeout: f.Timeout, Retries: f.Retries,
		MaxFetches: f.MaxFetches, PublicOnly: f.PublicOnly,
	}
	if filled.Transport == nil {
		filled.Transport = t.Base
	}
	if filled.UserAgent == "" {
		filled.UserAgent = t.UserAgent
	}
	return filled
}

// RoundTrip sends req if robots.txt allows it. Else it closes req.Body and returns
// a *DisallowedError, or the context's cause if that ended first, or an error about
// a request that cannot be decided on or a Trace.Decided that panicked, or ErrClosed. With a
// Pacer it waits for its turn before it sends, and may return the errors of Pacer.Wait
// as well; a request that had to wait is decided on again at its turn. It never modifies
// req; where a User-Agent or the canonical host has to be set, or a Pacer watches the body,
// a copy is sent. Requests of other schemes than http and https go to Base untouched.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g, err := t.open()
	if err != nil {
		return refuse(req, err)
	}
	out, o, err := t.admit(g, req)
	if err != nil {
		return refuse(req, err)
	}
	if g.pacer == nil || o == (fetch.Origin{}) {
		return send(g.base, out)
	}
	return t.pace(g, req, out, o)
}

// pace sends out, which is what was made of req, when its turn comes, or decides on req
// again. That Trace then hears of as well.
func (t *Transport) pace(g *gate, req, out *http.Request, o fetch.Origin) (*http.Response, error) {
	for {
		res, err := g.pacer.roundTrip(g.base, out, o, recheck{t: t, g: g, req: req}, t.Trace.waited(&g.hooks))
		if err != errAgain {
			return res, err
		}
		if out, o, err = t.admit(g, req); err != nil {
			return refuse(req, err)
		}
	}
}

// admit decides on req and returns what is to be sent, req itself or a copy, and the
// origin whose pace that keeps, if it has to keep one.
func (t *Transport) admit(g *gate, req *http.Request) (*http.Request, fetch.Origin, error) {
	own := gatingOf(req.Context())
	if g.misuse == nil && isOther(req.URL) {
		return req, fetch.Origin{}, nil
	}
	if g.misuse == nil && own.bypass {
		o, err := originOf(req)
		if err != nil {
			return nil, o, err
		}
		_, hasAgent := req.Header["User-Agent"]
		return t.toSend(req, o, hasAgent), fetch.Origin{}, nil
	}
	agent, hasAgent := req.Header["User-Agent"]
	if n := len(req.Header); n > 1 || n == 1 && !hasAgent { // to go through a map takes a fifth of what the gate does
		if err := checkKeys(req.Header); err != nil {
			return nil, fetch.Origin{}, err
		}
	}
	token := t.token(g, own, agent, hasAgent)
	a := answer{brief: true, misuse: own.misuse}
	if err := t.ask(req.Context(), g, req, token, &a); err != nil {
		return nil, a.origin, err
	}
	if !a.Allowed {
		return nil, a.origin, &DisallowedError{URL: req.URL, Token: token, Decision: a.Decision, Err: a.cause}
	}
	return t.toSend(req, a.origin, hasAgent), a.origin, nil
}

// Decide says whether RoundTrip would send a GET of u with ctx, without sending it.
// Robots.txt may be fetched for that. The error is the context's cause, or ErrClosed, or says
// why u cannot be decided on or that Trace.Decided panicked; a robots.txt that cannot be
// had is a Decision with ReasonUnreachable and no error. With a context of WithoutRobots
// everything is allowed with ReasonNoRule. A URL of another scheme than http or https is
// an error, since robots.txt cannot be asked about it, although RoundTrip hands it to Base.
func (t *Transport) Decide(ctx context.Context, u *url.URL) (policy.Decision, error) {
	g, err := t.open()
	if err != nil {
		return policy.Decision{}, err
	}
	if g.misuse == nil && isOther(u) {
		return policy.Decision{}, schemeError(u)
	}
	own := gatingOf(ctx)
	if g.misuse == nil && own.bypass {
		return policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}, nil
	}
	a := answer{misuse: own.misuse}
	err = t.ask(ctx, g, &http.Request{URL: u}, t.token(g, own, nil, false), &a)
	return a.Decision, err
}

// Lookup returns the policy of u's origin, fetching robots.txt where it is not in
// the cache: policy.Unreachable where it cannot be had. Errors as for Decide.
func (t *Transport) Lookup(ctx context.Context, u *url.URL) (*policy.Policy, error) {
	g, err := t.open()
	if err != nil {
		return nil, err
	}
	if g.misuse != nil {
		return nil, g.misuse
	}
	if isOther(u) {
		return nil, schemeError(u)
	}
	o, err := originOf(&http.Request{URL: u})
	if err != nil {
		return nil, err
	}
	res, err := g.lookup(ctx, o)
	if err != nil {
		return nil, err
	}
	return res.Policy, nil
}
