// Package fetch reads the robots.txt of one origin over the network (RFC 9309 §2.3, §2.5).
//
// A Fetch ends in time and within bounded bytes, whatever the server does. It has one of four outcomes:
//
//   - the rules of the file;
//   - "unavailable": a 4xx, or more than five redirects in a row. Everything is allowed.
//   - "unreachable": a 5xx, a network failure, or an answer that cannot be used. Nothing is allowed.
//   - an error: the site was not asked, and nothing is known.
//
// Fetch reads by RFC 9309, and (*Result).In in another dialect. What a status means in each is one table, in
// resolution.go. Redirects are followed across hosts (see Fetcher.SameHost), but the rules bind only the origin that
// was asked. No redirect leads to a more private network than the origin's, as far as addresses are known, or to FTP.
//
// Requests carry a User-Agent, the accepted types, and validators, and nothing of the caller's. A Transport that adds
// credentials would give them to every origin: put what adds them above client.Transport. An ftp origin is read by what
// is registered for ftp with the Transport; see package fetch/ftp. The package keeps nothing.
//
// A body that breaks off is detected by its Content-Length, its chunks, its gzip coding, or the end of TLS. If it has
// none of these, it looks whole: over plain HTTP, or the TLS of a caller's own dialer. So does a gzip body there that
// is cut between two of its members.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
	"github.com/robotsgate/robotsgate/policy"
)

// The other limits of one Fetch. Those of a connection are in package harden.
const (
	maxRedirects = 5 // followed in a row, the least that a crawler should (RFC 9309 §2.3.1.2)
	maxAttempts  = (maxRedirects + 1) * (1 + defaultRetries)

	defaultTimeout    = 30 * time.Second
	defaultRetries    = 2
	defaultMaxFetches = 512 // with more connections at once, honest servers begin to time out

	maxMemory = 64 << 20 // of all files under way that are longer than a usual one
)

const defaultUserAgent = "Go-http-client/1.1" // net/http sends it for those who set none

// Fetcher reads robots.txt files. The zero value is ready: it sends through hardened copies of http.DefaultTransport.
// A Fetcher is safe for concurrent use, and calls Through and Sign concurrently. After the first Fetch its fields must
// not change, and it must not be copied.
type Fetcher struct {
	// Transport sends the requests. If nil, http.DefaultTransport does.
	//
	// An *http.Transport is copied for each http or https request; ftp requests go through it as it is. The copy keeps
	// its proxy, TLS settings and dialers, and the smaller of its time-outs and ours. It opens one connection, speaks
	// HTTP/1.1 only, so a DialTLSContext must agree on that, and reads at most 64 KiB of header and 4 MiB in all. It
	// presents no client certificate to another https origin. The address that a redirect leads to is checked before
	// anything is sent, and before connecting if DialContext is nil; behind a proxy, which resolves names itself, only
	// localhost and hosts that are addresses.
	//
	// With any other RoundTripper time-outs, redirects, retries, and the limits of 500 KiB for a file and 4 MiB for a
	// body hold too. Headers, bytes on the wire, HTTP/1.1, and to which address a name leads behind a redirect are its
	// own matter: for those, set the *http.Transport at its bottom here.
	Transport http.RoundTripper

	// Through is called for each request, also of redirects and retries. What it returns sends the request: it may wait,
	// as a Pacer does for the site's turn, and then calls wire, once. wire waits for a place in MaxFetches, starts the
	// clock of the request, and calls Sign. If nil, wire sends the request.
	//
	// The request's context bounds the wait before wire; wire ignores it. It has the values of the Fetch's context, and
	// ends with that, or earlier: it leaves Timeout for what follows, and for a retry it is what is left of Timeout. An
	// error without a call of wire says that no turn came in time. The Fetch returns it or, after a retry, the answer that
	// was to be retried.
	Through func(wire http.RoundTripper) http.RoundTripper

	// UserAgent is sent with each request. It should begin with the product token that groups are matched against
	// (RFC 9309 §2.2.1). If empty, Go-http-client/1.1 is sent, as net/http does.
	UserAgent string

	// Sign is called right before each http or https request is sent, for every redirect and retry, with a copy of it. It
	// may set header fields, and should look at the URL: redirects lead to any origin. An error ends the Fetch. A site
	// that admits only signed requests answers others with 403, which allows everything. If nil, nothing is called.
	Sign func(*http.Request) error

	// Timeout bounds one Fetch: its requests, redirects and retries, and the pauses between them, but not the waits for
	// a turn (Through) and for MaxFetches. A single request with its answer gets at most half of that. If zero, 30
	// seconds. If negative, there is none: what remains are the caller's context and the time-outs of a connection.
	Timeout time.Duration

	// Retries is how often one URL is asked again after a 5xx or a network failure, with growing random pauses, within
	// Timeout and 18 requests in all. If zero, 2. If negative, there is none. What would recur is not retried, such as a
	// name that does not exist or a bad certificate. A response that breaks off is retried once.
	Retries int

	// MaxFetches is the bound on requests under way at once. Others wait in line, no longer than their contexts: behind
	// 1,500, 3,000 or 10,000 silent origins, a healthy one waits 20, 50 or 190 s. If zero, 512. If negative, there is
	// none.
	MaxFetches int

	// ObeyWalls takes robots.txt for unreachable if a wall answers (see Result.Wall): nothing is allowed, and a cache
	// goes on with the last good copy. If false, such an answer permits everything, as RFC 9309 says.
	ObeyWalls bool

	// SameHost makes robots.txt unreachable if it is redirected to another host, www.example.com for example.com too;
	// another scheme or port is the same host. If false, redirects are followed to any host (RFC 9309 §2.3.1.2).
	SameHost bool

	once    sync.Once
	places  *semaphore.Weighted // in requests
	memory  *semaphore.Weighted // in bytes
	parsing *semaphore.Weighted // in longer files; one for each processor
}

// Reader identifies who reads, for the keys of a cache: the product token of UserAgent in lower case, then " signed" if
// Sign is set, " walls" if ObeyWalls is, and " host" if SameHost is. Fetchers with the same Reader may share a Result,
// others should not.
func (f *Fetcher) Reader() string {
	reader := strings.ToLower(policy.ProductToken(cmp.Or(f.UserAgent, defaultUserAgent)))
	if f.Sign != nil {
		reader += " signed"
	}
	if f.ObeyWalls {
		reader += " walls"
	}
	if f.SameHost {
		reader += " host"
	}
	return reader
}

// Fetch reads the robots.txt of o, by RFC 9309. An error means that the site was not asked, or that Fetch did not wait
// for its answer: ctx ended, there was no turn (Through) or no memory (64 MiB are for the files under way at once that
// are longer than 16 KiB), Sign failed, the address is not public (ErrNotPublic), a proxy refused, or a field of the
// Fetcher is wrong. Whatever else a server or network does is a Result. No trace or value in ctx reaches the Transport
// or the server.
//
// prev is an earlier Result of the same origin, for the same Reader, or nil. If its file had an ETag or
// Last-Modified, Fetch sends them (RFC 9110 §13.1) to the URL that the file came from. A 304 then returns prev
// renewed: its Policy, Dialect, Body and StatusCode, its Header as updated, and a new Time.
func (f *Fetcher) Fetch(ctx context.Context, o Origin, prev *Result) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.once.Do(f.setUp)
	// Not derived from ctx: a trace in its values would lift net/http's limit on 1xx responses, and its deadline
	// could pass here before ctx says so.
	own, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()

	r := resolution{Fetcher: f, caller: ctx, own: own, left: f.timeout(), asked: o, prev: prev}
	defer func() { f.memory.Release(r.held) }()
	res, err := r.run()
	none, isNoTurn := errors.AsType[noTurnError](err)
	switch ctxErr := ctx.Err(); {
	case isNoTurn:
		return nil, none.error
	case err == nil && res.Err == nil:
		return res, nil
	case ctxErr != nil:
		return nil, ctxErr
	case err == nil && r.crowded:
		return nil, &Failure{Text: "fetch: " + errCrowded.Error(), Cause: exhausted}
	}
	return res, err
}

// timeout bounds one Fetch.
func (f *Fetcher) timeout() time.Duration {
	if f.Timeout < 0 {
		return never
	}
	return cmp.Or(f.Timeout, defaultTimeout)
}

func (f *Fetcher) setUp() {
	places := cmp.Or(int64(f.MaxFetches), defaultMaxFetches)
	if places < 0 {
		places = math.MaxInt64
	}
	f.places, f.memory = semaphore.NewWeighted(places), semaphore.NewWeighted(maxMemory)
	f.parsing = semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))
}

const errCrowded = harden.FinalError("other long files take all the memory")

// noTurnError is the error of a request that had no turn, or no place.
type noTurnError struct{ error }

func (n noTurnError) Unwrap() error { return n.error }
