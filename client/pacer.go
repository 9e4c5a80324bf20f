package client

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Pacer keeps the distance between requests that a site asks for, and backs off when
// the site suffers. Set it as Transport.Pacer and every request waits for its turn.
//
// Each origin has a pace of its own; no origin ever waits for another. At one origin
//
//   - a request starts no sooner than the delay after the latest earlier start, and no
//     sooner than the delay after the latest earlier end. The delay is the larger of
//     Crawl-delay and Request-rate in the group of robots.txt that binds us, or Delay
//     where it has neither. Of several product tokens that share the Pacer, the largest
//     counts, for an hour after a token was last decided for. Both readings of
//     Crawl-delay hold that way: "at most one start in a window of n seconds" (Bing)
//     and "n seconds from the end of one request to the start of the next" (Yandex).
//     Fractions count.
//   - at most MaxUnderway requests are under way. A request is, from its start until
//     its response body is closed or read to its end, it fails, or its context ends.
//     With MaxUnderway above one, requests still under way hold nobody back but by
//     their number; ends that have happened count as above.
//   - no request starts before the time that Retry-After of a 429 or 5xx names, at most
//     a day ahead. Where such an answer names none, or none comes (a network failure),
//     pauses grow from two seconds (or twice the delay) to an hour, give or take a
//     fifth; each good answer halves the next one. A request that could not be sent as
//     it is, or whose body fails, says nothing about the site.
//   - who asks first goes first. There are two exceptions: robots.txt, which decides
//     what becomes of the others, and a request whose turn Wait has obtained.
//
// A request that had to wait is decided on again when its turn comes, by what the Cache
// holds then; where that has expired, robots.txt is read first. A robots.txt that names no
// delay any more, or cannot be had, takes none away from those who wait.
//
// Reading robots.txt keeps the distance like any other request and takes a place, but it
// does not wait for one; its redirects and retries belong to it. Requests made
// [WithoutRobots] are neither spaced nor counted: somebody is waiting for them.
//
// # Waiting and time-outs
//
// RoundTrip waits inside http.Client.Timeout, or any deadline of the request. A turn
// that cannot come in time is refused at once, with an error that wraps
// context.DeadlineExceeded, but one that could come and then does not costs the whole
// time. A crawler does better to wait first, so that the time-out is about the site
// alone:
//
//	if d, err := transport.Decide(ctx, u); err != nil || !d.Allowed { … } // also tells the Pacer the delay
//	if err := pacer.Wait(ctx, u); err != nil { … }
//	resp, err := httpClient.Get(u.String()) // uses the turn, starts at once
//
// A body that is never closed keeps its place until its context ends, as it keeps its
// connection. With MaxUnderway 1, a request made while a body of the same origin is
// still open waits for that body.
//
// A Pacer may be used by several goroutines and shared by several Transports; its
// fields must not change after the first use, and it must not be copied. It owns no
// goroutine, and has a timer only while somebody waits.
type Pacer struct {
	// Delay is kept where robots.txt asks for none; one that it asks for is kept even
	// if shorter. 0: one second. Negative: none.
	Delay time.Duration

	// MaxDelay caps what robots.txt may ask for. 0: 30 s. Negative: one day.
	MaxDelay time.Duration

	// Refuse says what becomes of a request to an origin that asks for more than
	// MaxDelay: true, it ends with a [*DelayError]; false, MaxDelay is kept instead.
	Refuse bool

	// MaxUnderway is how many requests may be under way at one origin. 0: one.
	// Negative: any number.
	MaxUnderway int

	// Size is how many origins are remembered. 0: 50,000, at some 500 octets each.
	// Beyond it, an origin whose delay has passed is forgotten, the longest unused
	// first; where none is found, one that merely pauses. An origin whose delay still
	// runs, or with requests waiting or under way, is never forgotten, so spacing holds
	// at any size: the true bound is Size and the number of such origins together.
	Size int

	mu    sync.Mutex // guards lanes and what hangs off it; held for short arithmetic only
	lanes *simplelru.LRU[fetch.Origin, *lane]
}

// DelayError says that a request was not sent because robots.txt asks for more delay
// between requests than the Pacer's MaxDelay, and Pacer.Refuse is set.
type DelayError struct {
	Origin fetch.Origin
	Delay  time.Duration // what robots.txt asks for
	Max    time.Duration // what the Pacer would keep
}

// Error names the origin, the delay and the cap.
func (e *DelayError) Error() string {
	return fmt.Sprintf("client: request to %s not sent: robots.txt asks for %v between requests, more than the Pacer's MaxDelay of %v",
		e.Origin, e.Delay, e.Max)
}

// Wait waits until a request to u's origin may start; the turn is used by the next
// request to that origin through a Transport with this Pacer, if it comes within ten
// seconds. Where the delay has run since, the next turn is given all the same, so
// turns need not be used: without a Transport, Wait spaces the starts, but neither
// ends nor answers are seen.
//
// What robots.txt asks for is known once a Transport with this Pacer has decided on a
// URL of the origin (RoundTrip, Decide), or from Learn. Until then, Delay is kept.
//
// The error is the context's cause; wraps context.DeadlineExceeded, and is a net.Error
// with Timeout, if the turn cannot come before its deadline; is a *DelayError; or says why
// u names no origin.
func (p *Pacer) Wait(ctx context.Context, u *url.URL) error {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	_, _, err = p.take(ctx, o, asWait)
	return err
}

// Next returns when a request to u's origin may start if it is asked for now, the
// present time if at once: for a crawler that keeps a queue of its own, ordered by
// that time. It is an estimate, exact if nobody else asks and nobody gives up; it
// reserves nothing. For a URL that names no origin it is the present time.
func (p *Pacer) Next(u *url.URL) time.Time {
	now := time.Now()
	o, err := fetch.OriginOf(u)
	if err != nil {
		return now
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lanes == nil {
		return now
	}
	l, ok := p.lanes.Peek(o)
	if !ok {
		return now
	}
	at, _ := p.earliest(l, now, asWait)
	ahead := min(l.waiting.Len(), 10_000) // keeps the product in range: a delay is a day at most
	return at.Add(time.Duration(ahead) * p.delay(l, at))
}

// Learn tells the Pacer the group of robots.txt that binds us at u's origin, for a
// crawler that sends without a Transport. It replaces all that was learned before. A
// Transport tells its Pacer by itself. The error says why u names no origin.
func (p *Pacer) Learn(u *url.URL, g policy.Group) error {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	p.learn(o, g, source{}, nil)
	return nil
}

// The zero values of the fields, resolved.

func (p *Pacer) defaultDelay() time.Duration {
	if p.Delay == 0 {
		return time.Second
	}
	return min(max(p.Delay, 0), day)
}

func (p *Pacer) maxDelay() time.Duration {
	switch {
	case p.MaxDelay == 0:
		return 30 * time.Second
	case p.MaxDelay < 0:
		return day
	}
	return min(p.MaxDelay, day)
}

func (p *Pacer) maxUnderway() int {
	switch {
	case p.MaxUnderway == 0:
		return 1
	case p.MaxUnderway < 0:
		return math.MaxInt
	}
	return p.MaxUnderway
}

func (p *Pacer) size() int {
	if p.Size <= 0 {
		return 50_000
	}
	return p.Size
}

// day bounds every wait that a site can cause, so that one absurd value does not
// freeze an origin for ever (the horizon of RFC 9309 §2.4 is a day as well).
const day = 24 * time.Hour
