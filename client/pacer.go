package client

import (
	"cmp"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/client/turns"
)

// Pacer keeps the distance between requests that a site asks for, and backs off when the site suffers. Set it as
// Transport.Pacer, and every request waits for its turn.
//
// Each origin has its own pace; no origin waits for another. At one origin
//
//   - a request starts no sooner than the delay after the latest earlier start, and no sooner than the delay after the
//     latest earlier end. The delay is the larger of Crawl-delay and Request-rate in the crawler's group of robots.txt,
//     or Delay if it has neither; MinDelay at least.
//   - at most MaxUnderway requests are in flight: from the start until the response body is closed or read to the end;
//     and a robots.txt, which waits for no open body.
//   - no request starts before the time in the Retry-After of a 429 or 5xx, at most a day ahead. If such an answer has
//     none, or no answer comes, pauses grow from two seconds (or twice the delay) to an hour, give or take a fifth. A
//     good answer halves the next pause.
//   - requests start in the order in which they came, but robots.txt, which decides about the others, goes first. It
//     keeps the distance like any other request, so the first page of a site waits for one delay as well.
//
// For rarer cases, such as a robots.txt that expires while a request waits, see Pacing in integration_test/README.md.
//
// # Waiting and time-outs
//
// RoundTrip waits inside http.Client.Timeout, or any deadline of the request. As soon as it is known that a turn cannot
// come in time, it is refused with a [*LateError]; a loop must wait until its At. A crawler takes the turn first: the
// time-out then covers the site alone.
//
//	turn, err := transport.Turn(ctx, u) // reads robots.txt, decides, waits
//	if err != nil { … }
//	defer turn.End()
//	req, err := http.NewRequestWithContext(turn.Context(ctx), "GET", u.String(), nil)
//	if err != nil { … }
//	resp, err := httpClient.Do(req) // starts at once
//
// A worker of a queue should not wait at one site while others are free: it uses [Transport.Try]. Let its http.Client
// return redirects (a CheckRedirect that returns http.ErrUseLastResponse), and put their targets into the queue as URLs
// of their own: a hop within Do waits for its turn there, in the time-out of the page before it. Put a URL that was
// answered with 429 or 5xx back, too: the next Try says until when the site pauses.
//
// # A fleet
//
// With Turns, several processes share one pace for each origin: starts are a delay apart over all of them, by the clock
// of the store, and pauses hold for all. A slow Sign or connection may bring them closer together at the site. While
// the store fails nothing is sent, not for robots.txt either.
//
// A Pacer is safe for concurrent use, and several Transports may share it, unless one is the Base of another: a request
// would wait for its own end. Its fields must not change after the first use, and it must not be copied. It needs no
// Close.
type Pacer struct {
	// Delay is kept if robots.txt asks for none. A delay in robots.txt replaces it, even a shorter one. If zero, 1
	// second. If negative, there is none.
	Delay time.Duration

	// MinDelay is a floor that no robots.txt undercuts; where robots.txt asks for none, the larger of this and Delay is
	// kept. If zero, there is no floor. If negative, there is none.
	MinDelay time.Duration

	// MaxDelay caps what robots.txt may ask for: a site that asks for more is visited at this distance all the same. If
	// zero, 30 seconds. If negative, there is none: a delay is then kept up to a day, and a request whose deadline comes
	// sooner gets a [*LateError] with that Delay. Keep it below Cache.MinTTL: else robots.txt may expire between two
	// turns, and while new requests keep coming, reading it may use up every turn.
	MaxDelay time.Duration

	// MaxUnderway is the bound on requests in flight at one origin. If zero, 1. If negative, there is none.
	//
	// A request is in flight from its start until its response body is closed or read to the end, it is answered with a
	// 101, it fails, or its context ends. So a body that is never closed keeps its place until its context ends, as it
	// keeps its connection, and with 1, a request waits for an open body of the same origin. Above one, requests overlap,
	// and slow connections may bring them closer together at the site.
	MaxUnderway int

	// Turns is where several processes share one pace for each origin. If nil, the pace is that of this process only.
	//
	// Over processes only the delay between starts and the pauses hold. MaxUnderway, the order, and the distance from the
	// end of a request hold within a process. robots.txt goes first within its process: with N busy ones it waits for up
	// to N delays. The way to the store costs time: some 2 % of the pace at a delay of a second. [Transport.Turn] and
	// [Transport.Try] add 250 ms to each delay, by which their callers may be late: a second becomes 1.25, even for one
	// process alone. While the store fails, requests wait until their contexts end, Try gives a [*LateError], and the
	// errors name the store. A store that loses its memory lets one request of each origin come too early.
	Turns turns.Store

	once   sync.Once
	keeper pace.Keeper // use ready
}

// ready returns what keeps the pace, with the zero values of the fields resolved.
func (p *Pacer) ready() *pace.Keeper {
	p.once.Do(func() {
		k := &p.keeper
		k.Delay = min(max(cmp.Or(p.Delay, time.Second), 0), pace.Day)
		k.MinDelay = min(max(p.MinDelay, 0), pace.Day)
		k.MaxDelay = min(cmp.Or(p.MaxDelay, 30*time.Second), pace.Day)
		if p.MaxDelay < 0 {
			k.MaxDelay = pace.Day
		}
		k.MaxUnderway = max(cmp.Or(p.MaxUnderway, 1), 0)
		k.Turns = p.Turns
	})
	return &p.keeper
}
