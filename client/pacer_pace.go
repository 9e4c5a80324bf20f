package client

import (
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

// pace is what a group of robots.txt asks for. Neither record is part of RFC 9309,
// which leaves room for them (§2.2.4).
type pace struct {
	delay time.Duration // Crawl-delay or Request-rate at any hour, the larger
	said  bool          // there is one of them
	rates []rate        // Request-rate with a window
}

// rate is a Request-rate record: the delay that it comes down to, and the window of
// the day (minutes after midnight UTC, until before the second) in which it holds.
type rate struct {
	delay    time.Duration
	from, to int
}

const minutesOfDay = 24 * 60

// paceOf reads the records of g. Of several that hold at the same time, the largest
// delay counts: nobody has been hurt by too polite a crawler.
func paceOf(g policy.Group) pace {
	var a pace
	a.delay, a.said = g.CrawlDelay()
	for r := range g.RequestRates() {
		pause := rate{r.Period / time.Duration(r.Pages), r.From, r.To}
		if r.Period%time.Duration(r.Pages) != 0 {
			pause.delay++ // no period sees one page more
		}
		if r.From == 0 && r.To == minutesOfDay {
			a.delay, a.said = max(a.delay, pause.delay), true
		} else {
			a.rates = append(a.rates, pause)
		}
	}
	return a
}

// at is the delay asked for at time t, if any is.
func (a *pace) at(t time.Time) (delay time.Duration, ok bool) {
	delay, ok = a.delay, a.said
	for _, r := range a.rates {
		if r.holds(t) {
			delay, ok = max(delay, r.delay), true
		}
	}
	return delay, ok
}

// nextChange is when, after t, the answer of at may change; zero if it never does.
func (a *pace) nextChange(t time.Time) time.Time {
	var next time.Time
	midnight := t.Truncate(day) // in UTC
	for _, r := range a.rates {
		for _, minute := range []int{r.from, r.to, r.from + minutesOfDay, r.to + minutesOfDay} {
			edge := midnight.Add(time.Duration(minute) * time.Minute)
			if edge.After(t) && (next.IsZero() || edge.Before(next)) {
				next = edge
			}
		}
	}
	return next
}

// holds says whether t lies in the window. One that ends before it starts goes on
// after midnight.
func (r rate) holds(t time.Time) bool {
	utc := t.UTC()
	minute := utc.Hour()*60 + utc.Minute()
	if r.from < r.to {
		return r.from <= minute && minute < r.to
	}
	return minute >= r.from || minute < r.to
}
