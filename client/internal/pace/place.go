package pace

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// Place is a request's place at an origin, from its turn until its end. Its methods are safe for concurrent use.
type Place struct {
	line   *line
	robots bool
	began  time.Time // its turn or, later, its Start
	until  time.Time // of the reservation: a start after that needs another; zero without Turns
	silent bool      // it was handed on, and has no answer yet
	ended  bool
}

// isFresh reports whether a request may start on p at once: since its turn, nothing has started or ended or paused.
func (p *Place) isFresh(now time.Time) bool {
	if p == nil {
		return false
	}
	l := p.line
	return l.last.Equal(p.began) && !l.resume.After(now) && (l.k.Turns == nil || !now.After(p.until))
}

// Start says that the request is handed on right now, and others keep their distance from that. Until then, the turn
// counts as the start.
func (p *Place) Start() {
	l := p.line
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	if p.ended {
		return
	}
	p.began = time.Now()
	l.last = later(l.last, p.began)
	p.markSilent()
}

// Answered says that the header of the answer came or, with status zero, that none will. After a 429, a 5xx or no
// answer, the site is left alone: for retryAfter, a day at most, if that is not zero, else for a pause that grows. Good
// answers shorten the next pause.
func (p *Place) Answered(status int, retryAfter time.Duration) {
	l := p.line
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	now := time.Now()
	l.header = later(l.header, now)
	p.markHeard()
	failed := status == 0 || status == http.StatusTooManyRequests || status >= 500
	if pause := l.judge(p, failed, min(retryAfter, Day), now); pause > 0 {
		l.resume = later(l.resume, now.Add(pause))
		l.k.tell(l.key, pause)
		if !p.robots {
			l.age()
		}
	}
	l.wakeFirst()
}

// judge notes how the site does, and returns how long to stay away.
func (l *line) judge(p *Place, failed bool, retryAfter time.Duration, now time.Time) time.Duration {
	again := p.robots && failed && l.robotsFailed // failures of one robots.txt in a row are one
	if p.robots {
		l.robotsFailed = failed
	}
	switch {
	case failed && retryAfter > 0: // the site knows best
		return retryAfter
	case failed && p.began.Before(l.failed): // requests that fail together are one failure
		return 0
	case failed && again:
		l.failures = max(l.failures, 1)
	case failed && l.pause(now) < longestPause:
		l.failures++
	case !failed && l.failures > 0:
		l.failures--
	}
	if failed {
		l.failed = now
	}
	if l.failures == 0 {
		return 0
	}
	// Give or take a fifth, so that the crawlers of a failing site, and the origins of a failing server, do not come back
	// together.
	d := l.pause(now)
	return d*4/5 + rand.N(d*2/5)
}

// age makes those who stand first decide anew after a pause: what was read since they came may be too old by then.
func (l *line) age() {
	for _, w := range []*waiter{l.first(), l.leftPlace} {
		if w != nil {
			w.since = time.Time{}
		}
	}
}

// longestPause bounds the pauses that the site did not ask for.
const longestPause = time.Hour

// pause returns how long to stay away. Each failure doubles it, and each good answer halves it, so that a site that
// comes back does not meet the full load at once.
func (l *line) pause(now time.Time) time.Duration {
	unit := min(max(l.delay(now), time.Second), longestPause)
	return min(unit<<min(l.failures, 12), longestPause)
}

// End gives the place back: the body is closed, or there is none. Only the first call counts.
func (p *Place) End() {
	l := p.line
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	p.markHeard()
	l.last = later(l.last, time.Now())
	l.underway--
	l.wakeFirst()
}

// markSilent notes that a robots.txt has to wait for the header of p.
func (p *Place) markSilent() {
	if !p.silent {
		p.silent = true
		p.line.silent++
	}
}

// markHeard notes that no robots.txt has to wait for the header of p any more.
func (p *Place) markHeard() {
	if p.silent {
		p.silent = false
		p.line.silent--
	}
}

// Delay is the distance kept at the origin of the place.
func (p *Place) Delay() time.Duration {
	p.line.k.mu.Lock()
	defer p.line.k.mu.Unlock()
	return p.line.delay(time.Now())
}
