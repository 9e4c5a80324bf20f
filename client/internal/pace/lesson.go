package pace

import (
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace/rules"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// pace is what a group of robots.txt asks for, in records that RFC 9309 §2.2.4 leaves room
// for.
type pace struct{ policy.Rate }

// at returns the delay asked for at time t, if any is.
func (a *pace) at(t time.Time) (delay time.Duration, ok bool) {
	delay, _, ok = a.At(t)
	return delay, ok
}

// nextChange returns when, after t, the answer of at may change; zero if it never does.
func (a *pace) nextChange(t time.Time) time.Time {
	_, until, _ := a.At(t)
	return until
}

// lesson is what robots.txt asks of one product token in one dialect, or of one User-Agent of that token if the
// site has a file for each. Several that share a Pacer are one visitor to the site, so the largest
// delay of those in use is kept.
type lesson struct {
	token   string
	dialect policy.Dialect
	agent   string    // Result.UserAgent
	read    time.Time // when the robots.txt was read
	used    time.Time // when the token was last decided for
	pace    pace
}

const (
	// mostTokens bounds what is kept of one origin. Beyond it, tokens that are asked for
	// less are learned again each time.
	mostTokens = 8

	// tokenIdle is how long a token without requests goes on to slow the others.
	tokenIdle = time.Hour
)

// Learn notes what group g asks of a token, in the robots.txt of o that res is. The
// records of a hostile file take milliseconds to go through, so no file is learned twice
// for one token. A file that is unreachable, or unavailable for the moment, teaches nothing: what was asked for before
// still is.
func (k *Keeper) Learn(o fetch.Origin, g policy.Group, token string, res *fetch.Result, now time.Time) {
	if k.knows(o, token, res, now) {
		return
	}
	asked := pace{g.Rate()}
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lane(o, now)
	token = strings.Clone(token) // it may be part of a header
	l.teach(lesson{token, res.Dialect, res.UserAgent, res.Time, now, asked}, now)
	k.learned(l, now)
	l.wakeFirst()
}

// knows reports whether there is nothing to learn: that file, or a newer one, was learned for the token. It notes
// that the token is in use, and drops those that are not.
func (k *Keeper) knows(o fetch.Origin, token string, res *fetch.Result, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lane(o, now)
	l.read = rules.Later(l.read, res.Time)
	silent := res.Err != nil || res.OfTheMoment()
	known, idle := silent, false
	for i := range l.lessons {
		b := &l.lessons[i]
		if b.token == token && b.dialect == res.Dialect && (silent || b.agent == res.UserAgent && !b.read.Before(res.Time)) {
			b.used, known = now, true
		}
		idle = idle || b.idle(now)
	}
	if idle {
		l.lessons = slices.DeleteFunc(l.lessons, func(b lesson) bool { return b.idle(now) })
		l.wakeFirst()
	}
	return known
}

func (b *lesson) idle(now time.Time) bool { return now.Sub(b.used) > tokenIdle }

// teach puts a lesson in the place of the earlier one of its token, dialect and User-Agent.
func (l *lane) teach(b lesson, now time.Time) {
	same := func(a lesson) bool { return a.token == b.token && a.dialect == b.dialect && a.agent == b.agent }
	if i := slices.IndexFunc(l.lessons, same); i >= 0 {
		if old := l.lessons[i].pace; old.asks() && !b.pace.asks() {
			l.owe(old, now)
		}
		l.lessons = slices.Delete(l.lessons, i, i+1)
	}
	if len(l.lessons) == mostTokens {
		least := 0
		for i := range l.lessons {
			if l.lessons[least].pace.more(l.lessons[i].pace, now) {
				least = i
			}
		}
		l.lessons = slices.Delete(l.lessons, least, least+1)
	}
	l.lessons = append(l.lessons, b)
}

// owe makes all who wait now keep an old pace among themselves. They were told to come
// one by one; a new file that names no delay must not send them all at once.
func (l *lane) owe(old pace, now time.Time) {
	switch {
	case l.waiting.Len() == 0:
	case l.owing != nil && l.owing.more(old, now):
		l.owing.last = l.waiting.Back()
	default:
		l.owing = &debt{old, l.waiting.Back()}
	}
}

func (l *lane) owed(t time.Time) (d time.Duration) {
	if l.owing != nil {
		d, _ = l.owing.at(t)
	}
	return d
}

// asked is the largest delay that robots.txt asks for at time t.
func (l *lane) asked(t time.Time) time.Duration {
	d := l.owed(t)
	for i := range l.lessons {
		asked, _ := l.lessons[i].pace.at(t)
		d = max(d, asked)
	}
	return d
}

// nextChange is when, after t, the answer of delay may change; zero if it never does.
func (l *lane) nextChange(t time.Time) time.Time {
	var next time.Time
	if l.owing != nil {
		next = l.owing.nextChange(t)
	}
	for i := range l.lessons {
		if c := l.lessons[i].pace.nextChange(t); next.IsZero() || !c.IsZero() && c.Before(next) {
			next = c
		}
	}
	return next
}

// asks reports whether a asks for a delay at any time.
func (a *pace) asks() bool { return !a.IsZero() }

// more reports whether a asks for more than b at time t.
func (a *pace) more(b pace, t time.Time) bool {
	mine, _ := a.at(t)
	others, _ := b.at(t)
	return mine > others || !b.asks() && a.asks()
}

// Day bounds every wait that a site can cause, so one absurd value freezes no origin for
// ever. The horizon of RFC 9309 §2.4 is a day as well.
const Day = 24 * time.Hour
