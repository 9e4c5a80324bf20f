// Package fetch reads the robots.txt of one origin over the network (RFC 9309 §2.3, §2.5).
//
// A Fetch ends in time and within bounded bytes, whatever the server does. It has one of
// four outcomes:
//
//   - the rules of the file;
//   - "unavailable": a 4xx, or more than five redirects in a row. Everything is allowed.
//   - "unreachable": a 5xx, a network failure, or an answer that cannot be used. Nothing is
//     allowed.
//   - an error, and nothing is known: the caller's context ended, Sign failed ([errSign]), or too many
//     Fetches are under way ([ErrBusy]).
//
// What a status means in each [policy.Dialect] is one table, in resolution.go.
//
// Redirects are followed across hosts (see Fetcher.SameHost), but the rules bind only the origin that was asked.
// No redirect leads to a more private network than the origin's.
//
// Requests carry a User-Agent, the accepted types, and validators. They never carry
// cookies, credentials or headers of the caller. If the transport adds credentials, see
// Fetcher.Transport.
//
// An ftp origin is read over FTP, if the Fetcher reads those (see Fetcher.FTP). The same
// limits and outcomes hold. FTP has no redirects, and no redirect of HTTP leads to FTP.
//
// A body that breaks off is detected, with one exception: without Content-Length, chunks or gzip,
// over plain HTTP or the TLS of a caller's own dialer, it ends where its connection does.
//
// The package keeps nothing: package cache caches, and package policy matches.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
	"github.com/robotsgate/robotsgate/policy"
)

// The other limits of one Fetch. Those of a connection are in package harden.
const (
	maxRedirects = 5 // followed in a row, the least that a crawler should (RFC 9309 §2.3.1.2)
	maxAttempts  = (maxRedirects + 1) * (1 + defaultRetries)

	defaultTimeout = 30 * time.Second
	defaultRetries = 2

	// If some hundreds of connections are made at once, honest servers begin to time out,
	// and so do busy clients. But if a fetch has taken a tenth of Timeout, while others need
	// less than half of that, its answer may never come: it leaves its place among the first
	// to another. So 1,500 silent origins keep the next one waiting for 18 s, not for three
	// minutes.
	maxStarting       = 256
	startingPart      = 10
	defaultMaxFetches = 8 * maxStarting
	defaultMaxMemory  = 64 << 20
)

// defaultUserAgent is the User-Agent that net/http sends for those who set none. It is exported for packages cache and
// client, which decide for the same one.
const defaultUserAgent = "Go-http-client/1.1"

// Fetcher reads robots.txt files. The zero value is ready: it sends through a hardened
// copy of http.DefaultTransport and reads by RFC 9309. A Fetcher is safe for concurrent
// use. After the first Fetch its fields must not change, and it must not be copied.
type Fetcher struct {
	// Transport sends the requests. If nil, http.DefaultTransport does.
	//
	// An *http.Transport is not used itself but copied at the first Fetch. The copy keeps
	// its proxy, TLS settings and dialers, and the smaller of its time-outs and ours. It
	// speaks HTTP/1.1 only and opens one connection per request. It reads at most 64 KiB
	// of header and 4 MiB per connection. It presents no client certificate to another
	// origin. A DialTLSContext must agree on HTTP/1.1.
	//
	// The address that a redirect leads to is checked before anything is sent, and before
	// connecting if DialContext is nil. A proxy resolves names itself: behind one, only
	// localhost and hosts that are addresses can be checked.
	//
	// Panics in its dialers, their connections and its functions for proxies are caught.
	// Its TLS callbacks must not panic: they run where no recover can catch it.
	//
	// Any other RoundTripper is used directly. Redirects, retries, time-outs and the limits
	// on the file hold there too. The limit per connection, the number of dials and the
	// check of addresses that have a name are that RoundTripper's responsibility.
	//
	// A transport that adds credentials would give them to every origin: put what adds them
	// above the gate. The first such request is logged to slog.Default. If httptrace shows that
	// a request got credentials from it, a redirect to another origin is not followed.
	// Credentials are Authorization, Proxy-Authorization (unless from a proxy's URL),
	// Cookie, and fields whose names end in Key, Token, Secret or Auth.
	Transport http.RoundTripper

	// Through, if set, is called for each request with what sends it, a hardened copy of Transport; what it
	// returns sends the request. A Pacer comes in there: the clock of a request begins when wire is called.
	Through func(wire http.RoundTripper) http.RoundTripper

	// UserAgent is sent with each request. It should begin with the product token that
	// groups are matched against (RFC 9309 §2.2.1). If empty, defaultUserAgent is sent. If no
	// header field can hold it, nothing is sent and each Result says so in Err.
	UserAgent string

	// Sign is called before each http or https request is sent, for every hop and retry, with the complete
	// request. It may set header fields. If it returns an error, or changes the method, the URL, the host
	// or the User-Agent, nothing more is sent and Fetch returns that error. If nil, nothing is called. A
	// site that admits only signed requests answers others with 403, which would allow everything.
	//
	// No two origins get the same credentials (see Transport) in one Fetch. If Sign would give the
	// target of a redirect what it gave an earlier origin, the redirect is not followed.
	Sign func(*http.Request) error

	// Dialect parses the file and decides what a status means. If zero, policy.RFC9309.
	Dialect policy.Dialect

	// Timeout bounds one Fetch: redirects, retries and pauses together, but not the wait for
	// MaxFetches. A single request with its answer gets at most half of that. If zero, 30 seconds.
	// If negative, there is none: what remains are the caller's context and the time-outs of a
	// connection.
	Timeout time.Duration

	// Retries is how often one URL is asked again after a 5xx or a network failure, with
	// growing random pauses, within Timeout. If zero, 2. If negative, there is none.
	//
	// What would recur is not retried, such as a name that does not exist or a bad
	// certificate. A response that breaks off is retried once: its server is up, and
	// usually repeats the failure.
	Retries int

	// MaxFetches bounds how many Fetch calls use the network at once; others wait, no longer than
	// their contexts. If zero, 2,048. If negative, there is none.
	//
	// At most 256 fetches may be in their first 3 s (a tenth of Timeout). Older ones wait for
	// slow sites and do not hold up new ones.
	MaxFetches int

	// MaxMemory bounds the bytes of all files that are being read. The first 16 KiB of a file are
	// free: few files have more. A longer file takes 500 KiB of MaxMemory until its Fetch returns,
	// or waits for them within Timeout. If zero, 64 MiB. If negative, there is none.
	MaxMemory int64

	// ObeyWalls takes robots.txt for unreachable if a wall answers (see Result.Wall): nothing is
	// allowed, and a cache goes on with the last good copy. If false, such an answer permits
	// everything, as RFC 9309 has it.
	ObeyWalls bool

	// SameHost makes robots.txt unreachable if it is redirected to another host, www.example.com for
	// example.com too; another scheme or port is the same host. If false, redirects are followed to
	// any host (RFC 9309 §2.3.1.2).
	SameHost bool

	once   sync.Once
	base   http.RoundTripper
	abroad http.RoundTripper   // base for redirects to another origin
	memory *semaphore.Weighted // in bytes
	warned atomic.Bool         // of credentials

	slots    *semaphore.Weighted // in fetches
	starting *semaphore.Weighted // of the slots, those in their first time
	usual    atomic.Int64        // moving average of the time that an answer takes
}

// Reader says who reads with f, for the keys of a cache: the product token of UserAgent in lower case, then
// " signed", " walls" and " host" for what is set of Sign, ObeyWalls and SameHost. Fetchers of one Reader get and
// read the same answers.
func (f *Fetcher) Reader() string {
	reader := strings.ToLower(policy.ProductToken(f.agent()))
	for _, set := range []struct {
		is   bool
		word string
	}{{f.Sign != nil, " signed"}, {f.ObeyWalls, " walls"}, {f.SameHost, " host"}} {
		if set.is {
			reader += set.word
		}
	}
	return reader
}

// ErrBusy is wrapped by the error of a Fetch that waited too long: to begin (MaxFetches; the
// error then wraps that of the context, too), for memory (MaxMemory), or for a turn (withTurns).
// That says nothing about the origin.
var ErrBusy = errors.New("fetch: too busy")

var errCrowded = errors.New("other long files take all the memory")

// Fetch reads the robots.txt of o. It returns an error only if ctx ended (ctx.Err(), or an error that wraps
// it), if Sign failed (an error that wraps Sign's), or if it waited too long (an error that wraps ErrBusy).
// Whatever a server or network does is a Result. Values and traces in ctx reach neither the transport nor the
// server.
//
// prev is an earlier Result of the same origin, from a Fetcher of the same Kind, or nil. If its
// file had an ETag or Last-Modified, Fetch sends them (RFC 9110 §13.1) to the URL that the file
// came from. A 304 then returns prev renewed: its Policy, Body and StatusCode, its Header as
// updated, and a new Time.
func (f *Fetcher) Fetch(ctx context.Context, o Origin, prev *Result) (*Result, error) {
	f.once.Do(f.setUp)
	leave, queued, err := f.enter(ctx)
	if err != nil {
		return nil, err
	}
	var res *Result
	defer func() { leave(res != nil && res.Err == nil) }()

	// Not derived from ctx: a trace in its values could lift net/http's limit on 1xx
	// responses, and its deadline could pass here before it has passed there.
	own, budget, cancel := harden.WithBudget(context.Background(), f.timeout(), "complete answer")
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()

	// Pauses must have ended before our time-out, and before the caller's deadline.
	until := time.Now().Add(f.scale())
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	r := resolution{Fetcher: f, turns: turnsOf(ctx), until: until, asked: o, prev: prev}
	turn := r.turns.next
	r.turns.next = func(u *url.URL, status int, until time.Time) (err error) { // our queue takes none of the site's time
		r.until = r.until.Add(budget.Without(func() { err = turn(u, status, until) }))
		return err
	}
	res = r.run(own)
	f.memory.Release(r.held)
	switch err := ctx.Err(); {
	case r.ended != nil:
		return nil, r.ended
	case res.Err == nil:
		return res, nil
	case err == nil && r.crowded.Load():
		return nil, noTurn(errCrowded)
	case err == nil:
		return res, nil
	case queued:
		return nil, noTurn(err)
	default:
		return nil, err
	}
}

// timeout bounds one Fetch; negative if there is no such bound.
func (f *Fetcher) timeout() time.Duration { return cmp.Or(f.Timeout, defaultTimeout) }

// scale is timeout for what needs an end in any case.
func (f *Fetcher) scale() time.Duration {
	if f.Timeout < 0 {
		return defaultTimeout
	}
	return f.timeout()
}

func (f *Fetcher) setUp() {
	f.base = f.Transport
	if f.base == nil {
		f.base = http.DefaultTransport
	}
	f.abroad = f.base
	if t, ok := f.base.(*http.Transport); ok {
		hardened := harden.Transport(t)
		hardened.RegisterProtocol("ftp", ftp{hardened})
		f.base, f.abroad = hardened, harden.Anonymous(hardened)
	}
	f.memory = room(cmp.Or(f.MaxMemory, defaultMaxMemory), fileShare)
	fetches := int64(cmp.Or(f.MaxFetches, defaultMaxFetches))
	f.slots, f.starting = room(fetches, 1), room(min(fetches, maxStarting), 1)
}

func (f *Fetcher) agent() string { return cmp.Or(f.UserAgent, defaultUserAgent) }

// enter waits for the turn of a Fetch, which calls leave at its end. The time spent here
// does not count against the origin. queued reports whether there was any.
func (f *Fetcher) enter(ctx context.Context) (leave func(answered bool), queued bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	first, err := take(ctx, f.slots, 1)
	if err != nil {
		return nil, true, noTurn(err)
	}
	second, err := take(ctx, f.starting, 1)
	if err != nil {
		f.slots.Release(1)
		return nil, true, noTurn(err)
	}
	begin, part := time.Now(), f.scale()/startingPart
	started := sync.OnceFunc(func() { f.starting.Release(1) })
	timer := time.AfterFunc(part, func() {
		if time.Duration(f.usual.Load()) < part/2 { // otherwise we are slow, not the origin
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
		f.slots.Release(1)
	}, first || second, nil
}

// room is what there is of something, for all fetches together: most, and enough for one that needs so
// much. If most is negative, it never ends.
func room(most, one int64) *semaphore.Weighted {
	if most < 0 {
		most = math.MaxInt64
	}
	return semaphore.NewWeighted(max(most, one))
}

// take waits for n, and reports whether it had to.
func take(ctx context.Context, room *semaphore.Weighted, n int64) (waited bool, err error) {
	if room.TryAcquire(n) {
		return false, nil
	}
	return true, room.Acquire(ctx, n)
}

func noTurn(err error) error { return fmt.Errorf("%w: %w", ErrBusy, err) }
