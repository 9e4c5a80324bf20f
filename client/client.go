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
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

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
	// Base sends what is allowed and reads robots.txt. Nil: http.DefaultTransport.
	Base http.RoundTripper

	// UserAgent is sent with requests that carry no User-Agent field, and when
	// robots.txt is read. It should hold the product token and a way to reach you
	// (RFC 9309 §2.2.1): "ExampleBot/1.0 (+https://example.com/bot)".
	// Empty: requests go out as they are.
	UserAgent string

	// Token is the product token that groups of robots.txt are chosen by. Empty:
	// the one in the User-Agent to be sent (see policy.ProductToken).
	Token string

	// Fetcher reads robots.txt. Nil: one over Base and UserAgent. Where its own
	// Transport or UserAgent is unset, that of this Transport is used instead.
	Fetcher *fetch.Fetcher

	// Cache keeps what was read; several Transports may share one. Nil: one of its own.
	Cache *cache.Cache

	// Pacer spaces the requests to each origin, those for robots.txt included; RoundTrip
	// then waits (see [Pacer] for what that does to time-outs). Nil: they are not spaced.
	Pacer *Pacer

	// Trace is told what happens. Nil: nobody is.
	Trace *Trace

	once sync.Once
	gate gate // made by once
}

// gate is a Transport with its zero values resolved.
type gate struct {
	base      http.RoundTripper
	cache     *cache.Cache
	pacer     *Pacer
	load      load
	userToken string // product token of Transport.UserAgent
}

func (t *Transport) ready() *gate {
	t.once.Do(func() {
		t.gate = gate{base: t.Base, cache: t.Cache, pacer: t.Pacer, userToken: policy.ProductToken(t.UserAgent)}
		if t.gate.base == nil {
			t.gate.base = http.DefaultTransport
		}
		if t.gate.cache == nil {
			t.gate.cache = new(cache.Cache)
		}
		t.gate.load = t.Trace.traced(t.Pacer.robots(t.fetcher().Fetch))
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
		Dialect: f.Dialect, Timeout: f.Timeout, AttemptTimeout: f.AttemptTimeout, Retries: f.Retries,
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
// a *DisallowedError, or the context's error if that ended first, or an error about
// a URL that names no origin. It never modifies req; where a User-Agent or the
// canonical host has to be set, a copy is sent. Requests of other schemes than
// http and https go to Base untouched.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g := t.ready()
	if req.URL != nil && !isHTTP(req.URL.Scheme) {
		return g.base.RoundTrip(req)
	}
	out, o, err := t.admit(g, req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	if g.pacer == nil || gatingOf(req.Context()).bypass {
		return g.base.RoundTrip(out)
	}
	return g.pacer.roundTrip(g.base, out, o, t.Trace)
}

// admit decides on req and returns what is to be sent, req itself or a copy, and to which origin.
func (t *Transport) admit(g *gate, req *http.Request) (*http.Request, fetch.Origin, error) {
	o, err := originOf(req)
	if err != nil {
		return nil, o, err
	}
	if own := gatingOf(req.Context()); !own.bypass {
		token := t.token(g, own, req.Header)
		a, err := t.ask(req.Context(), g, o, token, req.URL)
		if err != nil {
			return nil, o, err
		}
		if !a.Allowed {
			return nil, o, &DisallowedError{URL: req.URL, Token: token, Decision: a.Decision, Err: a.cause}
		}
	}
	return t.toSend(req, o), o, nil
}

// answer is a Decision with why robots.txt is unreachable, where it is.
type answer struct {
	policy.Decision
	cause error
}

// ask answers for the target that is sent for u, and tells Trace. An error is why
// there is no answer.
func (t *Transport) ask(ctx context.Context, g *gate, o fetch.Origin, token string, u *url.URL) (answer, error) {
	var buf [targetBuffer]byte
	target, err := requestTarget(buf[:0], u)
	if err != nil {
		return answer{}, err
	}
	if t.Trace == nil || t.Trace.Decided == nil {
		return g.decide(ctx, o, token, target)
	}
	start := time.Now()
	a, err := g.decide(ctx, o, token, target)
	t.Trace.Decided(ctx, Decided{
		URL: u, Target: strings.Clone(target), Token: token, Decision: a.Decision,
		Err: errors.Join(a.cause, err), Took: time.Since(start),
	})
	return a, err
}

func (g *gate) decide(ctx context.Context, o fetch.Origin, token, target string) (answer, error) {
	if target == robotsTarget {
		return answer{Decision: policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}}, nil
	}
	res, err := g.cache.Get(ctx, o, g.load)
	if err != nil {
		return answer{}, err
	}
	group := res.Policy.Group(token)
	g.pacer.learn(o, group)
	d := group.Decide(target)
	if d.Allowed && hasDotSegment(target) {
		d = group.Decide(withoutDotSegments(strings.Clone(target))) // the rare case pays, target stays on the stack
	}
	return answer{Decision: d, cause: res.Err}, nil
}

// Decide says whether a GET of u would be sent, without sending it. Robots.txt may
// be fetched for that. The error is the context's, or says why u names no origin; a
// robots.txt that cannot be had is a Decision with ReasonUnreachable, no error.
func (t *Transport) Decide(ctx context.Context, u *url.URL) (policy.Decision, error) {
	g := t.ready()
	o, err := originOf(&http.Request{URL: u})
	if err != nil {
		return policy.Decision{}, err
	}
	a, err := t.ask(ctx, g, o, t.token(g, gatingOf(ctx), nil), u)
	return a.Decision, err
}

// Lookup returns the policy of u's origin, fetching robots.txt where it is not in
// the cache: policy.Unreachable where it cannot be had. Errors as for Decide.
func (t *Transport) Lookup(ctx context.Context, u *url.URL) (*policy.Policy, error) {
	g := t.ready()
	o, err := originOf(&http.Request{URL: u})
	if err != nil {
		return nil, err
	}
	res, err := g.cache.Get(ctx, o, g.load)
	if err != nil {
		return nil, err
	}
	return res.Policy, nil
}

// CloseIdleConnections passes the call on to Base, as http.Client expects.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.ready().base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// isHTTP says whether robots.txt binds requests of the scheme. net/url folds its case;
// a URL built by hand may not have it folded, and is no way around the gate.
func isHTTP(scheme string) bool {
	return scheme == "http" || scheme == "https" ||
		strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

func isLower(scheme string) bool { return scheme == "http" || scheme == "https" }

// originOf is the origin that req names on the wire (its Host, where that differs from the URL's).
func originOf(req *http.Request) (fetch.Origin, error) {
	switch {
	case req.URL == nil:
		return fetch.Origin{}, errors.New("client: request has no URL")
	case req.URL.Opaque != "":
		return fetch.Origin{}, opaqueError(req.URL)
	}
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return fetch.Origin{}, fmt.Errorf("client: %w", err)
	}
	return o, nil
}

// toSend is req, or a copy of it with what the wire needs: our User-Agent where it has
// none, and the canonical spelling of the origin that is decided for.
func (t *Transport) toSend(req *http.Request, o fetch.Origin) *http.Request {
	_, hasAgent := req.Header["User-Agent"]
	out := req
	if !hasAgent && t.UserAgent != "" {
		out = shallowCopy(out, req)
		if out.Header = req.Header.Clone(); out.Header == nil {
			out.Header = make(http.Header, 1)
		}
		out.Header.Set("User-Agent", t.UserAgent)
	}
	if scheme := req.URL.Scheme; !isLower(scheme) || !sameHost(req.URL.Host, o.Authority(), scheme) {
		out = shallowCopy(out, req)
		u := *req.URL
		u.Scheme, u.Host = strings.ToLower(scheme), o.Authority()
		out.URL = &u
		if req.Host == req.URL.Host {
			out.Host = "" // net/http takes it from the URL
		}
	}
	if out.Host != "" && out.Host != req.URL.Host && !sameHost(out.Host, o.Host(), req.URL.Scheme) {
		out = shallowCopy(out, req)
		out.Host = o.Host()
	}
	return out
}

// shallowCopy is out, made a copy of req if it is req itself.
func shallowCopy(out, req *http.Request) *http.Request {
	if out == req {
		out = new(http.Request)
		*out = *req
	}
	return out
}

// token is the product token that a request is decided for.
func (t *Transport) token(g *gate, own gating, header http.Header) string {
	if own.hasToken {
		return own.token
	}
	if t.Token != "" {
		return t.Token
	}
	agent, ok := header["User-Agent"]
	switch {
	case !ok && t.UserAgent == "":
		return netHTTPToken
	case !ok:
		return g.userToken
	case len(agent) == 0: // net/http sends none
		return ""
	case agent[0] == t.UserAgent:
		return g.userToken
	}
	return policy.ProductToken(agent[0])
}

// netHTTPToken is the product token of what net/http sends by itself.
const netHTTPToken = "Go-http-client"
