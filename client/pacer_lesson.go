package client

import (
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// source says which group of which robots.txt something was learned from. The zero
// source is Learn.
type source struct {
	read  time.Time
	token string
}

// lesson is what robots.txt asks of one product token. Several that share a Pacer are one
// visitor to the site, so the largest delay of those in use is kept.
type lesson struct {
	source
	used time.Time // when the token was last decided for
	pace pace
	past bool // its robots.txt asks for it no more, but there are some who wait since before
}

const (
	// mostTokens bounds what is kept of one origin. Beyond it, those that are asked for
	// less are learned anew each time.
	mostTokens = 8

	// tokenIdle is how long a token that asks for nothing goes on to slow the others.
	tokenIdle = time.Hour
)

// learn is Learn for an origin. The records of a hostile file take milliseconds to go
// through, so nothing is learned twice from one source. Of a robots.txt that could not be
// had there is nothing to learn: what was asked for before still is. A nil Pacer has no
// use for any.
func (p *Pacer) learn(o fetch.Origin, g policy.Group, from source, unreachable error) {
	if p == nil || p.knows(o, from) || unreachable != nil {
		return
	}
	asked := paceOf(g)
	from.token = strings.Clone(from.token) // it may be part of a header
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.lane(o, now).teach(lesson{source: from, used: now, pace: asked}, now)
}

// knows reports whether there is nothing to learn from a source: it, or a newer file, has
// been read for the token.
func (p *Pacer) knows(o fetch.Origin, from source) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	l := p.lane(o, now)
	if from == (source{}) {
		return false
	}
	l.read = later(l.read, from.read)
	known, idle := false, false
	for i := range l.lessons {
		b := &l.lessons[i]
		if b.token == from.token && !b.past && !b.read.IsZero() && !b.read.Before(from.read) {
			b.used, known = now, true
		}
		idle = idle || b.idle(now)
	}
	if idle {
		l.drop(func(b lesson) bool { return b.idle(now) })
	}
	return known
}

func (b *lesson) idle(now time.Time) bool {
	return !b.past && !b.read.IsZero() && now.Sub(b.used) > tokenIdle
}

// teach puts a lesson in the place of what it supersedes: the one before of its token, or
// what Learn was given, which in turn supersedes all.
func (l *lane) teach(b lesson, now time.Time) {
	old := lesson{}
	l.drop(func(a lesson) bool {
		gone := !a.past && (a.token == b.token || a.read.IsZero() || b.read.IsZero())
		if gone && !b.pace.asks() && a.pace.more(old.pace, now) {
			old = a
		}
		return gone
	})
	if old.pace.asks() && l.waiting.Len() > 0 {
		l.owe(old, now)
	}
	for len(l.lessons) >= mostTokens {
		least := 0
		for i := range l.lessons {
			if l.lessons[least].pace.more(l.lessons[i].pace, now) {
				least = i
			}
		}
		l.lessons = slices.Delete(l.lessons, least, least+1)
	}
	l.lessons = append(l.lessons, b)
	l.wakeFirst()
}

// owe keeps an old lesson until all who wait now have gone. They were told to come one by
// one; that the new file, or what came in its place, names no delay must not send them
// all at once.
func (l *lane) owe(old lesson, now time.Time) {
	for i := range l.lessons {
		if l.lessons[i].past && l.lessons[i].pace.more(old.pace, now) {
			old = l.lessons[i]
		}
	}
	l.lessons = slices.DeleteFunc(l.lessons, func(b lesson) bool { return b.past })
	old.past = true
	l.lessons = append(l.lessons, old)
	l.owed = 0
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		e.Value.(*waiter).owed = true
		l.owed++
	}
}

// paid is called for each of those who have gone.
func (l *lane) paid() {
	if l.owed--; l.owed == 0 {
		l.drop(func(b lesson) bool { return b.past })
	}
}

// drop forgets lessons, and lets the first in line see what has become less.
func (l *lane) drop(which func(lesson) bool) {
	l.lessons = slices.DeleteFunc(l.lessons, which)
	l.wakeFirst()
}

// asked is the largest delay that robots.txt asks for at time t.
func (l *lane) asked(t time.Time) (d time.Duration) {
	for i := range l.lessons {
		asked, _ := l.lessons[i].pace.at(t)
		d = max(d, asked)
	}
	return d
}

// nextChange is when, after t, the answer of delay may change; zero if it never does.
func (l *lane) nextChange(t time.Time) (next time.Time) {
	for i := range l.lessons {
		if c := l.lessons[i].pace.nextChange(t); next.IsZero() || !c.IsZero() && c.Before(next) {
			next = c
		}
	}
	return next
}

// asks reports whether a asks for a delay at any time.
func (a *pace) asks() bool { return a.said || len(a.rates) > 0 }

// more reports whether a asks for more than b at time t.
func (a *pace) more(b pace, t time.Time) bool {
	mine, _ := a.at(t)
	others, _ := b.at(t)
	return mine > others || !b.asks() && a.asks()
}
