package client

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/fetch"
)

// Pacer keeps the distance between requests that a site asks for, and backs off when the
// site suffers. Set it as Transport.Pacer, and every request waits for its turn.
//
// Each origin has its own pace; no origin waits for another. At one origin
//
//   - a request starts no sooner than the delay after the latest earlier start, and no sooner than
//     the delay after the latest earlier end. The delay is the larger of Crawl-delay and
//     Request-rate in the crawler's group of robots.txt, or Delay if it has neither. Fractions
//     count. Keeping both distances satisfies both readings of Crawl-delay: "at most one start in
//     a window of n seconds" (Bing) and "n seconds from the end of one request to the start of the
//     next" (Yandex). Crawlers with different product tokens or dialects may share a Pacer, and so may
//     those with different User-Agents to which a site gives different files: the largest delay counts.
//     A delay is forgotten after an hour without a decision for its token, dialect and User-Agent.
//   - at most MaxUnderway requests are in flight. A request is in flight from its start until its
//     response body is closed or read to the end, it is answered with a 101, it fails, or its
//     context ends. If MaxUnderway is above one, requests overlap, but each start still keeps the
//     delay after the latest start and the latest end.
//   - no request starts before the time in the Retry-After of a 429 or 5xx, at most a day
//     ahead. If such an answer has none, or no answer comes, pauses grow from two seconds
//     (or twice the delay) to an hour, give or take a fifth. Each good answer halves the
//     next pause. Requests of one process that were in flight together fail as one.
//     A request that cannot be sent, or whose body fails, says nothing about the site.
//   - requests start in the order in which they came, with two exceptions: robots.txt, which
//     decides about the others, goes first, and after it a request for a URL whose turn Wait or Try
//     has obtained.
//
// A request that had to wait is decided on again at its turn, by what the Cache then
// holds. If that has expired, robots.txt is read first. A new robots.txt that names no
// delay, or is unreachable, takes no delay away from those who wait.
//
// Reading robots.txt keeps the distance like any other request, so the first page of a site waits
// for one delay as well. The reading waits for no other request to end, but is itself one request in
// flight. Redirects within the origin are part of it, and so is the question without validators after
// a 304 or 412 of no use. A redirect to another origin, and a retry, waits for a turn of its own. If that turn
// cannot come within half of Fetcher.Timeout, robots.txt is asked for again later. Requests made
// [WithoutRobots] are neither spaced nor counted: a person waits for them.
//
// # Waiting and time-outs
//
// RoundTrip waits inside http.Client.Timeout, or any deadline of the request. A turn that cannot
// come in time is refused at once, with a [*LateError], which wraps context.DeadlineExceeded. If a
// turn could come in time and then does not, the request fails when its time is over. A crawler
// should wait before it sends: the time-out then covers the site alone.
//
//	if a, err := transport.Decide(ctx, u); err != nil || !a.Allowed { … } // also tells the Pacer the delay
//	if err := pacer.Wait(ctx, u); err != nil { … }
//	resp, err := httpClient.Get(u.String()) // uses the turn, starts at once
//
// A worker of a queue should not wait at one site while others are free. Give Decide a context that
// ends soon: the reading of robots.txt goes on without it. And use Try, which does not wait for the
// turn.
//
// A body that is never closed keeps its place until its context ends (in a fleet, for a day at
// most), as it keeps its connection. With MaxUnderway 1, a request waits for an open body of the same origin.
//
// # A fleet
//
// With Turns, what is said here of one process holds for all processes that share the store: a site
// sees one visitor. Two things stay local: the largest delay of several tokens, and Next, which
// knows of other processes only what the store last said. The pace does not depend on the clocks of
// the machines. How often robots.txt is read does: a Cache trusts the times in its Store, unless
// they are more than a minute ahead of its own clock. Requests of one process start in the order in
// which they came; the processes alternate. A process that dies keeps its places for five seconds,
// and so may one that exits before [Transport.Shutdown] has returned. A process that was stopped
// for longer than that asks again before it sends; only a stop between its last look and the write
// goes unnoticed. While Turns fails, requests wait until their contexts end (but see RunAlone).
// Their error then names the failure too, unless they were still waiting for robots.txt.
//
// With MaxUnderway above one, two starts may be closer than the delay, by the time that a call of
// Turns takes. With any MaxUnderway, so may robots.txt and a page in flight. A process that waits
// longer than 250 ms for Turns may lose its turn to another.
//
// # Memory
//
// A Pacer remembers 50,000 origins, some 500 bytes each. Turns from Wait that no request uses add
// up to 1,000 bytes to their origin. When there are more origins, it forgets the longest unused one
// whose delay has passed, or else one that merely pauses. It never forgets an origin whose delay
// still runs, or that has requests waiting or in flight.
//
// A Pacer is safe for concurrent use, and several Transports may share it. Its fields must not
// change after the first use, and it must not be copied. It owns no goroutine, and has a timer only
// while a caller waits. With Turns, it has a timer for each request in flight, for a day at most, and
// goroutines that tell the store what has become of a turn: its answer, its end, and what its
// robots.txt asks for. Each is told for five seconds at most, one after the other.
type Pacer struct {
	// Delay is kept if robots.txt asks for none. A delay in robots.txt replaces it, even
	// a shorter one. If zero, 1 second. If negative, there is none.
	Delay time.Duration

	// MaxDelay caps what robots.txt may ask for. If zero, 30 seconds. If negative, there is none: a
	// delay is then kept up to a day.
	MaxDelay time.Duration

	// RefuseLongDelays makes requests fail with a [*DelayError] at an origin that asks for more
	// than MaxDelay. If false, MaxDelay is kept instead.
	RefuseLongDelays bool

	// MaxUnderway bounds how many requests are in flight at one origin. If zero, 1. If negative,
	// there is none.
	MaxUnderway int

	// Turns is where several processes share one pace for each origin, see "A fleet" above.
	// If nil, the pace is kept in this process only.
	Turns turns.Store

	// RunAlone lets this process send at its own pace while Turns fails. One request at a time finds
	// out whether it works again, which takes 2.5 seconds if Turns is silent. If false, requests wait
	// until Turns works again or their contexts end.
	RunAlone bool

	once   sync.Once
	keeper pace.Keeper // use kept
}

// Wait waits until a request for u may start. The turn is for u: the next request for u through a
// Transport with this Pacer uses it, if it comes within ten seconds. Such a request starts at
// once, unless another has started or ended since, or the site has asked for a pause. No request
// for another URL uses the turn, such as the next hop of a redirect, nor one whose Host names
// another origin than u (see fetch.OriginOfRequest).
//
// A turn need not be used: once the delay has passed, the next one is given. So Wait also works
// without a Transport. It then spaces the starts, but sees no ends and no answers.
//
// The Pacer knows what robots.txt asks for once a Transport has decided on a URL of the
// origin (RoundTrip, Decide). Until then it keeps Delay.
//
// The error is the context's cause, a *DelayError, or says why u names no origin. If the
// turn cannot come before ctx's deadline, it is a *LateError, at once.
func (p *Pacer) Wait(ctx context.Context, u *url.URL) error { return p.kept().Visit(ctx, u, false) }

// Try is Wait without waiting. If the turn for u cannot be had now, the error is a [*LateError],
// whose At is when to ask again. Try is for a queue: its worker puts the URL back until then, and
// goes on with one of another site.
//
// With Turns it waits for the answer of the store, but no longer than ctx.
func (p *Pacer) Try(ctx context.Context, u *url.URL) error {
	err := p.kept().Visit(ctx, u, true)
	if late, ok := errors.AsType[*LateError](err); ok {
		late.tried = true
	}
	return err
}

// Next returns when a request to u's origin may start if it is asked for now. A crawler
// can order a queue of its own by that time.
//
// The time is an estimate, exact if no other caller asks and none gives up. Of other processes Next
// knows what Turns said when this one last asked for a turn. It reserves nothing. It returns the
// present time if the request may start at once, or if u names no origin.
func (p *Pacer) Next(u *url.URL) time.Time {
	k := p.kept()
	return k.Next(u, k.Now())
}

// kept returns what keeps the pace, with the zero values of the fields resolved.
func (p *Pacer) kept() *pace.Keeper {
	p.once.Do(func() {
		k := &p.keeper
		k.Delay = min(max(cmp.Or(p.Delay, time.Second), 0), pace.Day)
		k.MaxDelay = min(cmp.Or(p.MaxDelay, 30*time.Second), pace.Day)
		if p.MaxDelay < 0 {
			k.MaxDelay = pace.Day
		}
		k.Refuse, k.Places = p.RefuseLongDelays, max(cmp.Or(p.MaxUnderway, 1), 0)
		k.Turns, k.Alone = p.Turns, p.RunAlone
		k.Late = func(o fetch.Origin, at, now time.Time, paused bool) error { return lateAt(o, at, now, paused) }
		k.Slow = func(o fetch.Origin, asked, most time.Duration) error { return &DelayError{o, asked, most} }
	})
	return &p.keeper
}
