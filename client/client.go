// Package client makes an http.Client obey robots.txt (RFC 9309).
//
// A [Transport] wraps the http.RoundTripper that a client would use anyway:
//
//	c := &http.Client{Transport: &client.Transport{UserAgent: "ExampleBot/1.0 (+https://example.com/bot)"}}
//
// Before a request leaves, the Transport looks up the robots.txt of its origin (scheme, host,
// port). It fetches that file at most once per lifetime, for all callers. A request that the rules
// for its product token allow goes to Base. Any other ends with a [*DisallowedError], and
// nothing is sent. If robots.txt is unreachable (a 5xx answer, no connection, a bad certificate,
// half a body), the answer is no as well, and Decision.Reason says so.
//
// # Where the gate stands
//
// The gate is the last RoundTripper before the network:
//
//	http.Client → oauth2.Transport → retries → client.Transport → http.Transport
//
// http.Client calls RoundTrip for every hop of a redirect, so each hop is decided for its own
// origin. What follows redirects, adds credentials or repeats requests belongs above the gate. Then
// each request is decided on before it is sent, and robots.txt is read without credentials. Only
// what every request needs, such as a proxy or a dialer, belongs below. A cache of pages belongs
// below too, or it could answer one crawler with a page that only another may fetch. If there is
// one, set Fetcher.Transport to the transport below it, so that robots.txt bypasses it. Retries
// must end on [ErrNotSent]: go-retryablehttp needs a CheckRetry that says so.
//
// The gate binds requests made by a program. For a request that a person asked for (a
// click, a form), use [WithoutRobots] or another http.Client.
//
// # When a request is not sent
//
// If errors.Is(err, [ErrNotSent]), the gate held the request back. The error tells what to do
// next:
//
//   - A [*DisallowedError] with policy.ReasonRule: robots.txt says no. Drop the URL. With
//     policy.ReasonAgreement, one of the [Agreements] says no: drop it too.
//   - A [*DisallowedError] with policy.ReasonUnreachable: robots.txt could not be read.
//     Unreachable says why. Ask again after Until.
//   - A [*UseError]: robots.txt says no to one of Transport.Uses.
//   - A [*DelayError]: the site asks for more delay than a Pacer with RefuseLongDelays keeps.
//   - A [*LateError]: the turn would come after the request's deadline. Ask again at At.
//   - [ErrNotPublic], or [ErrClosed].
//
// The context's error ends a wait. The fetch of robots.txt goes on, so the next call finds it
// cached. Any other error is Base's own, or says what is wrong with the URL, a header, Token, Uses
// or Sign, which no retry mends.
//
// # Time-outs
//
// http.Client.Timeout includes the time to read robots.txt, and with a [Pacer] the wait for the
// turn: the first page of a site waits one delay after robots.txt. A crawler calls
// [Transport.Decide] and then [Pacer.Wait] first.
//
// # Several crawlers, proxies, strangers
//
// A program with several crawlers can have each request decided for the product token and the uses
// of one of them ([WithToken], [WithUses]). Transports may share one cache.Cache and one [Pacer].
//
// Robots.txt is fetched through the proxy of Base. A nil Base takes it from the environment, as
// http.DefaultTransport does. A proxy's 407 disallows, but is not kept: once the credential is
// right, the rules are read.
//
// If URLs come from strangers, set Fetcher.PublicOnly: no request then reaches an address that is
// not public, whether it is for a page, for robots.txt, or made [WithoutRobots]. What counts is the
// address that is connected to. If Base is nil or an *http.Transport, a copy of it sends the pages,
// and closes a connection to any other address before it is used. With any other Base, the request
// is stopped before it is written, by the address that Base reports to httptrace. The
// proxy of a nil Base, or of an *http.Transport, may have any address; any other is checked as a site
// is. Behind a proxy, and if Base reports no address, only localhost and hosts that are addresses are
// checked: what a name leads to cannot be seen. Requests of other schemes are errors.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"golang.org/x/net/http/httpguts"
)

// Transport is an http.RoundTripper that sends only what robots.txt allows.
//
// The zero value is ready. It sends over http.DefaultTransport, takes the product token
// from each request's User-Agent, and keeps robots.txt in a cache of its own.
//
// A Transport is safe for concurrent use. Its fields must not change after the first use,
// and it must not be copied.
type Transport struct {
	// Base sends what is allowed and reads robots.txt. If nil, http.DefaultTransport.
	//
	// It must not follow redirects: the gate does not see a hop inside Base. Nor may it send a
	// request twice. An *http.Transport may, after an HTTP/2 server refused the request, or its
	// connection died without an answer: the gate decides on each of its sendings, and again after a
	// wait for a connection. With a Pacer or Sign, each has a turn and a signature of its own. At most
	// seven are made, and a body that may have been read needs Request.GetBody. A request that waits
	// for room on an open HTTP/2 connection (see http.HTTP2Config.StrictMaxConcurrentRequests) is not
	// decided on again.
	//
	// The gate does not see what an *http.Transport was given with RegisterProtocol for http or
	// https: pages then come from there, and robots.txt from the network. If you hide the type, as
	// in Base: struct{ http.RoundTripper }{transport}, both come from there.
	//
	// What adds credentials belongs above the gate: &oauth2.Transport{Base: gate}. A Base
	// that adds them sends them to every origin, with the request for its robots.txt. That
	// is logged to slog.Default, once. If such a request is redirected to another origin,
	// robots.txt is unreachable. An *http.Transport presents its client certificate to the
	// origin itself only. The gate sees only the headers that Base reports to httptrace. It
	// does not see the certificates of a DialTLSContext or of another type of Base.
	//
	// Robots.txt is read over HTTP/1.1. If a DialTLSContext agrees on HTTP/2, set
	// Fetcher.Transport to an *http.Transport without it.
	Base http.RoundTripper

	// UserAgent is sent with requests that have no User-Agent field, and with those for robots.txt.
	// It should hold the product token and a way to reach you (RFC 9309 §2.2.1): "ExampleBot/1.0
	// (+https://example.com/bot)". If empty, none is added. The Request of a Response may be the
	// caller's own, which lacks it.
	//
	// A site may have another robots.txt for each User-Agent (Vary). A request with a User-Agent of its
	// own is still decided by the file for this one: give each such crawler a Transport of its own.
	UserAgent string

	// Token is the product token that chooses the group of robots.txt, without a version. A token
	// that no group can match, for example one with a blank, is an error of every request. If
	// empty, the token is what policy.ProductToken finds in the User-Agent to be sent.
	Token string

	// Dialect is how robots.txt is read. If zero, policy.RFC9309.
	Dialect policy.Dialect

	// Uses are what the fetched pages are for, as labels of usage.Table: "train-ai", "ai-use",
	// "search". If robots.txt disallows one of them for a target that its rules allow, nothing is
	// sent: RoundTrip returns a *UseError, Decide an Answer with policy.ReasonUse. A label that no
	// row of the table has is an error of every request. If nil, robots.txt is not asked about use.
	//
	// The labels are asked about one by one: declare those that the pages are really for. A group for
	// a policy token, such as Google-Extended, speaks to the crawlers of its owner: it counts for no
	// other. What the pages themselves say about use is for the caller to read; see [PageRules].
	Uses []string

	// Agreements are what sites have agreed to in writing. They decide before robots.txt does. If
	// nil, there are none.
	Agreements *Agreements

	// Fetcher reads robots.txt. If nil, one with Base, UserAgent, Dialect and Sign.
	//
	// If it leaves any of Transport, UserAgent, Dialect and Sign zero, a copy of it is used, filled
	// from Base, UserAgent, Dialect and Sign of this Transport. MaxFetches then bounds the fetches
	// of this Transport alone. Two different Dialects are an error of every request.
	//
	// If it reads ftp (see fetch.Fetcher.FTP), ftp requests are gated and paced too. Base sends
	// them. An *http.Transport needs a RoundTripper for ftp, set with its RegisterProtocol. A path
	// is allowed if everything that an FTP client may make of it is allowed: "/%2Fa", "//a" and
	// "/a;type=i" can mean "/a". It is an error if the URL has a query, or %0D, %0A or %00 in its
	// path. If the Fetcher does not read ftp, such requests go to Base unchanged.
	Fetcher *fetch.Fetcher

	// Cache keeps what was read. If nil, the Transport makes one. Several Transports may
	// share a Cache. Those that sign for different crawlers need different User-Agents.
	Cache *cache.Cache

	// Pacer spaces the requests to each origin, those for robots.txt included. RoundTrip
	// then waits: see [Pacer] for time-outs. If nil, requests are not spaced.
	//
	// If Base is or contains another gate, that must not have the same Pacer: a request would wait
	// for its own end.
	Pacer *Pacer

	// Sign is called last, once for each http or https request that is sent, those for
	// robots.txt included: after the Pacer's wait, for each hop of a redirect and each retry;
	// once more if it took more than a second to get a connection.
	// See package sign for a function that fits. If nil, nothing is called.
	//
	// It gets its own copy of the request, and may set header fields. If it fails, for the request
	// or for the robots.txt before it, the request is not sent, RoundTrip's error wraps that of
	// Sign, and the failure is not cached. Changing the method, the URL, the host or the
	// User-Agent, which were decided on, counts as a failure. Sign may be called concurrently.
	//
	// Sign can also set the key by which a site lets crawlers in: see the example.
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

// open is ready, until Close, for a URL whose scheme is gated.
func (t *Transport) open(u *url.URL) (*gate, error) {
	g := t.ready()
	switch {
	case g.closed.Load():
		return nil, ErrClosed
	case g.misuse == nil && g.isFree(u):
		return nil, schemeError(u)
	}
	return g, nil
}

// RoundTrip sends req if robots.txt allows it. Otherwise it closes req.Body and returns a
// *DisallowedError or a *UseError.
//
// It also returns ErrClosed, the context's cause if that ended first, and errors that say
// why req cannot be decided on or that Trace.Decided panicked. A path and query of more than
// 16 KiB cannot be decided on, nor can a CONNECT. With a Pacer it waits for
// its turn and may return the errors of Pacer.Wait. A request that had to wait, for its turn
// or for a connection, is decided on again.
//
// It never modifies req. It sends a copy if it has to set the User-Agent or the canonical host, to
// sign, or to watch a body that may fail, and then Response.Request may be that copy. Requests of other
// schemes than http and https, and ftp if the Fetcher reads it, go to Base unchanged.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	g := t.ready()
	if g.closed.Load() {
		return refuse(req, ErrClosed)
	}
	return g.roundTrip(req)
}

// Decide reports whether robots.txt allows a GET of u with ctx for the declared Uses. It may fetch
// robots.txt. It does not ask the Pacer: RoundTrip may still return a *DelayError or a *LateError.
//
// If robots.txt is unreachable, there is an Answer with ReasonUnreachable and no error; if a use is
// disallowed, one with ReasonUse. With a context of WithoutRobots everything is allowed, with
// ReasonNoRule. The error is the context's cause or ErrClosed, or says why u cannot be decided on
// or that Trace.Decided panicked. A URL of a scheme that RoundTrip does not gate is an error,
// although RoundTrip hands it to Base: robots.txt cannot be asked about it.
func (t *Transport) Decide(ctx context.Context, u *url.URL) (Answer, error) {
	g, err := t.open(u)
	if err != nil {
		return Answer{}, err
	}
	own := gatingOf(ctx)
	r := ruling{question: question{token: g.tokenFor(own, nil, false)}, own: own}
	if g.misuse == nil && own.bypass {
		return Answer{Decision: unruled, Token: r.token}, nil
	}
	var a Answer
	if err = g.ask(ctx, &http.Request{URL: u}, &r); err == nil {
		g.answer(&r, &a)
	}
	return a, err
}

// Lookup returns the policy of u's origin. It fetches robots.txt unless that is in the
// cache. If robots.txt is unreachable, the policy is policy.Unreachable. Errors are those
// of Decide.
func (t *Transport) Lookup(ctx context.Context, u *url.URL) (*policy.Policy, error) {
	g, err := t.open(u)
	if err != nil {
		return nil, err
	}
	if g.misuse != nil {
		return nil, g.misuse
	}
	o, err := originOf(&http.Request{URL: u})
	if err != nil {
		return nil, err
	}
	res, err := g.cache.Get(ctx, o, &g.source)
	if err != nil {
		return nil, g.unknown(ctx, err)
	}
	return res.Policy, nil
}

// Close is Shutdown without a context: it waits for nothing.
func (t *Transport) Close() error {
	g := t.close()
	if g.ownCache {
		return g.cache.Close()
	}
	return nil
}

// Shutdown closes the Transport. Later calls return ErrClosed. If the Transport made its own
// Cache, Shutdown closes that too: fetches of robots.txt stop, and calls that wait for them
// return ErrClosed. Base and its connections are the caller's; see CloseIdleConnections.
//
// Requests that were already let through go on, and those that wait for the Pacer get their
// turns unless their contexts end first.
//
// Shutdown waits for the fetches that it ended, and until Pacer.Turns has been told of the
// turns that have ended, but no longer than ctx. The error says what has not been done;
// Shutdown may then be called again. A Transport without Turns need not be closed: its
// fetches end by themselves, and only idle connections are left.
//
// Neither Close nor Shutdown closes a Cache that was given to the Transport: others may share
// it. Its fetches go on, and calls that wait for them get the answer. If that Cache has a Store,
// close the Cache last: that writes what the Store has not yet got, and closes the Store.
func (t *Transport) Shutdown(ctx context.Context) error {
	g := t.close()
	var err error
	if g.ownCache {
		err = g.cache.Shutdown(ctx)
	}
	if g.keeper != nil {
		err = errors.Join(err, g.keeper.Settle(ctx))
	}
	return err
}

func (t *Transport) close() *gate {
	g := t.ready()
	g.closed.Store(true)
	if g.publicOnly && g.wire { // Base is a copy of our own
		t.CloseIdleConnections()
	}
	return g
}

// CloseIdleConnections passes the call on to Base, as http.Client expects.
func (t *Transport) CloseIdleConnections() {
	g := t.ready()
	if c, ok := g.base.(interface{ CloseIdleConnections() }); ok && g.misuse == nil {
		c.CloseIdleConnections()
	}
}

func (g *gate) init(t *Transport) {
	g.base, g.agent, g.token = t.Base, t.UserAgent, t.Token
	g.agentToken, g.agentField = policy.ProductToken(cmp.Or(t.UserAgent, fetch.DefaultUserAgent)), []string{t.UserAgent}
	g.cache, g.sign, g.uses, g.agreements = t.Cache, t.Sign, slices.Clone(t.Uses), t.Agreements
	if t.Pacer != nil {
		g.keeper, g.yet = t.Pacer.kept(), g.allowedYet
	}
	if g.base == nil {
		g.base = http.DefaultTransport
	}
	if g.cache == nil {
		g.cache, g.ownCache = new(cache.Cache), true
	}
	g.fetcher = t.filledFetcher()
	g.ftp = g.fetcher.Reads("ftp")
	g.source = cache.Source{
		Load: g.readRobots, UserAgent: g.fetcher.UserAgent, Dialect: g.fetcher.Dialect, Kind: g.fetcher.Kind(),
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

func (t *Transport) misuse(g *gate) error {
	f := g.fetcher
	switch self := http.RoundTripper(t); {
	case g.base == self || f.Transport == self:
		return errors.New("client: the Transport is its own Base: set Base (or Fetcher.Transport) to what sends, " +
			"not to the gate or to nil where http.DefaultTransport is the gate")
	case t.Pacer != nil && (t.Pacer == pacerOf(g.base) || t.Pacer == pacerOf(f.Transport)):
		return errors.New("client: the Transport and the gate that is its Base (or Fetcher.Transport) have the same Pacer, " +
			"so each request would wait for its own end: leave one of them without")
	case f.Dialect != t.Dialect && t.Dialect != policy.RFC9309:
		return fmt.Errorf("client: Fetcher.Dialect is %v but Transport.Dialect is %v: set one of them, or both alike",
			f.Dialect, t.Dialect)
	case !httpguts.ValidHeaderFieldValue(f.UserAgent):
		return fmt.Errorf("client: the UserAgent %q cannot be sent: take out its control characters", say.Cut(f.UserAgent))
	}
	return cmp.Or(tokenMisuse("Token", t.Token), usesMisuse(t.Uses))
}

func pacerOf(rt http.RoundTripper) *Pacer {
	if t, ok := rt.(*Transport); ok {
		return t.Pacer
	}
	return nil
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
		f.FTP, f.MaxMemory, f.ObeyWalls, f.SameHost = g.FTP, g.MaxMemory, g.ObeyWalls, g.SameHost
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

// Turn waits for the turn of a GET of u, as RoundTrip does, and sends nothing. The request
// should start at once. The caller must call End when it has read the answer or given up: until
// then, with MaxUnderway 1, no other request to the origin starts.
//
// With a context of WithoutRobots it returns at once. The errors are those of RoundTrip. Without
// a Pacer, or with a scheme that RoundTrip does not gate, Turn fails.
func (t *Transport) Turn(ctx context.Context, u *url.URL) (*Turn, error) {
	g, err := t.open(u)
	switch {
	case err != nil:
		return nil, err
	case g.keeper == nil:
		return nil, errors.New("client: Turn needs a Transport with a Pacer")
	}
	req := (&http.Request{URL: u}).WithContext(ctx)
	for {
		_, o, by, err := g.admit(req)
		if err != nil {
			return nil, err
		}
		if o == (fetch.Origin{}) {
			return new(Turn), nil
		}
		turn := new(Turn)
		if err := turn.wait(ctx, g, o, req, by); err == nil {
			return turn, nil
		} else if err != pace.ErrAgain {
			return nil, err
		}
	}
}
