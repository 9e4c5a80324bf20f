package pace

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// lesson is what robots.txt asks of one reader. Readers that share a Pacer are one visitor to the site, so the largest
// delay of those in use is kept.
type lesson struct {
	reader string
	rules  weak.Pointer[policy.Policy] // that it was learned from; weak, because the cache decides what stays in memory
	rate   policy.Rate
	used   time.Time
}

const (
	// mostReaders bounds what is kept of one origin. Beyond it, the reader with the least delay is forgotten.
	mostReaders = 8

	// readerIdle is how long a reader without requests goes on to slow the others.
	readerIdle = time.Hour
)

// Learn notes what robots.txt asks of a reader: the group of that reader in p. The reader is the product token and the
// dialect that it is read in, as any text. What is kept is the largest delay of all readers at o that were heard of
// within an hour. The same pointer is the same set of rules, so a call that brings nothing new is cheap. If p is nil,
// the file is unreachable: what was asked for before is kept.
func (k *Keeper) Learn(o fetch.Origin, reader string, p *policy.Policy, g policy.Group) {
	rules := weak.Make(p)
	if k.knows(o, reader, rules) {
		return
	}
	rate := g.Rate() // takes milliseconds where the file is hostile
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	l := k.line(o, now)
	l.lessons = slices.DeleteFunc(l.lessons, func(s lesson) bool { return s.reader == reader })
	if len(l.lessons) == mostReaders {
		least := slices.MinFunc(l.lessons, func(a, b lesson) int { return cmp.Compare(a.asked(now), b.asked(now)) })
		l.lessons = slices.DeleteFunc(l.lessons, func(s lesson) bool { return s.reader == least.reader })
	}
	l.lessons = append(l.lessons, lesson{strings.Clone(reader), rules, rate, now})
	l.wakeFirst()
}

// knows reports whether there is nothing to learn. It notes that the reader is in use, and drops idle ones.
func (k *Keeper) knows(o fetch.Origin, reader string, rules weak.Pointer[policy.Policy]) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	l := k.line(o, now)
	known := rules == weak.Pointer[policy.Policy]{}
	for i := range l.lessons {
		if s := &l.lessons[i]; s.reader == reader {
			s.used = now
			known = known || s.rules == rules
		}
	}
	before := len(l.lessons)
	l.lessons = slices.DeleteFunc(l.lessons, func(s lesson) bool { return now.Sub(s.used) > readerIdle })
	if len(l.lessons) < before {
		l.wakeFirst()
	}
	return known
}

// asked is the delay that is asked for at time t, or zero.
func (s *lesson) asked(t time.Time) time.Duration {
	d, _, _ := s.rate.At(t)
	return d
}

// floor is the delay where robots.txt asks for none.
func (k *Keeper) floor() time.Duration { return max(k.Delay, k.MinDelay) }

// delay is the distance to keep at time t: the largest of all readers.
func (l *line) delay(t time.Time) time.Duration {
	k := l.k
	if len(l.lessons) == 0 {
		return k.floor()
	}
	d := k.MinDelay
	for i := range l.lessons {
		if asked, _, ok := l.lessons[i].rate.At(t); ok {
			d = max(d, min(asked, k.MaxDelay))
		} else {
			d = max(d, k.Delay)
		}
	}
	return d
}

// change returns when, after t, the delay may change; zero if it never does.
func (l *line) change(t time.Time) (next time.Time) {
	for i := range l.lessons {
		if _, until, _ := l.lessons[i].rate.At(t); next.IsZero() || !until.IsZero() && until.Before(next) {
			next = until
		}
	}
	return next
}

// spaced returns the first time, not before now, that is the delay or more after from. The delay may change with the
// hour (a Request-rate with a window), so it goes from one change to the next.
func (l *line) spaced(from, now time.Time) time.Time {
	if from.IsZero() {
		return now
	}
	for t := now; ; {
		d := l.delay(t)
		if t.Sub(from) >= d {
			return t
		}
		at := from.Add(d)
		change := l.change(t)
		if change.IsZero() || at.Before(change) {
			return at
		}
		t = change
	}
}
