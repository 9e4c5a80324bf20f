package pace

import (
	"cmp"
	"math"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/robotsgate/robotsgate/fetch"
)

// mostLines is how many origins are remembered, besides those that are busy.
const mostLines = 50_000

// line returns the line of o. It makes one if there is none.
func (k *Keeper) line(o fetch.Origin, now time.Time) *line {
	if l := k.known(o); l != nil {
		return l
	}
	if k.lines == nil {
		k.lines, _ = simplelru.NewLRU[fetch.Origin, *line](math.MaxInt, nil) // errs only below 1; forget bounds it
	}
	k.forget(now)
	l := &line{k: k}
	o = o.Clone() // must not keep the text of a whole URL
	if k.Turns != nil {
		l.key = o.String()
	}
	k.lines.Add(o, l)
	return l
}

// known returns the line of o, or nil.
func (k *Keeper) known(o fetch.Origin) *line {
	if k.lines == nil {
		return nil
	}
	l, _ := k.lines.Get(o)
	return l
}

// forget makes room for one more line, in constant time. It looks at the least recently used ones, and moves those that
// have to stay to the other end.
//
// To forget a line whose delay has passed breaks no distance, since the next decision teaches again what was learned.
// To forget a pause is the lesser evil against a million origins that all answer "come back tomorrow".
func (k *Keeper) forget(now time.Time) {
	const looks = 16
	var paused fetch.Origin
	for range looks {
		if k.lines.Len() < cmp.Or(k.MaxOrigins, mostLines) {
			return
		}
		o, l, _ := k.lines.GetOldest()
		l.lapse(now)
		idle := l.underway == 0 && l.first() == nil && !l.spaced(l.last, now).After(now)
		if idle && !l.resume.After(now) {
			k.lines.Remove(o)
			continue
		}
		if idle && paused == (fetch.Origin{}) {
			paused = o
		}
		k.lines.Get(o)
	}
	if paused != (fetch.Origin{}) {
		k.lines.Remove(paused)
	}
}
