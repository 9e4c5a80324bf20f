package client

import (
	"container/list"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/fetch"
)

// lane is what a Pacer knows of one origin. Pacer.mu guards it.
//
// A rate.Limiter (golang.org/x/time) per origin does not do here. Its bucket fills from
// the start of a request, while the delay has to run from the end too; a reservation,
// once made, keeps its time when a pause comes in between or somebody ahead gives up;
// and nothing in it counts what is under way.
type lane struct {
	lessons  []lesson  // what robots.txt asks for
	read     time.Time // when the newest robots.txt was read that a Transport has decided by
	last     time.Time // the latest start or end of a request
	granted  time.Time // when Wait last gave a turn
	grants   int       // turns that Wait gave and no request has used
	resume   time.Time // no start before: the site asked for a pause, or suffers
	strain   int       // failures, less the good answers since
	underway int
	waiting  list.List // of *waiter; the first is the next to go
	owed     int       // of waiting, those who keep a delay that nothing asks for any more
}

// lane returns that of o, which it makes if there is none.
func (p *Pacer) lane(o fetch.Origin, now time.Time) *lane {
	if p.lanes == nil {
		// Bounded by forget, which knows what may go; the LRU does not.
		p.lanes, _ = simplelru.NewLRU[fetch.Origin, *lane](math.MaxInt, nil)
	}
	if l, ok := p.lanes.Get(o); ok {
		return l
	}
	p.forget(now)
	l := new(lane)
	p.lanes.Add(o.Clone(), l) // a key must not keep the text of a whole URL
	return l
}

// forget makes room for one more lane, in constant time: it looks at the longest
// unused ones and gives those that may not go a second chance at the other end.
// Forgetting a lane whose delay has passed breaks no spacing; what was learned of the
// origin comes back with the next decision. Forgetting a pause is the lesser evil
// against a million origins that all answer "come back tomorrow".
func (p *Pacer) forget(now time.Time) {
	const looks = 16
	var paused fetch.Origin // the zero Origin is that of no lane
	for range looks {
		if p.lanes.Len() < p.size() {
			return
		}
		o, l, _ := p.lanes.GetOldest()
		idle := l.underway == 0 && l.waiting.Len() == 0 && !p.spaced(l, l.latest(), now).After(now)
		if idle && !l.resume.After(now) {
			p.lanes.Remove(o)
			continue
		}
		if idle && paused == (fetch.Origin{}) {
			paused = o
		}
		p.lanes.Get(o) // moves it to the other end
	}
	p.lanes.Remove(paused)
}

// earliest is when a request may start, as things stand at now; never before now. With
// every place taken (full) it is the least that is possible: one has to end first.
// robots.txt waits for no place: a body that the caller leaves open must not make the
// origin unreachable.
func (p *Pacer) earliest(l *lane, now time.Time, as asking) (at time.Time, full bool) {
	from := l.last
	if as != asHolder {
		from = l.latest()
	}
	if full = as != asRobots && l.underway >= p.maxUnderway(); full {
		from = now
	}
	return later(p.spaced(l, from, now), l.resume), full
}

// latest is the last start or end, those that Wait has given away included.
func (l *lane) latest() time.Time { return later(l.last, l.granted) }

// spaced is the first time, not before now, that lies the delay after from. The delay
// may change with the hour (Request-rate with a window): then the time is looked for
// from one change to the next.
func (p *Pacer) spaced(l *lane, from, now time.Time) time.Time {
	if from.IsZero() {
		return now
	}
	for t := now; ; {
		at := from.Add(p.delay(l, t))
		if !at.After(t) {
			return t
		}
		change := l.nextChange(t)
		if change.IsZero() || at.Before(change) {
			return at
		}
		t = change
	}
}

// delay is the distance to keep at time t: the largest that is to be kept for any token.
func (p *Pacer) delay(l *lane, t time.Time) time.Duration {
	if len(l.lessons) == 0 {
		return p.defaultDelay()
	}
	d := time.Duration(0)
	for i := range l.lessons {
		asked, ok := l.lessons[i].pace.at(t)
		switch {
		case ok:
			d = max(d, min(asked, p.maxDelay()))
		case !l.lessons[i].past:
			d = max(d, p.defaultDelay())
		}
	}
	return d
}

// tooSlow is the refusal of an origin that asks for more than the cap; nil if it does not.
func (p *Pacer) tooSlow(o fetch.Origin, l *lane, now time.Time) error {
	if !p.Refuse {
		return nil
	}
	if asked := l.asked(now); asked > p.maxDelay() {
		return &DelayError{Origin: o, Delay: asked, Max: p.maxDelay()}
	}
	return nil
}

// answered notes how the origin does: status is 0 where no answer came, retryAfter 0
// where the answer says nothing.
func (p *Pacer) answered(l *lane, status int, retryAfter time.Duration, now time.Time) {
	failed := status == 0 || status == http.StatusTooManyRequests || status >= 500
	switch {
	case failed && retryAfter > 0: // the site knows best
		l.resume = later(l.resume, now.Add(min(retryAfter, day)))
		return
	case failed && p.pause(l, now) < longestPause:
		l.strain++
	case !failed && l.strain > 0:
		l.strain--
	}
	if l.strain > 0 {
		l.resume = later(l.resume, now.Add(jittered(p.pause(l, now))))
	}
}

// longestPause bounds the pauses that we think of ourselves.
const longestPause = time.Hour

// pause is how long to stay away under the present strain: it doubles with each
// failure and is halved by each good answer, so that a site that comes back is not
// met with the full load at once.
func (p *Pacer) pause(l *lane, now time.Time) time.Duration {
	unit := min(max(p.delay(l, now), time.Second), longestPause)
	return min(unit<<l.strain, longestPause) // strain stays below 13, since pause stops its growth
}

// jittered is d give or take a fifth, so that the origins of one failing server, and
// the crawlers of one failing site, do not come back together.
func jittered(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
