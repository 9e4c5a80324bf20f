// Package fetch reads the robots.txt of one origin over the network (RFC 9309 §2.3, §2.5).
//
// Whatever a server does, one Fetch ends in time, within bounded bytes, and with one of
// four answers: the rules of the file; "unavailable" (a 4xx, or more redirects than are
// followed: everything is allowed); "unreachable" (a 5xx, a network failure, or an answer
// that cannot be used: nothing is allowed); or the error of the caller's context. Which
// status means what in which dialect is one table, in status.go.
//
// Redirects are followed across hosts, but the rules bind only the origin that was asked,
// and a redirect cannot lead to a more private network than that origin is in. Requests
// carry a User-Agent, what this package accepts, and validators: never cookies,
// credentials or headers of the caller. Credentials that a transport adds are not taken
// to another origin (see Fetcher.Transport).
//
// One thing cannot be told: whether a body was cut that ends where its connection ends,
// without TLS, a length, chunks or gzip to say so. The TLS of a dialer of the caller's
// does not say so either.
//
// The package keeps nothing: caching is for package cache, matching for package policy.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

// Limits of RFC 9309 that a crawler may choose above the standard's minimum.
const (
	MaxBytes     = 500 << 10 // octets of a file that are parsed, after decoding (§2.5)
	MaxRedirects = 5         // redirects followed in a row (§2.3.1.2)
)

// The other limits of one Fetch. A base *http.Transport may make the first four smaller.
const (
	dialTimeout   = 5 * time.Second // resolving a name and connecting
	tlsTimeout    = 5 * time.Second
	headerTimeout = 10 * time.Second
	maxHeader     = 64 << 10 // octets of a response's header
	maxConn       = 4 << 20  // octets read from a connection: a legal file in chunks of one octet takes 3.1 MB
	maxAddresses  = 8        // addresses of one name that are tried, of IPv4 and of IPv6
	maxAttempts   = (MaxRedirects + 1) * (1 + defaultRetries)

	defaultTimeout        = 30 * time.Second
	defaultAttemptTimeout = 15 * time.Second
	defaultRetries        = 2

	// Beyond some hundreds of connections that are being made at once, honest servers begin
	// to time out, and so does a busy machine of ours. But a fetch that has not ended after a
	// fifth of AttemptTimeout, where others need less than half of that, waits for what may
	// never come: it leaves its place among the first to another. So 1,500 silent origins
	// keep the next one waiting for 18 s, not for three minutes.
	maxStarting       = 256
	startingPart      = 5
	defaultMaxFetches = 8 * maxStarting
)

// Fetcher reads robots.txt files. The zero value is ready: it goes through a hardened
// copy of http.DefaultTransport and reads by RFC 9309. A Fetcher is safe for concurrent
// use; its fields must not change, nor the Fetcher be copied, after the first Fetch.
type Fetcher struct {
	// Transport sends the requests; nil is http.DefaultTransport.
	//
	// An *http.Transport is not used itself but copied at the first Fetch. The copy
	// keeps its proxy, TLS settings and dialers, and the smaller of its time-outs and
	// ours. It speaks HTTP/1.1 only, opens one connection per request and reads at most
	// 64 KiB of header and 4 MiB per connection. The address that a redirect leads to is
	// checked: before connecting where DialContext is nil, else once it has connected,
	// before anything is sent. Behind a proxy, which resolves names itself, only hosts that
	// are addresses, or localhost, can be checked. A client certificate is not presented to
	// another origin that a redirect leads to. A DialTLSContext must agree on HTTP/1.1.
	// Panics in its dialers, their connections and its functions for proxies are caught; its
	// TLS callbacks run where nobody can, and must not panic.
	//
	// Any other RoundTripper is used as it is. Redirects, retries, the time-outs and the
	// limits on the file hold all the same; the limit per connection, the number of
	// dials and the check of addresses that have a name are then its own affair.
	//
	// A transport that adds credentials gives them to every origin: what does so belongs
	// where only pages pass. It is logged to slog.Default, once, and a request that was
	// given any, as httptrace tells, is not followed to another origin. Credentials are
	// Authorization, Proxy-Authorization (but that of a proxy's URL), Cookie, and fields
	// whose names end in Key, Token, Secret or Auth.
	Transport http.RoundTripper

	// UserAgent is sent with each request; "" sends net/http's own. It should begin with
	// the product token that the file's groups are matched against (RFC 9309 §2.2.1). With
	// one that no header field can hold, nothing is sent and each Result says so in Err.
	UserAgent string

	// Dialect parses the file and says what a status means; zero is policy.RFC9309.
	Dialect policy.Dialect

	// Timeout bounds a Fetch: redirects, retries and pauses together, from the moment it
	// is its turn (see MaxFetches). 0 is 30 s.
	Timeout time.Duration

	// AttemptTimeout bounds one request and its answer within Timeout. 0 is 15 s.
	AttemptTimeout time.Duration

	// Retries is how often one URL is asked again after a 5xx or a network failure, with
	// growing random pauses, within Timeout. 0 is 2; negative is none. Not retried: what
	// would fail again, such as a name that does not exist or a bad certificate. Retried
	// once at most: an answer that breaks off, whose server is up and mostly repeats it.
	Retries int

	// MaxFetches is how many Fetch calls may use the network at once; others wait under
	// their own context, as long as it takes. 0 is 2,048; negative is no limit. No more than
	// 256 of them are in the first fifth of their AttemptTimeout: the rest is room for those
	// that wait for slow origins, so that these take no turn from the others. Each may hold a
	// file of 500 KiB.
	MaxFetches int

	// PublicOnly refuses every address that is not globally reachable, the origin's own
	// included. False refuses only redirects from a public network into a private one,
	// so that intranets can be crawled. It needs a Transport that is nil or an
	// *http.Transport, without a proxy; with any other, only hosts that are addresses,
	// or localhost, are seen.
	PublicOnly bool

	once   sync.Once
	base   http.RoundTripper
	abroad http.RoundTripper // base for redirects to another origin
	slots  chan struct{}     // nil: no limit
	warned atomic.Bool       // of credentials
	self   *Result           // for the zero Origin

	starting chan struct{} // those of slots that have not had their first time; nil: no limit
	usual    atomic.Int64  // moving average of how long those take that get an answer
}

// Result is what an origin answered. It is not changed after Fetch returns it and may be
// shared; its maps and slices must be left alone.
type Result struct {
	// Policy is never nil. Its decisions give the reason: a rule of the file, or
	// policy.ReasonUnavailable, or policy.ReasonUnreachable.
	Policy *policy.Policy

	// Dialect is the one that Policy was read in, so that a stored Body can be parsed again.
	Dialect policy.Dialect

	// StatusCode and Header are those of the last response, after redirects; 0 and nil
	// where none came. A Result that a 304 renewed has the status of the stored response
	// and its header as updated by the 304 (RFC 9111 §3.2). Set-Cookie is left out. 407
	// with Err is a proxy's word, which says nothing about the origin.
	StatusCode int
	Header     http.Header

	// UserAgent is the User-Agent that was sent, if the Vary of the answer, or of a redirect
	// to it, names that field: the answer is for requests with the same value only (RFC 9111
	// §4.1). "" if it is for all. What else a Fetcher sends is the same in all of them.
	UserAgent string

	// Body is the file as parsed: decoded, and without what lies beyond MaxBytes. nil
	// unless the rules come from it.
	Body []byte

	// Time is when the answer came, or when it was given up.
	Time time.Time

	// Truncated says that the file is longer than MaxBytes. The line that the limit cuts
	// is dropped as well: half of "Disallow: /private" is "Disallow: /".
	Truncated bool

	// Redirects are the URLs that were redirected to, in order; nil if there were none.
	// The last of them gave the answer.
	Redirects []string

	// RedirectHeaders are what the answers that redirected say about their reuse (RFC 9111),
	// in the order of Redirects: Age, Cache-Control, Date, Expires and Vary.
	RedirectHeaders []http.Header

	// RetryAfter is what the server asked for with a status that passes, such as a 429 or
	// 5xx (RFC 9110 §10.2.3), at most 24 h; 0 if nothing. Fetch waits for that of a 5xx only
	// if it ends within Timeout.
	RetryAfter time.Duration

	// Err says why the origin is unreachable; nil if and only if it is not. It has text
	// only, of at most 1 KiB without control characters, and wraps nothing: a time-out
	// of ours must not look like one of the caller's.
	Err error
}

// ErrNoTurn is the error of a Fetch, beside that of its context, if waiting for its turn (see
// MaxFetches) has left it too little time: it says nothing about the origin.
var ErrNoTurn = errors.New("fetch: no turn")

// Fetch reads the robots.txt of o. The error is non-nil only if ctx ended, and is then
// ctx.Err(), or wraps it and ErrNoTurn; everything a server or network can do is a Result. Values and traces in ctx
// reach neither the transport nor the server.
//
// prev is an earlier Result of the same origin, or nil. If it is of a file that had an
// ETag or Last-Modified, these are sent (RFC 9110 §13.1) to the URL that the file came
// from, and a 304 returns prev renewed: its Policy, Body and StatusCode, its Header as
// updated, and a new Time.
//
// For the zero Origin nothing is asked: Fetch returns at once, with an unreachable Result
// whose UserAgent is what this Fetcher sends. A Cache asks so whom an answer is for.
func (f *Fetcher) Fetch(ctx context.Context, o Origin, prev *Result) (*Result, error) {
	f.once.Do(f.setUp)
	if o == (Origin{}) && ctx.Err() == nil {
		return f.self, nil
	}
	leave, queued, err := f.enter(ctx)
	if err != nil {
		return nil, err
	}
	var res *Result
	defer func() { leave(res != nil && res.Err == nil) }()

	// Not derived from ctx: a trace in its values could lift net/http's limit on 1xx
	// responses, and its deadline could pass here before it has passed there.
	own, cancel := withTimeout(context.Background(), orDefault(f.Timeout, defaultTimeout), "complete answer")
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()

	until, _ := own.Deadline()
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	r := resolution{Fetcher: f, until: until, asked: o, prev: prev, guard: guard{publicOnly: f.PublicOnly}}
	res = r.run(own, o)
	switch err := ctx.Err(); {
	case err == nil || res.Err == nil:
		return res, nil
	case queued:
		return nil, noTurn(err)
	default:
		return nil, err
	}
}

func (f *Fetcher) setUp() {
	f.base = f.Transport
	if f.base == nil {
		f.base = http.DefaultTransport
	}
	f.abroad = f.base
	if t, ok := f.base.(*http.Transport); ok {
		hardened := harden(t)
		f.base, f.abroad = hardened, anonymous(hardened)
	}
	r := resolution{Fetcher: f}
	f.self = r.unreachable(hop{url: Origin{}.RobotsURL()}, answer{}, errNoOrigin)
	f.self.UserAgent = f.agent()
	if n := orDefault(f.MaxFetches, defaultMaxFetches); n > 0 {
		f.slots = make(chan struct{}, n)
		f.starting = make(chan struct{}, min(n, maxStarting))
	}
}

// agent is the User-Agent that is sent: net/http has one for those who have none.
func (f *Fetcher) agent() string { return orDefault(f.UserAgent, "Go-http-client/1.1") }

// enter waits for the turn of a Fetch, which has to call leave when it is done and say
// whether it was answered. What a Fetch has to wait for here is no time of the origin's.
func (f *Fetcher) enter(ctx context.Context) (leave func(answered bool), queued bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if f.slots == nil {
		return func(bool) {}, false, nil
	}
	first, err := take(ctx, f.slots)
	if err != nil {
		return nil, true, err
	}
	second, err := take(ctx, f.starting)
	if err != nil {
		<-f.slots
		return nil, true, err
	}
	begin, part := time.Now(), orDefault(f.AttemptTimeout, defaultAttemptTimeout)/startingPart
	started := sync.OnceFunc(func() { <-f.starting })
	timer := time.AfterFunc(part, func() {
		if time.Duration(f.usual.Load()) < part/2 { // else it is we who are slow
			started()
		}
	})
	return func(answered bool) {
		if answered {
			usual := f.usual.Load()
			f.usual.Store(usual + (int64(time.Since(begin))-usual)/8)
		}
		timer.Stop()
		started()
		<-f.slots
	}, first || second, nil
}

// take takes a slot and reports whether it had to wait for it.
func take(ctx context.Context, slots chan<- struct{}) (waited bool, err error) {
	select {
	case slots <- struct{}{}:
		return false, nil
	default:
	}
	select {
	case slots <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return true, noTurn(ctx.Err())
	}
}

func noTurn(err error) error { return fmt.Errorf("%w: %w", ErrNoTurn, err) }

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
